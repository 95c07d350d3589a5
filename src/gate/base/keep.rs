//! What the gate said of a base, in a folder of its own among what is kept of the project: by the tree, the lanes, the ignored files that
//! these bring, the wall, and the folders in which programs are found. Other tools in the same folders are not seen: what is kept is evidence and caches, and who
//! asks what holds today (`fledge fix`, `expect:`) has the lanes run.

use super::{Base, BaseFault, Caches, VERSION, failing};
use crate::fail_point::reach;
use crate::gate::clean::clear;
use crate::gate::evidence::Evidence;
use crate::gate::forget::{MAKING, USED, forget_old, forget_output};
use crate::gate::{Gate, Site, digest_of};
use crate::lane::Lane;
use crate::store;
use crate::verdict::{Ruling, StepReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bases in a row that begin with the build output of an earlier one. The next begins with none: cargo never removes what nothing uses any more.
const GENERATIONS: u32 = 16;
/// The pause between two looks at a lock.
const POLL: Duration = Duration::from_millis(20);

/// What is kept of what the gate said of this base, if it was asked before.
pub(in crate::gate) fn kept(gate: &Gate, site: &Site) -> Option<Base> {
    let folder = folder_of(gate, site);
    let base = known(&folder)?;
    let _it_is_only_kept_longer = fs::write(folder.join(USED), []);
    Some(base)
}

/// Keeps what the lanes said of the base where they were asked as they are of an agent's work. Nothing of that is in caches, and nothing is
/// known of planted failures.
///
/// # Errors
/// [`BaseFault`] when it cannot be kept.
pub(in crate::gate) fn remember(
    gate: &Gate,
    site: &Site,
    steps: &[StepReport],
    feedback: &str,
    evidence: Evidence,
) -> Result<Base, BaseFault> {
    let failing = failing(steps);
    let base = Base {
        version: VERSION,
        ruling: if failing.is_empty() { Ruling::Passed } else { Ruling::Failed },
        feedback: feedback.to_owned(),
        steps: steps.to_vec(),
        failing,
        evidence,
        sights: BTreeMap::new(),
        restless: BTreeSet::new(),
        lacked: None,
        line: line(gate, site),
        generation: 0,
        folder: making(site)?,
    };
    keep(base, gate, site)
}

/// Waits until no other run judges this base: runs of a batch that start together judge the base once.
pub(super) async fn lock(gate: &Gate, site: &Site, stop: &CancellationToken) -> Result<fs::File, BaseFault> {
    let folder = folder_of(gate, site);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = folder.with_file_name(format!("{MAKING}{name}.lock"));
    let io = |source| BaseFault::Cache { path: path.clone(), source };
    store::make_private(&site.project.join("bases"))?;
    let file = fs::File::options().create(true).append(true).open(&path).map_err(io)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        tokio::select! {
            () = stop.cancelled() => return Err(BaseFault::Stopped),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// An empty folder in which a base is made.
pub(super) fn making(site: &Site) -> Result<PathBuf, BaseFault> {
    let of_run = store::sha256(site.rooms.as_os_str().as_encoded_bytes());
    let making = site.project.join("bases").join(format!("{MAKING}{}", of_run.get(..16).unwrap_or_default()));
    clear(&making).map_err(|source| BaseFault::Cache { path: making.clone(), source })?;
    Ok(making)
}

/// Brings a base from where it was made to where it is looked for.
pub(super) fn keep(base: Base, gate: &Gate, site: &Site) -> Result<Base, BaseFault> {
    let (making, folder) = (base.folder.clone(), folder_of(gate, site));
    let text = serde_json::to_vec(&base).unwrap_or_default();
    let io = |source| BaseFault::Cache { path: making.clone(), source };
    store::make_private(&making)?;
    reach("base", "begun").map_err(io)?;
    // A crash of the machine may leave less of it than is written here: then it is not known, and made again.
    fs::write(making.join(USED), []).and_then(|()| fs::write(making.join("base.json"), &text)).map_err(io)?;
    if known(&folder).is_none() {
        clear(&folder).map_err(io)?;
    }
    if let Err(source) = fs::rename(&making, &folder) {
        // Another run of the same base may have been faster.
        let Some(base) = known(&folder) else { return Err(BaseFault::Cache { path: folder, source }) };
        let _left = clear(&making);
        return Ok(base);
    }
    forget_output(&site.project.join("bases"), &folder);
    forget_old(&site.project.join("bases"));
    Ok(Base { folder, ..base })
}

/// What bases have in common whose build output is made by the same lanes with the same programs at the same place.
pub(super) fn line(gate: &Gate, site: &Site) -> String {
    let held_out: Vec<Lane> = gate.held_out.iter().filter(|lane| Caches::are_wanted(lane)).cloned().collect();
    let held_out = if held_out.is_empty() { String::new() } else { digest_of(&held_out) };
    let wall = site.wall.kind().name();
    let path = site.variable("PATH");
    let at = &site.origin;
    store::sha256(format!("{VERSION} {} {held_out} {wall} {path:?} {at:?}", gate.digest).as_bytes())
}

/// Where it is kept.
fn folder_of(gate: &Gate, site: &Site) -> PathBuf {
    let (line, installed) = (line(gate, site), &gate.installed.digest);
    let key = format!("{line} {} {installed}{} {}", gate.base(), ignored(gate, site), variables(site));
    site.project.join("bases").join(&store::sha256(key.as_bytes())[..32])
}

/// The newest base of this line whose build output a new one may begin with.
pub(super) fn newest(line: &str, site: &Site) -> Option<Base> {
    let entries = fs::read_dir(site.project.join("bases")).into_iter().flatten().flatten().map(|entry| entry.path());
    let used = |path: &PathBuf| fs::metadata(path.join(USED)).and_then(|meta| meta.modified()).ok();
    let mut dated: Vec<_> = entries.filter_map(|path| Some((used(&path)?, path))).collect();
    dated.sort();
    let base = dated.iter().rev().filter_map(|(_, path)| known(path)).find(|base| base.line == line)?;
    Some(base).filter(|base| base.generation < GENERATIONS)
}

/// The variables that steps have, by which checks may pass or fail; but for those that differ from shell to shell.
fn variables(site: &Site) -> String {
    let vary = ["_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "INVOCATION_ID", "JOURNAL_STREAM"];
    let own: BTreeSet<&(String, String)> = site.env.iter().filter(|(name, _)| !vary.contains(&name.as_str())).collect();
    store::sha256(format!("{own:?}").as_bytes())
}

/// The ignored files that lanes bring, by their contents: they are in no tree. Nothing, where there are none.
fn ignored(gate: &Gate, site: &Site) -> String {
    let lanes = gate.lanes.iter().chain(&gate.held_out);
    let paths: BTreeSet<&String> = lanes.flat_map(|lane| &lane.include_ignored).chain(&gate.installed.files).collect();
    let digest = |path: &Path| fs::read(path).map_or_else(|_| "none".to_owned(), |bytes| store::sha256(&bytes));
    paths.into_iter().map(|path| format!(" {path:?} {}", digest(&site.ignored.join(path)))).collect()
}

fn known(folder: &Path) -> Option<Base> {
    let bytes = fs::read(folder.join("base.json")).ok()?;
    let base: Base = serde_json::from_slice(&bytes).ok()?;
    (base.version == VERSION).then(|| Base { folder: folder.to_owned(), ..base })
}
