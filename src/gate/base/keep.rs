//! Storage for the result of a base, in one folder per base among the kept data of the project.
//!
//! The key of the folder contains the base tree, the lanes, the ignored files that lanes include,
//! the sandbox and the variables of steps. Other tools in the search path are not part of the key.
//! That is enough for evidence and caches. Commands that ask for the current state (`fledge fix`,
//! `expect:`) run the lanes again.

use super::{BaseError, BaseVerdict, LaneCaches, VERSION, failing};
use crate::fail_point::reach;
use crate::gate::clean::clear;
use crate::gate::evidence::Evidence;
use crate::gate::forget::{MAKING, USED, forget_old, forget_output};
use crate::gate::{Gate, GateSite, digest_of};
use crate::lane::Lane;
use crate::store;
use crate::verdict::{Ruling, StepReport};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum number of bases in a row that start with the build output of an earlier one. The
/// next base starts with none, because cargo never removes unused output.
const GENERATIONS: u32 = 16;
/// The pause between two attempts to lock.
const POLL: Duration = Duration::from_millis(20);

/// Returns the kept result of this base, if there is one, and marks it as used.
pub(in crate::gate) fn kept(gate: &Gate, site: &GateSite) -> Option<BaseVerdict> {
    let folder = folder_of(gate, site);
    let base = known(&folder)?;
    let _it_is_only_kept_longer = fs::write(folder.join(USED), []);
    Some(base)
}

/// Keeps the result of a base whose lanes ran as they run on an agent's work. It has no caches, and
/// no planted failures were tried.
///
/// # Errors
/// [`BaseError`] when the result cannot be kept.
pub(in crate::gate) fn remember(
    gate: &Gate,
    site: &GateSite,
    steps: &[StepReport],
    feedback: &str,
    evidence: Evidence,
) -> Result<BaseVerdict, BaseError> {
    let failing = failing(steps);
    let base = BaseVerdict {
        version: VERSION,
        ruling: if failing.is_empty() { Ruling::Passed } else { Ruling::Failed },
        feedback: feedback.to_owned(),
        steps: steps.to_vec(),
        failing,
        evidence,
        sightings: BTreeMap::new(),
        restless: BTreeSet::new(),
        lacked: None,
        line: line(gate, site),
        generation: 0,
        folder: making(site)?,
    };
    keep(base, gate, site)
}

/// Locks this base, so that runs of a batch that start together judge it once. Waits while another
/// run has the lock.
pub(super) async fn lock(gate: &Gate, site: &GateSite, stop: &CancellationToken) -> Result<fs::File, BaseError> {
    let folder = folder_of(gate, site);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = folder.with_file_name(format!("{MAKING}{name}.lock"));
    let io = |source| BaseError::Cache { path: path.clone(), source };
    store::make_private(&site.project.join("bases"))?;
    let file = fs::File::options().create(true).append(true).open(&path).map_err(io)?;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(io(source)),
        }
        tokio::select! {
            () = stop.cancelled() => return Err(BaseError::Stopped),
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Makes an empty folder in which a base is prepared.
pub(super) fn making(site: &GateSite) -> Result<PathBuf, BaseError> {
    let of_run = store::sha256(site.rooms.as_os_str().as_encoded_bytes());
    let making = site.project.join("bases").join(format!("{MAKING}{}", of_run.get(..16).unwrap_or_default()));
    clear(&making).map_err(|source| BaseError::Cache { path: making.clone(), source })?;
    Ok(making)
}

/// Moves a base from the folder in which it was prepared to its final folder.
pub(super) fn keep(base: BaseVerdict, gate: &Gate, site: &GateSite) -> Result<BaseVerdict, BaseError> {
    let (making, folder) = (base.folder.clone(), folder_of(gate, site));
    let text = serde_json::to_vec(&base).unwrap_or_default();
    let io = |source| BaseError::Cache { path: making.clone(), source };
    store::make_private(&making)?;
    reach("base", "begun").map_err(io)?;
    // A crash of the machine may leave an incomplete base. `known` then rejects it, and it is made
    // again.
    fs::write(making.join(USED), []).and_then(|()| fs::write(making.join("base.json"), &text)).map_err(io)?;
    if known(&folder).is_none() {
        clear(&folder).map_err(io)?;
    }
    if let Err(source) = fs::rename(&making, &folder) {
        // Another run of the same base may have been faster.
        let Some(base) = known(&folder) else { return Err(BaseError::Cache { path: folder, source }) };
        let _left = clear(&making);
        return Ok(base);
    }
    forget_output(&site.project.join("bases"), &folder);
    forget_old(&site.project.join("bases"));
    Ok(BaseVerdict { folder, ..base })
}

/// Returns the key that bases share if the same lanes made their build output, with the same
/// programs and at the same path.
pub(super) fn line(gate: &Gate, site: &GateSite) -> String {
    let held_out: Vec<Lane> = gate.held_out.iter().filter(|lane| LaneCaches::are_wanted(lane)).cloned().collect();
    let held_out = if held_out.is_empty() { String::new() } else { digest_of(&held_out) };
    let sandbox = site.sandbox.kind().name();
    let path = site.variable("PATH");
    let at = &site.origin;
    // Build output of a base without these files must not come from one with them.
    let hidden = gate.hidden.as_ref().map_or(String::new(), |hidden| format!(" {hidden:?}"));
    store::sha256(format!("{VERSION} {} {held_out} {sandbox} {path:?} {at:?}{hidden}", gate.digest).as_bytes())
}

/// Returns the final folder of this base.
fn folder_of(gate: &Gate, site: &GateSite) -> PathBuf {
    let (line, installed) = (line(gate, site), &gate.installed.digest);
    let key = format!("{line} {} {installed}{} {}", gate.base(), ignored(gate, site), variables(site));
    site.project.join("bases").join(&store::sha256(key.as_bytes())[..32])
}

/// Returns the newest base with this key, if a new base may start with its build output.
pub(super) fn newest(line: &str, site: &GateSite) -> Option<BaseVerdict> {
    let entries = fs::read_dir(site.project.join("bases")).into_iter().flatten().flatten().map(|entry| entry.path());
    let used = |path: &PathBuf| fs::metadata(path.join(USED)).and_then(|meta| meta.modified()).ok();
    let mut dated: Vec<_> = entries.filter_map(|path| Some((used(&path)?, path))).collect();
    dated.sort();
    let base = dated.iter().rev().filter_map(|(_, path)| known(path)).find(|base| base.line == line)?;
    Some(base).filter(|base| base.generation < GENERATIONS)
}

/// Returns a digest of the variables of steps, because checks may depend on them. Leaves out
/// variables that differ from shell to shell.
fn variables(site: &GateSite) -> String {
    let vary = ["_", "SHLVL", "PWD", "OLDPWD", "TMPDIR", "INVOCATION_ID", "JOURNAL_STREAM"];
    let own: BTreeSet<&(String, String)> = site.env.iter().filter(|(name, _)| !vary.contains(&name.as_str())).collect();
    store::sha256(format!("{own:?}").as_bytes())
}

/// Returns the ignored files that lanes include, each with a digest of its content, because no tree
/// has them. The text is empty where none exist.
fn ignored(gate: &Gate, site: &GateSite) -> String {
    let lanes = gate.lanes.iter().chain(&gate.held_out);
    let paths: BTreeSet<&String> = lanes.flat_map(|lane| &lane.include_ignored).chain(&gate.installed.files).collect();
    let digest = |path: &Path| fs::read(path).map_or_else(|_| "none".to_owned(), |bytes| store::sha256(&bytes));
    paths.into_iter().map(|path| format!(" {path:?} {}", digest(&site.ignored.join(path)))).collect()
}

fn known(folder: &Path) -> Option<BaseVerdict> {
    let bytes = fs::read(folder.join("base.json")).ok()?;
    let base: BaseVerdict = serde_json::from_slice(&bytes).ok()?;
    (base.version == VERSION).then(|| BaseVerdict { folder: folder.to_owned(), ..base })
}
