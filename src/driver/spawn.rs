//! `subagent-spawn` as a model sees it: what it is told of it, what it may ask for, and what the sub-agent begins with. A sub-agent has no
//! tool that its parent does not have.

use super::alike;
use super::briefing::{INSTRUCTIONS, patterns};
use super::perform::Ready;
use crate::chat::{Message, ToolSpec};
use crate::run::{Plan, Run, ToolAccess, ToolRule};
use crate::task::Tier;
use crate::tool::Tool;
use serde::Deserialize;
use serde_json::{Value, json};

/// The tool's name.
pub(super) const NAME: &str = "subagent-spawn";
/// The lowest tier that has it: it spends, and may change files.
pub(super) const TIER: Tier = Tier::Tool;
/// Bytes of what a sub-agent is asked.
const MAX_TASK: usize = 32 * 1024;
/// Characters of a title that is made of a task.
const TITLE: usize = 60;

const DESCRIPTION: &str = "Hand a part of your work to another agent with a conversation of its own: it knows only what `task` says, works in \
    the same files, and you get its closing report, the paths that it changed and what it used, not its conversation. Good for a search or a \
    change that stands by itself; several calls in one turn work at the same time, at most four, so give each its own files. It spends \
    of this run's budget and has at most half of what is left. Nothing judges its work but you and, at the end, the project's checks.";

const SYSTEM: &str = "You are a sub-agent: an agent that works on a task in a repository has handed you a part of it. You are alone: nobody is \
    there to answer questions, so decide by yourself. Work with the tools; paths are relative to the repository's root. Others may be at work in \
    the same files, so read before you change, change only what your part needs, and keep the style of the code around. Checks and what \
    defines them (lanes/, specs/, CI files) are protected: changes there are refused or undone. When your part is done, or cannot be, end with a \
    short report and no tool call: what you found or did, with paths, and what is left. It is all that the other agent gets of you.";

/// What a model asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wish {
    /// What the sub-agent is to do.
    task: String,
    /// A few words for people.
    title: Option<String>,
    /// The highest tier of tools that it has.
    tier: Option<String>,
    /// The tools that it has, by name or as globs.
    tools: Option<Vec<String>>,
    /// Model calls that it may make.
    pub(super) turns: Option<u64>,
}

/// What the model is told of the tool.
pub(super) fn spec() -> ToolSpec {
    let tiers = Tier::WORDS.map(|(word, _)| word);
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["task"], "properties": {
        "task": {"type": "string", "description": "all that it has to know: what to do, where, and what to report"},
        "title": {"type": "string", "description": "a few words for people"},
        "tier": {"type": "string", "enum": tiers, "description": "read: only looks; tool: also writes files; code: also runs commands; yours by default"},
        "tools": {"type": "array", "items": {"type": "string"}, "description": "only these of your tools, by name or as globs; all by default"},
        "turns": {"type": "integer", "minimum": 1, "description": "model calls that it may make at most"}
    }});
    ToolSpec { name: NAME.into(), description: DESCRIPTION.into(), schema }
}

impl Wish {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// What is wrong with them, for the model.
    pub(super) fn read(input: &Value) -> Result<Self, String> {
        let takes = "it takes {task: string, title?: string, tier?: string, tools?: array, turns?: integer}";
        let wish = Self::deserialize(input).map_err(|error| format!("{NAME}: {error}; {takes}"))?;
        if wish.task.trim().is_empty() {
            return Err(format!("{NAME}: `task` is empty: say what the sub-agent is to do"));
        }
        if wish.task.len() > MAX_TASK {
            let bytes = wish.task.len();
            return Err(format!("{NAME}: `task` has {bytes} bytes, and {MAX_TASK} are allowed: name files instead"));
        }
        if wish.turns == Some(0) {
            return Err(format!("{NAME}: `turns` must be a whole number from 1 on, found 0"));
        }
        Ok(wish)
    }

    /// What it is to do.
    pub(super) fn task(&self) -> &str {
        &self.task
    }

    /// What people call it.
    pub(super) fn title(&self) -> String {
        let given = self.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
        let title = given.unwrap_or_else(|| self.task.trim()).lines().next().unwrap_or_default();
        match title.char_indices().nth(TITLE) {
            None => title.to_owned(),
            Some((end, _)) => format!("{}…", &title[..end]),
        }
    }

    /// What a sub-agent of this run, which is of this tier, begins with, and its own tier.
    ///
    /// # Errors
    /// When it asks for more than its parent has, or for tools that there are none of; for the model.
    pub(super) fn plan(&self, parent: &Run, tier: Tier, ready: &Ready) -> Result<(Plan, Tier), String> {
        let asked = self.tier(tier)?;
        let named = self.tools.as_deref().map(patterns).transpose();
        let named = named.map_err(|fault| format!("{NAME}: `tools`: {}", fault.message))?;
        let has = |name: &str| {
            let least = match (Tool::find(name), name) {
                (Some(tool), _) => tool.flags.tier,
                (None, NAME) => TIER,
                (None, name) => ready.servers.tier_of(name).map_or(Tier::Code, |tier| tier.max(TIER)),
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
        let (sandbox, network) = parent.wall();
        let plan = Plan {
            system: format!("{SYSTEM}{}", instructions(parent.system())),
            messages: vec![Message::user(&*self.task)],
            rules: parent.rules().iter().map(rule).collect(),
            ask_commands: parent.ask_commands().to_vec(),
            tools: alike::tools(&tools),
            base: parent.base().cloned(),
            sandbox,
            network,
            ..Plan::default()
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
                "{NAME}: the tier `{word}` is above your own, `{ours}`: a sub-agent has no more than you"
            ));
        }
        Ok(*tier)
    }
}

/// The project's instructions as they were before the agent: they stand at the end of its parent's prompt.
fn instructions(system: &str) -> &str {
    system.find(INSTRUCTIONS).map_or("", |at| &system[at..])
}
