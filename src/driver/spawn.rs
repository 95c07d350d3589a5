//! The tool `subagent-spawn`: its specification, its arguments, and the plan of a sub-agent. A
//! sub-agent gets only tools that its parent has.

use super::tool_lists::{patterns, share_tools};
use crate::chat::{Message, ToolSpec};
use crate::mcp::McpServers;
use crate::run::{Run, RunPlan, ToolAccess, ToolRule};
use crate::task::Tier;
use crate::tool::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

/// The heading of the project's instructions, at the end of a system prompt.
pub(super) const INSTRUCTIONS: &str = "\n\nThe project's instructions (";
/// The name of the tool.
pub(super) const NAME: &str = "subagent-spawn";
/// The lowest tier that has the tool, which spends money and may change files.
pub(super) const TIER: Tier = Tier::Tool;
/// The maximum number of bytes of a sub-agent's task.
const MAX_TASK: usize = 32 * 1024;
/// The maximum number of characters of a title.
const TITLE: usize = 60;

const DESCRIPTION: &str = "Give a part of your work to another agent with a separate conversation. \
    It knows only what `task` says and works in the same files. \
    You get its final report, the paths that it changed and what it used, not its conversation. \
    Use it for a search or an independent change. \
    Several calls in one turn run at the same time, at most four: give each its own files. \
    It spends this run's budget and can use at most half of the rest. \
    Only you and, at the end, the project's checks judge its work.";

const SYSTEM: &str = "You are a sub-agent: another agent works on a task in a repository and gave you a part of it. \
    No person can answer questions: decide by yourself. Work with the tools. \
    Paths are relative to the root of the repository. \
    Other agents may work in the same files: read before you change, change only what your part needs, and keep the \
    style of the surrounding code. \
    Do not change the checks or the files that define them (lanes/, specs/, CI files): such changes are refused or \
    undone. When your part is done or cannot be done, end with a short report and no tool call. \
    Report what you found or did, with paths, and what is left. The other agent sees only this report.";

/// The arguments of a call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SpawnRequest {
    /// The task of the sub-agent.
    task: String,
    /// A few words for people.
    title: Option<String>,
    /// The highest tier of its tools.
    tier: Option<String>,
    /// Its tools, by name or as globs.
    tools: Option<Vec<String>>,
    /// The maximum number of model calls that it may make.
    pub(super) turns: Option<u64>,
}

/// Returns the specification of the tool for the model.
pub(super) fn spec() -> ToolSpec {
    let tiers = Tier::WORDS.map(|(word, _)| word);
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["task"], "properties": {
        "task": {"type": "string", "description": "everything it must know: what to do, where, and what to report"},
        "title": {"type": "string", "description": "a few words for people"},
        "tier": {"type": "string", "enum": tiers, "description": "read: only reads; tool: also writes files; code: also runs commands; default: your tier"},
        "tools": {"type": "array", "items": {"type": "string"}, "description": "the tools that it gets, by name or glob; default: all of yours"},
        "turns": {"type": "integer", "minimum": 1, "description": "the maximum number of its model calls"}
    }});
    ToolSpec { name: NAME.into(), description: DESCRIPTION.into(), schema }
}

impl SpawnRequest {
    /// Parses the arguments of a call.
    ///
    /// # Errors
    /// A message for the model.
    pub(super) fn read(input: &Value) -> Result<Self, String> {
        let takes = "expected {task: string, title?: string, tier?: string, tools?: array, turns?: integer}";
        let wish = Self::deserialize(input).map_err(|error| format!("{NAME}: {error}; {takes}"))?;
        if wish.task.trim().is_empty() {
            return Err(format!("{NAME}: `task` is empty: say what the sub-agent must do"));
        }
        if wish.task.len() > MAX_TASK {
            let bytes = wish.task.len();
            return Err(format!("{NAME}: `task` has {bytes} bytes, and the limit is {MAX_TASK}: name files instead"));
        }
        if wish.turns == Some(0) {
            return Err(format!("{NAME}: `turns` must be at least 1, found 0"));
        }
        Ok(wish)
    }

    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// Returns the title for people: the given one, or the first line of the task.
    pub(super) fn title(&self) -> String {
        let given = self.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let title = given.unwrap_or_else(|| self.task.trim()).lines().next().unwrap_or_default();
        match title.char_indices().nth(TITLE) {
            None => title.to_owned(),
            Some((end, _)) => format!("{}…", &title[..end]),
        }
    }

    /// Returns the plan of a sub-agent, and its tier. `tier` is the tier of the parent.
    ///
    /// # Errors
    /// A message for the model, if the call asks for more than the parent has, or for tools that do
    /// not exist.
    pub(super) fn plan(&self, parent: &Run, tier: Tier, servers: &McpServers) -> Result<(RunPlan, Tier), String> {
        let asked = self.tier(tier)?;
        let named = self.tools.as_deref().map(patterns).transpose();
        let named = named.map_err(|fault| format!("{NAME}: `tools`: {}", fault.message))?;
        let has = |name: &str| {
            let least = match (Tool::find(name), name) {
                (Some(tool), _) => tool.flags.tier,
                (None, NAME) => TIER,
                (None, name) => servers.tier_of(name).map_or(Tier::Code, |tier| tier.max(TIER)),
            };
            least <= asked && named.as_ref().is_none_or(|named| named.is_match(name))
        };
        let tools: Vec<ToolSpec> = parent.tools().iter().filter(|tool| has(&tool.name)).cloned().collect();
        if tools.is_empty() {
            let known: Vec<&str> = parent.tools().iter().map(|tool| tool.name.as_str()).collect();
            let known = known.join(", ");
            return Err(format!("{NAME}: with these `tools` and `tier` it would have none of your tools ({known})"));
        }
        let rule = |rule: &ToolRule| ToolRule {
            access: if has(&rule.name) { rule.access } else { ToolAccess::Denied },
            ..rule.clone()
        };
        let (sandbox, network) = parent.sandbox();
        let plan = RunPlan {
            system: format!("{SYSTEM}{}", instructions(parent.system())),
            messages: vec![Message::user(&*self.task)],
            rules: parent.rules().iter().map(rule).collect(),
            ask_commands: parent.ask_commands().to_vec(),
            tools: share_tools(&tools),
            base: parent.base().cloned(),
            sandbox,
            network,
            ..RunPlan::default()
        };
        Ok((plan, asked))
    }

    fn tier(&self, parents: Tier) -> Result<Tier, String> {
        let Some(word) = &self.tier else { return Ok(parents) };
        let Some((_, tier)) = Tier::WORDS.iter().find(|(known, _)| known == word) else {
            return Err(format!("{NAME}: `tier` must be `read`, `tool` or `code`, found `{word}`"));
        };
        if *tier > parents {
            let ours = parents.name();
            return Err(format!(
                "{NAME}: the tier `{word}` is above your tier `{ours}`: a sub-agent cannot have more than you"
            ));
        }
        Ok(*tier)
    }
}

/// Returns the project's instructions from before the agent, at the end of the parent's prompt.
fn instructions(system: &str) -> &str {
    system.find(INSTRUCTIONS).map_or("", |at| &system[at..])
}
