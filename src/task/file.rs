//! The parser of task files: Markdown with optional front matter. It checks the front matter key by
//! key and reports all problems at once.

use super::hidden::check_hidden;
use super::tools::{check_ask, check_tool};
use super::{
    Baseline, Commit, Expect, GateChoice, Isolation, OnTamper, ParamValues, STUCK_AFTER, TaskBudget, TaskDefaults,
};
use super::{ParamSpec, candidates, params, timetable};
use super::{SpecChoice, Task, Tier, ToolChoice};
use crate::yaml::{FilePlace, MarkdownDocument, Problem, Problems, TableReader, YamlNode, YamlValue, document};
use std::path::Path;

/// The keys of the front matter of a task.
#[rustfmt::skip]
pub const TASK_KEYS: [&str; 27] = [
    "allow_edit", "approve", "base", "baseline", "budget", "candidates", "commit", "context", "expect", "files", "hidden", "isolation", "lane", "max_retries", "mcp",
    "model", "needs", "on_tamper", "output_schema", "params", "protect", "schedule", "specs", "stuck_after", "tier", "title", "tools",
];

/// Keys of the configuration and of other tools, each with the name of the key here.
const OTHERS: &[(&str, &str)] = &[
    ("approval", "approve"),
    ("checks", "lane"),
    ("cron", "schedule"),
    ("default_model", "model"),
    ("depends", "needs"),
    ("depends_on", "needs"),
    ("gate", "lane"),
    ("mcpServers", "mcp"),
    ("mcp_servers", "mcp"),
    ("retries", "max_retries"),
    ("schema", "output_schema"),
    ("time", "budget"),
    ("turns", "budget"),
    ("verify", "lane"),
];

/// Keys that only the configuration of a project or a user may have.
const OF_THE_PROJECT: &[&str] = &["hooks", "limits", "sync", "trust"];

/// The problems of an invalid task file. The message has one line per problem, with the file's name
/// and the place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .problems.within(.file))]
pub struct TaskError {
    /// The file, as the caller named it.
    pub file: String,
    /// The problems in the file.
    pub problems: Problems,
}

/// Returns the place of a value in the front matter of a task. `None` if the key does not have the
/// value.
pub fn place_of(text: &str, key: &str, value: &str) -> Option<FilePlace> {
    let YamlValue::Map(entries) = document(text).ok()?.front?.value else { return None };
    let (_, node) = entries.into_iter().find(|(own, _)| own.text == key)?;
    let items = if let YamlValue::List(items) = node.value { items } else { vec![node] };
    items.iter().find(|item| item.as_text() == Some(value)).map(|item| item.place)
}

/// Parses a task. `source` names the file in messages, and `values` fill in the task's parameters.
/// Without declared parameters and without values, the body is taken literally, and `{{` has no
/// meaning.
///
/// # Errors
/// [`TaskError`] with all problems.
pub fn parse(text: &str, source: &str, values: &ParamValues) -> Result<Task, TaskError> {
    parse_with(text, source, values, &TaskDefaults::default())
}

/// Parses a task with these defaults for missing keys. See [`parse`].
///
/// # Errors
/// [`TaskError`] with all problems.
pub fn parse_with(text: &str, source: &str, values: &ParamValues, defaults: &TaskDefaults) -> Result<Task, TaskError> {
    let fault = |problems: Problems| TaskError { file: source.into(), problems: problems.seen_in(text) };
    let MarkdownDocument { front, body, body_line } = document(text).map_err(|problem| fault(problem.into()))?;
    let mut problems = Problems::default();
    let front =
        front.unwrap_or(YamlNode { place: FilePlace { line: 1, column: 1 }, value: YamlValue::Map(Vec::new()) });
    let Some(mut table) = TableReader::open(&front, "the front matter", &mut problems) else {
        return Err(fault(problems));
    };
    let prompt = match table.take("params").map(|node| params::declared(node, &mut problems)) {
        None if values.is_empty() => body.to_owned(),
        Some(None) => String::new(), // the problems of the parameters are already recorded
        declared => {
            if declared.is_none() {
                params::refuse_unused(body, values, &mut problems);
            }
            let values = params::resolve(declared.flatten().as_deref(), values, &mut problems);
            params::fill(body, body_line, &values, &mut problems)
        }
    };
    if body.trim().is_empty() {
        problems.push(if text.trim().is_empty() {
            Problem::of_file("the file is empty: the task has no text").hint("describe the task in it")
        } else {
            let empty = Problem::at(FilePlace { line: body_line, column: 1 }, "the task has no text");
            empty.hint("write the task below the front matter")
        });
    }
    let mut task = Task { source: source.into(), ..defaults.apply_to(Task::from_prompt(prompt.trim())) };
    task.title = match table.text("title", &mut problems) {
        Some(title) => one_line(title),
        None if source == "-" => title_of(&task.prompt, &opening(&task.prompt)),
        None => title_of(&task.prompt, file_stem(source)),
    };
    read_gate(&mut table, &mut task, &mut problems);
    read_paths(&mut table, &mut task, &mut problems);
    read_means(&mut table, &mut task, &mut problems);
    if let Some(node) = table.take("schedule") {
        let _heeded_by_who_serves = timetable::read(node, &mut problems);
    }
    task.isolation = table.one_of("isolation", &Isolation::WORDS, &mut problems).unwrap_or(task.isolation);
    task.base = table.text("base", &mut problems).map(str::to_owned);
    table.refuse(OF_THE_PROJECT, ("is a key of fledge.yaml, not of a task", "move it to fledge.yaml"), &mut problems);
    table.finish_with(OTHERS, &mut problems);
    if problems.is_empty() { Ok(task) } else { Err(fault(problems)) }
}

/// Returns the parameters that a task declares.
///
/// # Errors
/// [`TaskError`] if the front matter or one of its parameters is invalid.
pub fn declared_params(text: &str, source: &str) -> Result<Vec<ParamSpec>, TaskError> {
    let fault = |problems: Problems| TaskError { file: source.into(), problems: problems.seen_in(text) };
    let MarkdownDocument { front, .. } = document(text).map_err(|problem| fault(problem.into()))?;
    let Some(YamlNode { value: YamlValue::Map(entries), .. }) = front else { return Ok(Vec::new()) };
    let mut problems = Problems::default();
    let node = entries.iter().find(|(key, _)| key.text == "params").map(|(_, node)| node);
    let specs = node.and_then(|node| params::declared(node, &mut problems)).unwrap_or_default();
    if problems.is_empty() { Ok(specs.into_iter().map(|(_, spec)| spec).collect()) } else { Err(fault(problems)) }
}

/// Returns the entries of a task's `needs`, each with its place. Returns nothing if they cannot be
/// read; [`parse`] reports the reason.
pub fn needs(text: &str) -> Vec<(String, FilePlace)> {
    let front = document(text).ok().and_then(|document| document.front);
    let Some(YamlNode { value: YamlValue::Map(entries), .. }) = front else { return Vec::new() };
    let listed = entries.into_iter().find(|(key, _)| key.text == "needs").map(|(_, node)| node.value);
    let Some(YamlValue::List(items)) = listed else { return Vec::new() };
    items.iter().filter_map(|item| Some((item.as_text()?.to_owned(), item.place))).collect()
}

/// Returns whether a task has `candidates`. [`parse`] reports their problems.
pub fn races(text: &str) -> bool {
    let front = document(text).ok().and_then(|document| document.front);
    matches!(front, Some(YamlNode { value: YamlValue::Map(entries), .. }) if entries.iter().any(|(key, _)| key.text == "candidates"))
}

fn read_gate(table: &mut TableReader<'_>, task: &mut Task, problems: &mut Problems) {
    match table.take("lane") {
        None => {}
        Some(YamlNode { value: YamlValue::Bool(false), .. }) => task.gate = GateChoice::Skip,
        Some(YamlNode { value: YamlValue::List(items), place }) if items.is_empty() => {
            let empty = Problem::at(*place, "`lane` is an empty list");
            problems.push(empty.hint("write `false` to skip verification"));
        }
        Some(YamlNode { value: YamlValue::Text(_) | YamlValue::List(_), .. }) => {
            task.gate = table.text_or_texts("lane", problems).map_or(GateChoice::Skip, GateChoice::Lanes);
        }
        Some(node) => problems.push(
            Problem::at(
                node.place,
                format!("expected `lane` to be a lane's name, a list of names or `false`, found {}", node.describe()),
            )
            .hint("write `lane: verify`"),
        ),
    }
    let retries = table.int("max_retries", 0..=100, problems).and_then(|int| u32::try_from(int).ok());
    task.max_retries = retries.unwrap_or(task.max_retries);
    let stuck = table.int("stuck_after", STUCK_AFTER, problems);
    task.stuck_after = stuck.and_then(|int| u32::try_from(int).ok()).or(task.stuck_after);
    task.on_tamper = table.one_of("on_tamper", &OnTamper::WORDS, problems).unwrap_or(task.on_tamper);
    task.expect = table.one_of("expect", &Expect::WORDS, problems);
    task.baseline = table.one_of("baseline", &Baseline::WORDS, problems);
    task.commit = table.one_of("commit", &Commit::WORDS, problems).or(task.commit);
    if task.expect.is_some() && task.gate == GateChoice::Skip {
        let place = table.place_of("expect").unwrap_or(table.place);
        let unjudged = Problem::at(place, "`expect` needs a gate, but `lane: false` skips verification");
        problems.push(unjudged.hint("remove one of the two"));
    } else if task.expect.is_some() && task.baseline == Some(Baseline::Never) {
        let place = table.place_of("baseline").unwrap_or(table.place);
        let unjudged =
            Problem::at(place, "`expect` needs a gate run on the base, but `baseline: never` skips that run");
        problems.push(unjudged.hint("remove one of the two"));
    }
}

fn read_paths(table: &mut TableReader<'_>, task: &mut Task, problems: &mut Problems) {
    if let Some(YamlNode { value: YamlValue::List(items), place }) = table.take("files")
        && items.is_empty()
    {
        let empty = Problem::at(*place, "`files` is an empty list: the agent could change no file");
        problems.push(empty.hint("list paths, or remove the key to allow all paths except protected ones"));
    }
    task.files = table.texts_where("files", check_glob, problems).unwrap_or_default();
    task.protect = table.texts_where("protect", check_glob, problems).unwrap_or_default();
    task.allow_edit = table.texts_where("allow_edit", check_glob, problems).unwrap_or_default();
    task.hidden.extend(table.text_or_texts_where("hidden", check_hidden, problems).unwrap_or_default());
    task.context = table.texts_where("context", check_path, problems).unwrap_or_default();
    if let Some(path) = table.text("output_schema", problems) {
        match (check_path(path), table.place_of("output_schema")) {
            (Err((why, hint)), Some(place)) => {
                problems.push(Problem::at(place, format!("`output_schema`: {why}")).hint(hint));
            }
            _ => task.output_schema = Some(path.to_owned()),
        }
    }
    match table.take("specs") {
        Some(YamlNode { value: YamlValue::List(_), .. }) => {
            task.specs = table.texts("specs", problems).map_or(SpecChoice::None, SpecChoice::Modules);
        }
        _ => {
            let words = [("auto", SpecChoice::Auto), ("all", SpecChoice::All), ("none", SpecChoice::None)];
            task.specs = table.one_of("specs", &words, problems).unwrap_or(SpecChoice::Auto);
        }
    }
}

fn read_means(table: &mut TableReader<'_>, task: &mut Task, problems: &mut Problems) {
    task.models = table.text_or_texts("model", problems).unwrap_or_default();
    task.tier = table.one_of("tier", &Tier::WORDS, problems).unwrap_or(task.tier);
    if let Some(mut tools) = table.take("tools").and_then(|node| TableReader::open(node, "`tools`", problems)) {
        let ToolChoice { allow, deny } = ToolChoice::default();
        task.tools = ToolChoice {
            allow: tools.texts_where("allow", check_tool, problems).unwrap_or(allow),
            deny: tools.texts_where("deny", check_tool, problems).unwrap_or(deny),
        };
        tools.finish(problems);
    }
    if let Some(mut approve) = table.take("approve").and_then(|node| TableReader::open(node, "`approve`", problems)) {
        task.approve.extend(approve.texts_where("ask", check_ask, problems).unwrap_or_default());
        approve.finish(problems);
    }
    task.mcp = table.texts("mcp", problems).unwrap_or_default();
    task.needs = table.texts("needs", problems).unwrap_or_default();
    task.candidates = candidates::read(table, problems);
    if let Some(node) = table.take("budget") {
        task.budget = read_budget(node, problems).over(&task.budget);
    }
}

/// Reads the limits of a `budget`.
pub(crate) fn read_budget(node: &YamlNode, problems: &mut Problems) -> TaskBudget {
    let Some(mut budget) = TableReader::open(node, "`budget`", problems) else { return TaskBudget::default() };
    let mut count = |key, problems: &mut _| budget.int(key, 1..=i64::MAX, problems).and_then(|n| u64::try_from(n).ok());
    let (turns, tokens) = (count("turns", problems), count("tokens", problems));
    let usd_micros = budget.dollars("usd", problems);
    let time = budget.duration("time", problems).map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    budget.finish(problems);
    TaskBudget { turns, tokens, usd_micros, time_ms: time }
}

/// Checks a glob over paths of the workspace. An error is the problem and a hint.
pub(crate) fn check_glob(glob: &str) -> Result<(), (String, String)> {
    check_path(glob)?;
    if glob.starts_with('!') {
        return Err(("a glob cannot begin with `!`".into(), "list the paths to include, not those to exclude".into()));
    }
    if glob.ends_with('/') {
        return Err(("matches no file".into(), format!("write `{glob}**` to match all files below the folder")));
    }
    check_pattern(glob)
}

pub(super) fn check_pattern(glob: &str) -> Result<(), (String, String)> {
    let fault = |error: globset::Error| (format!("invalid glob: {}", error.kind()), "fix the pattern".into());
    globset::Glob::new(glob).map(drop).map_err(fault)
}

fn check_path(path: &str) -> Result<(), (String, String)> {
    let refuse = |why: &str, hint: &str| Err((why.into(), hint.into()));
    if path.starts_with(['/', '~']) {
        return refuse("path must be relative to the workspace", "write the path from the workspace's root");
    }
    if path.split('/').any(|part| part == "..") {
        return refuse("`..` would leave the workspace", "name a path inside it");
    }
    if path.starts_with("./") {
        return refuse("`./` is not allowed", "write the path without `./`");
    }
    Ok(())
}

/// Returns the first Markdown heading outside code blocks, or else `fallback`.
pub(super) fn title_of(prompt: &str, fallback: &str) -> String {
    let mut fence: Option<&str> = None;
    for line in prompt.lines().map(str::trim) {
        match (fence, ["```", "~~~"].into_iter().find(|mark| line.starts_with(mark))) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => {
                let text = line.trim_start_matches('#');
                let level = line.len() - text.len();
                let title = one_line(text.trim_end_matches('#'));
                if (1..=6).contains(&level) && text.starts_with([' ', '\t']) && !title.is_empty() {
                    return title;
                }
            }
        }
    }
    fallback.into()
}

/// Returns the first line of a task that comes from no file. The line is not cut, because a part of
/// a secret could not be masked.
pub(super) fn opening(prompt: &str) -> String {
    one_line(prompt.lines().find(|line| !line.trim().is_empty()).unwrap_or("task"))
}

/// Removes line breaks and control characters, because titles appear in lists and commit messages.
fn one_line(text: &str) -> String {
    text.split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn file_stem(source: &str) -> &str {
    Path::new(source).file_stem().and_then(|stem| stem.to_str()).unwrap_or("task")
}
