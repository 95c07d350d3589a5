//! Programs that steps name after their first one, and those that their scripts and `make` targets
//! name. A command may do without a program, so a missing one does not prevent a pass.

use super::missing;
use crate::gate::policy::shell_texts;
use crate::lane::{Lane, shell_programs};
use crate::limits::MAX_SOURCE;
use crate::process::sandbox::Sandbox;
use crate::process::{Variables, find_program};
use crate::store;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// The programs that the commands and scripts of a lane name and that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptPrograms {
    /// The lane.
    pub lane: String,
    /// The programs that are not in the search path, each with the file or step that names it.
    pub absent: BTreeMap<String, String>,
    /// The programs that a room does not show, each with the file that names it.
    pub hidden: BTreeMap<String, String>,
}

/// Finds the missing programs that are named by commands of steps after their first word, by the
/// shell scripts that steps run, and by the recipes that they make, one level deep. Leaves out what
/// [`unreached`](super::unreached) finds. `hidden` are the paths that no program sees in the
/// sandbox.
pub async fn lacking_in_scripts<'l>(
    lanes: impl IntoIterator<Item = &'l Lane>,
    root: &Path,
    (sandbox, hidden): (&Sandbox, &[PathBuf]),
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Vec<ScriptPrograms> {
    let env = Variables::new(env.iter().cloned());
    let mut found = Vec::new();
    for lane in lanes {
        let (mut absent, mut there) = (BTreeMap::new(), BTreeMap::<PathBuf, BTreeMap<String, String>>::new());
        for step in &lane.steps {
            let path = step.env.get("PATH").or_else(|| lane.env.get("PATH")).map(String::as_str);
            let path = path.or_else(|| env.get("PATH")).unwrap_or_default();
            if step.shell.first().is_some_and(|shell| shell.ends_with("sh")) {
                let lacks = |name: &String| step.program() != Some(name) && find_program(name, path).is_none();
                let of_step = |name: String| (name, format!("step `{}`", step.name));
                absent.extend(shell_programs(&step.run).into_iter().filter(lacks).map(of_step));
            }
            let mut read = |file: &str| store::read_text(&root.join(file), MAX_SOURCE).ok()?.map(String::into_bytes);
            for (file, text) in shell_texts(&step.run, step.dir.as_deref(), &mut read) {
                for program in shell_programs(&text) {
                    match find_program(&program, path) {
                        None => drop(absent.entry(program).or_insert_with(|| file.clone())),
                        Some(at) => drop(there.entry(at).or_default().entry(program).or_insert_with(|| file.clone())),
                    }
                }
            }
        }
        let own: BTreeSet<PathBuf> = there.keys().filter(|file| !file.starts_with(root)).cloned().collect();
        let unseen = missing(own.iter(), (sandbox, hidden), &env, stop).await;
        let hidden: BTreeMap<String, String> = unseen.iter().filter_map(|file| there.remove(file)).flatten().collect();
        if !absent.is_empty() || !hidden.is_empty() {
            found.push(ScriptPrograms { lane: lane.name.clone(), absent, hidden });
        }
    }
    found
}
