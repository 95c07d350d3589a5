//! The Landlock sandbox, for systems without namespaces. Landlock grants access to paths and has no
//! exceptions. So everything beside a hidden folder is granted one by one, and a read-only folder
//! inside a writable one cannot be protected.

use super::caches::needed_caches;
use super::path_rules::{PathRule, PathRules, PathView, rule_for};
use super::restrictions::Restrictions;
use super::{INSIDE, homes};
use crate::process::Invocation;
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use std::path::{Path, PathBuf};

/// The version that a kernel must support (Linux 6.2). Since this version, files cannot be
/// truncated without the right to write them.
const LEAST: ABI = ABI::V3;
/// The version that is used if the kernel supports it.
const BEST: ABI = ABI::V7;
/// Devices that programs write.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// Returns the invocation that runs `inner` in the sandbox. `scratch` will hold the private home
/// and temporary folder of `inner`.
pub(super) fn around(helper: &Path, scratch: &Path, path_rules: &PathRules, inner: Invocation) -> Invocation {
    let folders = ["home", "tmp"].map(|name| scratch.join(name));
    let made = folders.iter().try_for_each(std::fs::create_dir_all);
    if let Err(error) = made {
        tracing::warn!(%error, "cannot create a private home and temporary folder");
    }
    let linked = path_rules.home.as_deref().map_or(Ok(()), |theirs| homes::link_toolchains(theirs, &folders[0]));
    if let Err(error) = linked {
        tracing::warn!(%error, "cannot link toolchains into the private home");
    }
    let mut rules = path_rules.rules(&inner.env, helper);
    // Landlock can neither make nor hide links, so the real ones remain.
    rules.retain(|rule| rule.view != PathView::Link);
    let mut add = |at: &Path, view| rules.push(PathRule { at: at.into(), view, from: None });
    add(scratch, PathView::Writable);
    add(Path::new("/dev"), PathView::Masked);
    DEVICES.iter().for_each(|at| add(Path::new(at), PathView::ReadOnly)); // `restrict` also lets programs write them
    let network = path_rules.network;
    let [home, temp] = folders;
    let mut changed = vec![("HOME".to_owned(), text(&home)), ("TMPDIR".to_owned(), text(&temp))];
    for (variable, at) in homes::LED_TO {
        let real = path_rules.home.as_ref().map(|home| home.join(at)).filter(|real| real.is_dir());
        if let (Some(real), None) = (real, inner.env.get(variable)) {
            changed.push(((*variable).to_owned(), text(&real)));
        }
    }
    // Landlock has no layers, so a tool cannot write the user's cache. It gets an empty one.
    let is_writable = |folder: &Path| rule_for(&rules, folder).is_some_and(|rule| rule.view == PathView::Writable);
    let readable = needed_caches(&inner.env).filter(|(_, folder, _)| !is_writable(folder));
    changed.extend(readable.map(|(name, _, place)| (name.to_owned(), text(&home.join(place)))));
    let env = inner.env.with(changed.iter().map(|(name, value)| (name, value)));
    let restrictions =
        Restrictions { sockets: network, network, alone: true, limits: path_rules.limits, path_rules: Some(rules) };
    let mut args = vec![INSIDE.to_owned(), restrictions.to_json(), inner.program];
    args.extend(inner.args);
    Invocation { program: text(helper), args, env, ..inner }
}

/// Restricts this process and all that it starts to the paths in the rules. Without `network`, also
/// denies TCP.
pub(super) fn restrict(rules: &[PathRule], network: bool) -> Result<(), String> {
    let enforced = (|| {
        let (all, read) = (AccessFs::from_all(BEST), AccessFs::from_read(BEST));
        let ruleset = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(LEAST))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(all)?
            .scope(Scope::from_all(BEST))?;
        let ruleset = if network { ruleset } else { ruleset.handle_access(AccessNet::from_all(BEST))? };
        let writable: Vec<&Path> =
            rules.iter().filter(|rule| rule.view == PathView::Writable).map(|rule| rule.at.as_path()).collect();
        ruleset
            .create()?
            .add_rules(path_beneath_rules(seen(rules), read))?
            .add_rules(path_beneath_rules(writable, all))?
            .add_rules(path_beneath_rules(DEVICES, all))?
            .restrict_self()
    })();
    judge(enforced)
}

/// Cuts this process off from sockets and processes outside, as far as the kernel supports that.
pub(super) fn scope() -> Result<(), String> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).scope(Scope::from_all(BEST));
    let enforced = ruleset.and_then(|ruleset| ruleset.create()).and_then(|ruleset| ruleset.restrict_self());
    enforced.map(drop).map_err(|error: RulesetError| format!("landlock: {error}"))
}

fn judge(enforced: Result<landlock::RestrictionStatus, RulesetError>) -> Result<(), String> {
    match enforced {
        // The only hard requirement is on the accesses of `LEAST`.
        Err(RulesetError::HandleAccesses(_)) => {
            Err("the kernel does not support it, or is older than Linux 6.2".into())
        }
        Err(error) => Err(format!("landlock: {error}")),
        Ok(status) if status.ruleset == RulesetStatus::NotEnforced => {
            Err("the kernel does not enforce landlock".into())
        }
        Ok(_) => Ok(()),
    }
}

/// Returns the paths that can be read: the machine without what is hidden, and what is granted
/// inside of that. A folder with a hidden path inside is replaced by its entries. Links among these
/// entries are left out, since granting a link grants its target; the target is reached by its own
/// path if that is granted.
fn seen(rules: &[PathRule]) -> Vec<PathBuf> {
    let (mut seen, mut apart) = (Vec::new(), vec![PathBuf::from("/")]);
    let is_shown = |rule: &PathRule| matches!(rule.view, PathView::ReadOnly | PathView::Writable);
    while let Some(folder) = apart.pop() {
        let over = rule_for(rules, &folder);
        let is_open = over.is_none_or(is_shown);
        let inside = |rule: &&PathRule| rule.at != folder && rule.at.starts_with(&folder) && rule.at.exists();
        if !rules.iter().filter(inside).any(|rule| is_shown(rule) != is_open) {
            seen.extend(is_open.then_some(folder));
        } else if is_open {
            let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let real = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            apart.extend(real.map(|entry| entry.path()));
        } else {
            // Of a hidden folder, only what is granted inside.
            let granted = rules.iter().filter(inside).filter(|rule| is_shown(rule)).map(|rule| rule.at.clone());
            apart.extend(granted);
        }
    }
    seen
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Variables;

    #[test]
    fn a_link_beside_what_is_hidden_opens_nothing() {
        let folder = crate::test_support::temp_dir();
        let root = folder.path().canonicalize().unwrap();
        let [open, beside, state, link] =
            ["open", "open/beside", "open/state", "open/link"].map(|name| root.join(name));
        [&beside, &state].iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        std::os::unix::fs::symlink(&state, &link).unwrap();
        let path_rules = PathRules { writable: vec![open], hidden: vec![state], ..PathRules::default() };
        let seen = seen(&path_rules.rules(&Variables::new([]), Path::new("/usr/bin/fledge")));
        let links: Vec<&PathBuf> = seen.iter().filter(|path| path.is_symlink()).collect();
        assert_eq!((links, seen.contains(&beside)), (Vec::new(), true), "{seen:?}");
    }
}
