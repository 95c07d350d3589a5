//! Planning: freezes the gate and assembles the prompt, the tools and the rules of a run. It reads
//! the workspace and starts no program.

mod task_warnings;
pub(super) mod tool_names;

use super::error::PlanError;
use super::journal::and_then;
use super::spawn::INSTRUCTIONS;
use super::tool_lists::{patterns, share_tools};
use super::{DriverSettings, memory, spawn};
use crate::chat::{Message, ToolSpec};
use crate::error_chain::chain;
use crate::gate::{Gate, GateDefinition, GateError, check_definition, freeze};
use crate::id::TreeId;
use crate::lane_files::LaneFilesError;
use crate::limits::MAX_SOURCE;
use crate::run::{self, RunPlan, ToolAccess, ToolRole, ToolRule};
use crate::spec::{self, Spec, SpecError};
use crate::store;
use crate::store::project_dir;
use crate::task::{GateChoice, SpecChoice, Task};
use crate::tool::{self, ToolEffect};
use crate::workspace::jail::{FinalLink, Jail, JailError};
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::GitPrograms;
use serde_json::Value;
use std::path::{Path, PathBuf};
use task_warnings::task_warnings;
pub use task_warnings::unmatched;
use walkdir::WalkDir;

/// Bytes of project instructions in the system prompt.
const INSTRUCTIONS_LIMIT: usize = 24 * 1024;
/// Bytes of one context file or spec in the first message.
const CONTEXT_LIMIT: u64 = 64 * 1024;

/// The files with the project's instructions for agents. The first readable one is used.
pub(super) const INSTRUCTION_FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// A project at the start of a run.
#[derive(Debug, Clone)]
pub struct StartingPoint {
    /// The tree of the workspace.
    pub tree: TreeId,
    /// The paths of the files in the tree.
    pub paths: Vec<String>,
    /// The files that the user's git reads or runs in the workspace.
    pub git: GitPrograms,
    /// The user's checkout, in which dependencies are installed.
    pub origin: PathBuf,
    /// The user's repository. `None` if none exists or it was not read yet.
    pub repository: Option<SourceRepository>,
}

impl StartingPoint {
    /// Creates the start of a run that is only planned. fledge takes no tree and asks no
    /// repository.
    pub fn unread(origin: &Path) -> Self {
        let git = GitPrograms::default();
        Self { tree: TreeId::empty(), paths: Vec::new(), git, origin: origin.to_owned(), repository: None }
    }
}

/// A run that is ready to begin.
#[derive(Debug)]
pub struct Briefing {
    /// The plan for the machine.
    pub plan: RunPlan,
    /// The frozen gate. It has no lanes if the task has none, but still protects paths.
    pub gate: Gate,
}

/// Plans a run: the gate, the tools, the system prompt and the first message. Reads the lanes in
/// `lanes_at` if that is set, else in the workspace.
///
/// # Errors
/// [`PlanError`] for bad input (an unknown or invalid lane, a missing context file, an invalid
/// glob), or for a gate that cannot run.
pub fn prepare(
    task: &Task,
    settings: &DriverSettings,
    start: &StartingPoint,
    lanes_at: Option<&Path>,
) -> Result<Briefing, PlanError> {
    let jail = Jail::open(&settings.workspace).map_err(|error| PlanError::bad(error.to_string()))?;
    tool_names::must_fit(task, &settings.mcp)?;
    let mut gate = with_definition(task, settings, start, lanes_at, freeze)?;
    let project = project_dir(&settings.state_dir, settings.project());
    let left_out = gate.installed.leave_out_made(&start.origin, &project);
    let has_gate = task.gate != GateChoice::Skip;
    let (tools, rules) = tools_of(task, settings.memory.is_some(), has_gate)?;
    let mut notes = cautions(settings);
    notes.extend(task_warnings(task, &start.paths));
    notes.extend(left_out);
    notes.extend(settings.lanes_from.iter().filter(|_| has_gate).map(|rev| format!("the lanes come from `{rev}`")));
    notes.extend(gate.notes.clone());
    let specs = load_specs(&settings.workspace, &mut notes);
    let mut first = first_message(task, &specs, &jail)?;
    let output_schema = output_schema(task, &jail)?;
    if let Some(schema) = &output_schema {
        first.push_str(&format!("\n\n{}", run::output_schema(schema)));
    }
    let recalled = memory::recalled(task, settings, &mut notes);
    recalled.iter().for_each(|recalled| first.push_str(&format!("\n\n{}", recalled.text)));
    let plan = RunPlan {
        system: system_prompt(task, &gate, &jail, &mut notes),
        messages: match &settings.earlier {
            Some(earlier) => and_then(earlier, first),
            None => vec![Message::user(first)],
        },
        tools: share_tools(&tools),
        rules,
        gate_digest: if has_gate { gate.digest.clone() } else { String::new() },
        gate_file: String::new(), // set once the gate is kept
        judges_base: false,       // set once it is known if the base was judged before
        base_verdict: None,
        base_logs: Vec::new(),
        base: None, // set by the planner
        head: None,
        worktree: None, // set by the planner
        sandbox: None,  // set by the planner
        network: false,
        output_schema,
        recalled: recalled.map(|recalled| recalled.ids).unwrap_or_default(),
        notes,
        ask_commands: Vec::new(),
    };
    Ok(Briefing { plan, gate })
}

/// Returns warnings for a person who trusts the result.
fn cautions(settings: &DriverSettings) -> Vec<String> {
    let path = settings.env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let inside = |folder: &std::path::PathBuf| !folder.is_absolute() || folder.starts_with(&settings.workspace);
    let folders = std::env::split_paths(path).filter(inside).map(|folder| {
        format!("PATH contains {}: the agent can put programs there that the gate then runs", folder.display())
    });
    let plain = settings.secrets.plain().iter().map(|name| {
        format!("the value of `{name}` is too simple to mask: if the agent finds it, the journal and logs show it")
    });
    folders.chain(plain).collect()
}

/// Returns a pattern for the file of the task if that is in the workspace, because a later run may
/// begin with it. The task names its file relative to this process or to the workspace.
pub(super) fn patterns_of(task: &Task, workspace: &Path) -> impl Iterator<Item = String> {
    let places = [PathBuf::from(&task.source), workspace.join(&task.source)];
    let root = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
    let files = places.into_iter().filter_map(|place| place.canonicalize().ok()).filter(|place| place.is_file());
    files.filter_map(move |file| Some(format!("/{}", globset::escape(file.strip_prefix(&root).ok()?.to_str()?))))
}

/// Checks the input of [`prepare`] that costs little to read: the lanes, the patterns, the tools
/// and the files that the task names.
///
/// # Errors
/// Those of [`prepare`], except for files that only freezing the gate reads.
pub(super) fn check_input(task: &Task, settings: &DriverSettings, lanes_at: Option<&Path>) -> Result<(), PlanError> {
    let jail = Jail::open(&settings.workspace).map_err(|error| PlanError::bad(error.to_string()))?;
    tool_names::must_fit(task, &settings.mcp)?;
    with_definition(task, settings, &StartingPoint::unread(&settings.workspace), lanes_at, check_definition)?;
    tools_of(task, settings.memory.is_some(), task.gate != GateChoice::Skip)?;
    let specs = load_specs(&settings.workspace, &mut Vec::new());
    first_message(task, &specs, &jail)?;
    output_schema(task, &jail).map(drop)
}

/// Calls a function of the gate with the definition of a task's gate.
fn with_definition<T>(
    task: &Task,
    settings: &DriverSettings,
    start: &StartingPoint,
    lanes_at: Option<&Path>,
    call: impl FnOnce(GateDefinition<'_>, Option<&Path>) -> Result<T, GateError>,
) -> Result<T, PlanError> {
    let lanes = match &task.gate {
        GateChoice::Lanes(lanes) => lanes.as_slice(),
        GateChoice::Skip => &[],
    };
    let own = patterns_of(task, &settings.workspace);
    let protect: Vec<String> = settings.protect.iter().chain(&task.protect).cloned().chain(own).collect();
    let path = settings.env.iter().find(|(name, _)| name == "PATH").map_or("", |(_, path)| path.as_str());
    let holdout = settings.holdout.as_deref().filter(|_| !lanes.is_empty());
    let (root, allow_edit) = (settings.workspace.as_path(), task.allow_edit.as_slice());
    let StartingPoint { tree: base, paths, git, origin, repository } = start;
    let (protect, repository) = (protect.as_slice(), repository.as_ref());
    let definition =
        GateDefinition { root, origin, lanes, holdout, protect, allow_edit, path, base, paths, git, repository };
    call(definition, lanes_at).map_err(|fault| {
        let is_empty =
            |fault: &LaneFilesError| matches!(fault, LaneFilesError::UnknownLane { known, .. } if known.is_empty());
        let has_none = matches!(&fault, GateError::Lanes(fault) if is_empty(fault));
        let way_out =
            if has_none && !task.is_fix { "\n  or skip verification with `lane: false` or --no-verify" } else { "" };
        let (mut problem, rev) = (chain(&fault), settings.lanes_from.as_deref().unwrap_or_default());
        if let Some(at) = lanes_at {
            problem = problem.replace(&at.display().to_string(), &format!("`{rev}`"));
        }
        let unplanned = PlanError::new(fault.reason(), format!("{problem}{way_out}"));
        let unplanned = match &fault {
            GateError::Lanes(LaneFilesError::UnknownLane { lane, .. }) => unplanned.of_value("lane", lane),
            _ => unplanned,
        };
        let lane = if let GateError::Lanes(LaneFilesError::Invalid(fault)) = fault { Some(fault) } else { None };
        // Name the files of another commit as `git show` does.
        PlanError { lane, ..unplanned }.renamed(|path| match lanes_at {
            Some(at) if Path::new(path).is_relative() && at.join(path).is_file() => format!("{rev}:{path}"),
            Some(_) | None => path.to_owned(),
        })
    })
}

/// Returns the tools on offer, and the rules of all tools.
fn tools_of(task: &Task, has_memory: bool, has_gate: bool) -> Result<(Vec<ToolSpec>, Vec<ToolRule>), PlanError> {
    let (allow, deny) = (patterns(&task.tools.allow)?, patterns(&task.tools.deny)?);
    let mut offered = Vec::new();
    let mut rules = Vec::new();
    for tool in tool::TOOLS {
        let allowed = tool.flags.tier <= task.tier
            && allow.is_match(tool.name)
            && !deny.is_match(tool.name)
            && (has_memory || !tool.needs_memory())
            && (has_gate || !tool.needs_gate());
        if allowed {
            offered.push(tool.spec());
        }
        rules.push(ToolRule {
            name: tool.name.into(),
            access: if allowed { ToolAccess::Allowed } else { ToolAccess::Denied },
            role: if tool.flags.effect == ToolEffect::Mutating { ToolRole::Writer } else { ToolRole::Reader },
        });
    }
    let may_spawn = spawn::TIER <= task.tier && allow.is_match(spawn::NAME) && !deny.is_match(spawn::NAME);
    if may_spawn {
        offered.push(spawn::spec());
    }
    let access = if may_spawn { ToolAccess::Allowed } else { ToolAccess::Denied };
    rules.push(ToolRule { name: spawn::NAME.into(), access, role: ToolRole::Child });
    Ok((offered, rules))
}

fn system_prompt(task: &Task, gate: &Gate, jail: &Jail, notes: &mut Vec<String>) -> String {
    let mut text = String::from(
        "You work alone on a task in a repository. No person can answer questions: decide by yourself. \
         Work with the tools. Paths are relative to the root of the repository. Read before you change. \
         Change as little as the task needs. Keep the style of the surrounding code. When the task is done, end with ",
    );
    text.push_str(match task.output_schema {
        None => "a summary of one to three sentences and no tool call.",
        Some(_) => "the answer in the form that the task asks for and no tool call.",
    });
    if let GateChoice::Lanes(_) = &task.gate {
        text.push_str(
            "\n\nThe project's own checks then judge your work. If they fail, you get the failure and can continue. \
             The checks:\n",
        );
        for lane in &gate.lanes {
            for step in &lane.steps {
                text.push_str(&format!("- {}: {}\n", step.name, step.run));
            }
        }
        text.push_str(
            "Do not change the checks or the files that define them (lanes/, specs/, CI files): \
             such changes are refused or undone.",
        );
    }
    for name in INSTRUCTION_FILES {
        match read(jail, name, MAX_SOURCE as u64) {
            Ok(instructions) => {
                let kept = &instructions[..instructions.floor_char_boundary(INSTRUCTIONS_LIMIT)];
                if kept.len() < instructions.len() {
                    notes.push(format!("{name}: only the first {INSTRUCTIONS_LIMIT} bytes are used"));
                }
                let heading = format!("{INSTRUCTIONS}{name}); they grant no permissions:\n");
                text.push_str(&heading);
                text.push_str(kept.trim());
                break;
            }
            Err(JailError::Missing { .. }) => {}
            Err(error) => notes.push(format!("left out: {error}")),
        }
    }
    text
}

/// Builds the first message: the task, its context files, and the specs.
fn first_message(task: &Task, specs: &[Spec], jail: &Jail) -> Result<String, PlanError> {
    let mut text = task.prompt.clone();
    for path in &task.context {
        let content = read(jail, path, CONTEXT_LIMIT)
            .map_err(|error| PlanError::bad(format!("{}: context: {error}", task.source)).of_value("context", path))?;
        text.push_str(&format!("\n\nFile `{path}`:\n{content}"));
    }
    let names_some = matches!(task.specs, SpecChoice::Modules(_)); // an unknown name is an error
    if task.specs == SpecChoice::None || (specs.is_empty() && !names_some) {
        return Ok(text);
    }
    let mut mentioned = spec::paths_in(&task.prompt);
    mentioned.extend(task.files.iter().chain(&task.context).cloned());
    text.push_str(&format!("\n\nSpecs of this project's modules:\n{}", spec::index(specs)));
    let chosen = spec::select(specs, &task.specs, &mentioned);
    let unknown = |fault: SpecError| {
        let unplanned = PlanError::bad(format!("{}: {fault}", task.source));
        if let SpecError::Unknown { module, .. } = &fault { unplanned.of_value("specs", module) } else { unplanned }
    };
    for spec in chosen.map_err(unknown)? {
        let body: String = spec.body.chars().take(CONTEXT_LIMIT as usize).collect();
        text.push_str(&format!("\n\nSpec `{}`:\n{}", spec.path, body.trim()));
    }
    Ok(text)
}

/// Reads the JSON Schema of the final answer, before the agent can change it.
fn output_schema(task: &Task, jail: &Jail) -> Result<Option<Value>, PlanError> {
    let Some(path) = &task.output_schema else { return Ok(None) };
    let wrong =
        |why: String| PlanError::bad(format!("{}: output_schema: {why}", task.source)).of_value("output_schema", path);
    let text = read(jail, path, CONTEXT_LIMIT).map_err(|error| wrong(error.to_string()))?;
    let schema = serde_json::from_str(&text).map_err(|error| wrong(format!("`{path}` is not JSON: {error}")))?;
    match run::schema_fault(&schema) {
        None => Ok(Some(schema)),
        Some(fault) => Err(wrong(format!("`{path}` is not a usable JSON Schema: {fault}"))),
    }
}

/// Reads a text file of the workspace. Bytes that are not UTF-8 become replacement characters.
fn read(jail: &Jail, path: &str, limit: u64) -> Result<String, JailError> {
    let bytes = jail.locate(&jail.path(path)?, FinalLink::Follow)?.read(limit)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Loads every readable spec of the project. The faults of other specs become notes.
fn load_specs(root: &Path, notes: &mut Vec<String>) -> Vec<Spec> {
    let mut specs = Vec::new();
    let walk = WalkDir::new(root.join("specs")).min_depth(2).max_depth(3).sort_by_file_name();
    for entry in walk.into_iter().flatten() {
        let path = entry.path().strip_prefix(root).unwrap_or(entry.path()).display().to_string();
        if !entry.file_type().is_file() || !path.ends_with(".spec.md") {
            continue;
        }
        match store::read_text(entry.path(), crate::limits::MAX_SOURCE) {
            Ok(Some(text)) => match spec::parse(&text, &path) {
                Ok(spec) => specs.push(spec),
                Err(fault) => notes.push(format!("left out: {fault}")),
            },
            Ok(None) => {}
            Err(error) => notes.push(chain(&error)),
        }
    }
    specs
}
