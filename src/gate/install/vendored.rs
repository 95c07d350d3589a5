//! Comparison of a tracked `vendor` folder with the output of `go mod vendor` for the work's
//! modules. If both are equal, the findings on the folder are dropped.

use super::commands::{InstallCommand, InstallTarget};
use super::{clear, room};
use crate::error_chain::chain;
use crate::gate::base::BaseError;
use crate::gate::clean::{CleanRoom, RoomDependencies, RoomError, RoomRequest};
use crate::gate::names::{joined, name_of};
use crate::gate::policy::{REPLACES, VENDORED};
use crate::gate::{Gate, GateSite};
use crate::id::TreeId;
use crate::verdict::TamperFinding;
use crate::workspace::trees::TreesError;
use std::collections::BTreeSet;
use tokio_util::sync::CancellationToken;

/// Go's list of vendored modules, relative to a `vendor` folder.
const LIST: &str = "modules.txt";

/// Removes the findings on each `vendor` folder of a tree that equals Go's output. Returns these
/// folders, and adds a note for each. On other folders, adds the reason to the findings.
pub(in crate::gate) async fn allow_vendored_folders(
    gate: &Gate,
    site: &GateSite,
    tree: &TreeId,
    findings: &mut Vec<TamperFinding>,
    notes: &mut Vec<String>,
    stop: &CancellationToken,
) -> Result<Vec<String>, TreesError> {
    if !findings.iter().any(is_meant) {
        return Ok(Vec::new());
    }
    let (mut allowed, files) = (Vec::new(), site.trees.paths(tree, stop).await?.into_iter().collect());
    let others: BTreeSet<String> =
        findings.iter().filter(|finding| is_of_modules(&finding.path)).map(|finding| finding.path.clone()).collect();
    for (vendor, command) in folders(findings, &files) {
        if let Some(modules) = others.first() {
            let meant = findings.iter_mut().filter(|finding| is_meant(finding) && is_in(&vendor, &finding.path));
            meant.for_each(|finding| finding.rule.push_str(&format!("; {modules} is refused too")));
            continue;
        }
        let is_below = |path: &str| is_in(&vendor, path);
        let reported = command.shown().to_owned();
        let made = differing(gate, site, tree, &command, stop).await;
        let mut say = |more: String, is_said: &dyn Fn(&str) -> bool| {
            let meant = findings.iter_mut().filter(|finding| is_meant(finding) && is_said(&finding.path));
            meant.for_each(|finding| finding.rule.push_str(&more));
        };
        match made {
            Ok(differ) if !differ.iter().any(|path| is_below(path)) => {
                findings.retain(|finding| !is_below(&finding.path));
                notes.push(format!("{vendor} equals the output of `{reported}` for the work's modules"));
                allowed.push(vendor);
            }
            Ok(differ) => say(format!("; `{reported}` output differs"), &|path| differ.contains(path)),
            Err(fault) if stop.is_cancelled() || matches!(fault, BaseError::Stopped) => {
                tracing::debug!(why = %chain(&fault), "stopped while a vendor folder was made again");
                return Err(TreesError::Stopped);
            }
            Err(fault) => say(format!("; `{reported}` cannot run here: {}", chain(&fault)), &|path| is_below(path)),
        }
    }
    Ok(allowed)
}

/// Returns whether a path names a file that selects Go modules.
fn is_of_modules(path: &str) -> bool {
    matches!(name_of(path), "go.mod" | "go.sum" | "go.work" | "go.work.sum")
}

/// Returns whether a path is below a folder.
fn is_in(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// Returns whether a finding may concern a file that Go wrote.
fn is_meant(finding: &TamperFinding) -> bool {
    [VENDORED, REPLACES].contains(&finding.rule.as_str())
}

/// Returns the `vendor` folders with findings that have Go's list in this tree, each with the
/// command that fills it.
fn folders(findings: &[TamperFinding], files: &BTreeSet<String>) -> Vec<(String, InstallCommand)> {
    let above = |path: &str| path.match_indices('/').map(|(end, _)| path[..end].to_owned()).collect::<Vec<_>>();
    let all: BTreeSet<String> =
        findings.iter().filter(|finding| is_meant(finding)).flat_map(|finding| above(&finding.path)).collect();
    let is_filled = |folder: &String| name_of(folder) == "vendor" && files.contains(&joined(folder, LIST));
    let command = |vendor: String| {
        let folder = vendor.strip_suffix("vendor")?.trim_end_matches('/').to_owned();
        let run = [("go.work", "go work vendor"), ("go.mod", "go mod vendor")].into_iter();
        let run = run.clone().find(|(file, _)| files.contains(&joined(&folder, file)))?.1;
        Some((vendor, InstallCommand { folder, run: run.into(), target: InstallTarget::Folders, is_hidden: false }))
    };
    all.into_iter().filter(is_filled).filter_map(command).collect()
}

/// Runs a command on a tree and returns the paths that it changes. The command runs in a room with
/// network, and runs no code of the work.
async fn differing(
    gate: &Gate,
    site: &GateSite,
    tree: &TreeId,
    command: &InstallCommand,
    stop: &CancellationToken,
) -> Result<BTreeSet<String>, BaseError> {
    let own = site.rooms.with_file_name("vendored");
    clear(&own).map_err(|source| BaseError::Cache { path: own.clone(), source })?;
    let lane = room::installing(std::slice::from_ref(command));
    let dependencies = RoomDependencies::Awaited(&own);
    let wanted = RoomRequest { lane: &lane, tree, base: gate.base(), caches: None, dependencies, kept: &[], gate };
    let room = CleanRoom::make(site, wanted, stop).await?;
    let ran = room::run(&lane, site, room.room(site, site.logs.join("vendored").join(tree.as_str())), stop).await;
    let made = match ran {
        Ok(()) => room.left(&site.trees, tree, &lane, stop).await.map_err(RoomError::from),
        Err(fault) => return Err(fault),
    };
    room.close().await;
    let changes = site.trees.changes(tree, &made?, stop).await.map_err(RoomError::from)?;
    let _left = clear(&own);
    Ok(changes.into_iter().map(|change| change.path).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vendor_of_go_is_known_by_its_list_and_by_the_modules_beside_it() {
        let files =
            ["go.mod", "vendor/modules.txt", "a/go.work", "a/vendor/modules.txt", "b/vendor/modules.txt", "c/go.mod"];
        let files = files.map(str::to_owned).into();
        let found = |paths: &[(&str, &str)]| {
            let finding = |(path, rule): &(&str, &str)| TamperFinding {
                path: (*path).into(),
                change: "added".into(),
                rule: (*rule).into(),
            };
            let findings: Vec<TamperFinding> = paths.iter().map(finding).collect();
            folders(&findings, &files).into_iter().map(|(vendor, it)| (vendor, it.folder, it.run)).collect::<Vec<_>>()
        };
        let row = |vendor: &str, folder: &str, run: &str| (vendor.to_owned(), folder.to_owned(), run.to_owned());
        assert_eq!(found(&[("vendor/x/y.go", VENDORED)]), [row("vendor", "", "go mod vendor")]);
        assert_eq!(found(&[("a/vendor/modules.txt", REPLACES)]), [row("a/vendor", "a", "go work vendor")]);
        let others = [
            ("vendor/x/y.go", "another rule"),
            ("b/vendor/x.go", VENDORED),
            ("c/vendor/x.go", VENDORED),
            ("go.mod", REPLACES),
        ];
        assert_eq!(found(&others), []);
    }
}
