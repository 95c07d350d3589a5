//! The input of a hook: a JSON object on standard input that describes the turn, and a short form
//! of it in variables.

use crate::id::{RunId, TreeId};
use crate::run::DoneTool;
use serde::Serialize;

/// The version of the input format.
const HOOK_SCHEMA_VERSION: u32 = 1;
/// Bytes of the paths in one variable. A program cannot be started with far longer variables.
const IN_A_VARIABLE: usize = 32 * 1024;

/// The turn that a hook follows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct HookInput {
    schema_version: u32,
    run: RunId,
    /// The number of the model's turn, from 1.
    turn: u64,
    /// The calls of the turn that ran, in order.
    tools: Vec<DoneTool>,
    /// The paths that differ between the two trees, sorted. If a tree is unknown, the paths that
    /// the calls report.
    changed: Vec<String>,
    tree: Trees,
}

/// The git trees of the files before the turn and after its last call. `None` if unknown.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Trees {
    pub(super) before: Option<TreeId>,
    pub(super) after: Option<TreeId>,
}

impl HookInput {
    /// Creates the input. `changed` has the paths that differ between the trees, if both are known.
    pub(super) fn new(run: RunId, turn: u64, tools: Vec<DoneTool>, changed: Option<Vec<String>>, tree: Trees) -> Self {
        let mut changed =
            changed.unwrap_or_else(|| tools.iter().flat_map(|tool| tool.changed.iter().cloned()).collect());
        changed.sort();
        changed.dedup();
        Self { schema_version: HOOK_SCHEMA_VERSION, run, turn, tools, changed, tree }
    }

    /// Returns the JSON object, followed by a newline.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec(self).unwrap_or_default();
        text.push(b'\n');
        text
    }

    /// Returns the variables by name. Paths are one per line, as many as fit.
    pub(super) fn variables(&self) -> Vec<(String, String)> {
        let tools: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
        let mut changed = String::new();
        for path in self.changed.iter().filter(|path| !path.contains(['\n', '\0'])) {
            if changed.len() + path.len() >= IN_A_VARIABLE {
                break;
            }
            changed.push_str(path);
            changed.push('\n');
        }
        let tree = |tree: &Option<TreeId>| tree.as_ref().map(ToString::to_string);
        let all = [
            ("FLEDGE_RUN", Some(self.run.to_string())),
            ("FLEDGE_TURN", Some(self.turn.to_string())),
            ("FLEDGE_TOOLS", Some(tools.join(" "))),
            ("FLEDGE_CHANGED", Some(changed)),
            ("FLEDGE_TREE_BEFORE", tree(&self.tree.before)),
            ("FLEDGE_TREE_AFTER", tree(&self.tree.after)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn from_paths(changed: Option<Vec<String>>) -> HookInput {
        let tool = |name: &str, success, changed: &[&str]| DoneTool {
            name: name.into(),
            success,
            changed: changed.iter().map(|path| (*path).to_owned()).collect(),
        };
        let tools = vec![
            tool("files-write", true, &["b"]),
            tool("shell-exec", false, &[]),
            tool("files-edit", true, &["a", "b"]),
        ];
        HookInput::new(RunId::new("r"), 3, tools, changed, Trees { before: None, after: Some(TreeId::empty()) })
    }

    #[test]
    fn a_hook_reads_the_turn_its_calls_and_what_they_changed() {
        let read: Value = serde_json::from_slice(&from_paths(None).to_json()).unwrap();
        let wanted = json!({
            "schema_version": 1,
            "run": "r",
            "turn": 3,
            "tools": [
                { "name": "files-write", "success": true, "changed": ["b"] },
                { "name": "shell-exec", "success": false, "changed": [] },
                { "name": "files-edit", "success": true, "changed": ["a", "b"] },
            ],
            "changed": ["a", "b"],
            "tree": { "before": null, "after": TreeId::empty() },
        });
        assert_eq!(read, wanted);
    }

    #[test]
    fn variables_hold_as_many_paths_as_fit_and_nothing_that_is_not_known() {
        let long = |number: usize| format!("{number:05}-{}", "x".repeat(1000));
        let paths: Vec<String> = (0..100).map(long).chain(["two\nlines".into()]).collect();
        let variables = from_paths(Some(paths.clone())).variables();
        let of = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(
            [of("FLEDGE_RUN"), of("FLEDGE_TURN"), of("FLEDGE_TOOLS"), of("FLEDGE_TREE_BEFORE")],
            [Some("r"), Some("3"), Some("files-write shell-exec files-edit"), None]
        );
        let lines: Vec<&str> = of("FLEDGE_CHANGED").unwrap().lines().collect();
        assert_eq!(lines, paths[..lines.len()].iter().map(String::as_str).collect::<Vec<_>>());
        assert!((20..40).contains(&lines.len()), "{}", lines.len());
    }
}
