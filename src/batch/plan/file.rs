//! Parser of batch files: YAML with a check of every key. It reports all problems at once.

use super::matrix::{Combination, Dimension, Matrix, MatrixEntry, REPOSITORY, TASK};
use crate::task::{Commit, Isolation, OnTamper, TaskDefaults, TaskError, Tier, read_budget};
use crate::yaml::{FilePlace, Problem, Problems, TableReader, YamlKey, YamlNode, YamlValue, nothing_in};
use std::time::Duration;

/// The maximum number of parallel runs that a batch may ask for.
pub const MOST_AT_ONCE: i64 = 1024;
/// The maximum number of further runs for a job whose run ended in an error.
pub const MOST_RETRIES: i64 = 20;

/// The content of a batch file. Paths are as written, relative to the folder of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchFile {
    /// Task files, folders and globs, each with its place in the file.
    pub tasks: Vec<(FilePlace, String)>,
    /// Values for the parameters of the tasks.
    pub matrix: Matrix,
    /// The repositories to work on; if empty, the folder of the command.
    pub repositories: Vec<RepositoryEntry>,
    /// Defaults for tasks that do not set these keys.
    pub defaults: TaskDefaults,
    /// Models for tasks that name none.
    pub models: Vec<String>,
    /// The maximum number of runs in parallel.
    pub jobs: Option<usize>,
    /// True if the first job that is not verified ends the batch.
    pub fail_fast: Option<bool>,
    /// Further runs for a job whose run ended in an error.
    pub retries: Option<u32>,
    /// The pause before each further run.
    pub retry_delay: Option<Duration>,
    /// The money limit for all jobs together, in millionths of a US dollar.
    pub usd_micros: Option<u64>,
}

/// A repository, as written in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryEntry {
    /// The place in the file.
    pub place: FilePlace,
    /// The folder.
    pub path: String,
    /// The commit that work begins from; `None` for the head.
    pub base: Option<String>,
}

/// Parses a batch file. `source` is its name in messages.
///
/// # Errors
/// [`TaskError`] with all problems.
pub fn parse(text: &str, source: &str) -> Result<BatchFile, TaskError> {
    let fault = |problems: Problems| TaskError { file: source.into(), problems: problems.seen_in(text) };
    let node = crate::yaml::parse(text, 1).map_err(|problem| fault(problem.into()))?;
    if let Some(empty) = nothing_in(&node, text, "a batch", "`tasks: [tasks/*.md]`") {
        return Err(fault(empty.into()));
    }
    let mut problems = Problems::default();
    let Some(mut table) = TableReader::open(&node, "the batch", &mut problems) else { return Err(fault(problems)) };
    let count = |int: Option<i64>| int.and_then(|int| u32::try_from(int).ok());
    let mut file = BatchFile {
        tasks: tasks(&mut table, &mut problems),
        matrix: table.take("matrix").map(|node| matrix(node, &mut problems)).unwrap_or_default(),
        repositories: repositories(&mut table, &mut problems),
        jobs: count(table.int("jobs", 1..=MOST_AT_ONCE, &mut problems)).and_then(|jobs| usize::try_from(jobs).ok()),
        fail_fast: table.flag("fail_fast", &mut problems),
        retries: count(table.int("retries", 0..=MOST_RETRIES, &mut problems)),
        retry_delay: table.duration("retry_delay", &mut problems),
        usd_micros: table.dollars("max_usd", &mut problems),
        ..BatchFile::default()
    };
    if let Some(node) = table.take("defaults") {
        (file.defaults, file.models) = defaults(node, &mut problems);
    }
    table.finish(&mut problems);
    if problems.is_empty() { Ok(file) } else { Err(fault(problems)) }
}

/// Returns the place of a model in the defaults of a batch file.
pub fn place_of_model(text: &str, model: &str) -> Option<FilePlace> {
    let member = |node: YamlNode, name: &str| match node.value {
        YamlValue::Map(entries) => entries.into_iter().find(|(key, _)| key.text == name).map(|(_, node)| node),
        _ => None,
    };
    let node = member(member(crate::yaml::parse(text, 1).ok()?, "defaults")?, "model")?;
    let items = if let YamlValue::List(items) = node.value { items } else { vec![node] };
    items.iter().find(|item| item.as_text() == Some(model)).map(|item| item.place)
}

fn tasks(table: &mut TableReader<'_>, problems: &mut Problems) -> Vec<(FilePlace, String)> {
    let node = table.take("tasks");
    let named = |node: &YamlNode| node.as_text().map(|text| (node.place, text.to_owned()));
    let all = match node {
        None => {
            let none = Problem::at(table.place, "the batch has no `tasks`");
            problems.push(none.hint("write `tasks: [tasks/*.md]`"));
            return Vec::new();
        }
        Some(YamlNode { value: YamlValue::List(items), .. }) => items.iter().filter_map(named).collect(),
        Some(node) => named(node).into_iter().collect(),
    };
    table.text_or_texts("tasks", problems);
    all
}

fn matrix(node: &YamlNode, problems: &mut Problems) -> Matrix {
    let YamlValue::Map(entries) = &node.value else {
        let message = format!("expected `matrix` to be a map, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `matrix: { version: [1, 2] }`"));
        return Matrix::default();
    };
    let mut matrix = Matrix::default();
    for (key, node) in entries {
        match key.text.as_str() {
            "include" => matrix.include = rows(key, node, problems),
            "exclude" => matrix.exclude = rows(key, node, problems),
            TASK | REPOSITORY => {
                let taken = Problem::at(key.place, format!("`{}` cannot name a parameter here", key.text));
                problems.push(taken.hint("list them under `tasks` and `repositories`"));
            }
            _ => matrix.dimensions.extend(dimension(key, node, problems)),
        }
    }
    let is_known =
        |name: &str| [TASK, REPOSITORY].contains(&name) || matrix.dimensions.iter().any(|(own, _)| own == name);
    for entry in &matrix.exclude {
        for (name, _) in entry.values.iter().filter(|(name, _)| !is_known(name)) {
            let known = matrix.dimensions.iter().map(|(name, _)| name.as_str()).chain([TASK, REPOSITORY]);
            let unknown = Problem::at(entry.place, format!("`exclude` names `{name}`, which has no list of values"));
            problems.push(unknown.hint("remove it").near(name, known));
        }
    }
    matrix
}

fn dimension(key: &YamlKey, node: &YamlNode, problems: &mut Problems) -> Option<Dimension> {
    let YamlValue::List(items) = &node.value else {
        let message = format!("expected `{}` to be a list of values, found {}", key.text, node.describe());
        problems.push(Problem::at(node.place, message).hint(format!("write `{}: [a, b]`", key.text)));
        return None;
    };
    if items.is_empty() {
        let empty = Problem::at(node.place, format!("`{}` is an empty list: nothing would run", key.text));
        problems.push(empty.hint("give it a value or remove the key"));
    }
    let mut values = Vec::new();
    for item in items {
        let Some(value) = value(item, problems) else { continue };
        if values.contains(&value) {
            problems
                .push(Problem::at(item.place, format!("`{value}` occurs in `{}` twice", key.text)).hint("remove one"));
        } else {
            values.push(value);
        }
    }
    Some((key.text.clone(), values))
}

fn rows(key: &YamlKey, node: &YamlNode, problems: &mut Problems) -> Vec<MatrixEntry> {
    let YamlValue::List(items) = &node.value else {
        let message = format!("expected `{}` to be a list of maps, found {}", key.text, node.describe());
        problems.push(Problem::at(node.place, message).hint(format!("write `{}: [{{ name: value }}]`", key.text)));
        return Vec::new();
    };
    let mut row = |item: &YamlNode| match &item.value {
        YamlValue::Map(entries) if !entries.is_empty() => {
            let pair = |(key, node): &(YamlKey, YamlNode)| Some((key.text.clone(), value(node, problems)?));
            let values: Combination = entries.iter().filter_map(pair).collect();
            Some(MatrixEntry { place: item.place, values })
        }
        _ => {
            let found =
                if matches!(item.value, YamlValue::Map(_)) { "an empty one".to_owned() } else { item.describe() };
            let message = format!("expected an item of `{}` to be a map, found {found}", key.text);
            problems.push(Problem::at(item.place, message).hint("write `{ name: value }`"));
            None
        }
    };
    items.iter().filter_map(&mut row).collect()
}

/// Returns the text form of a text, number or boolean value.
fn value(node: &YamlNode, problems: &mut Problems) -> Option<String> {
    match &node.value {
        YamlValue::Text(text) => Some(text.clone()),
        YamlValue::Int(number) => Some(number.to_string()),
        YamlValue::Float(number) => Some(number.to_string()),
        YamlValue::Bool(flag) => Some(flag.to_string()),
        YamlValue::Null | YamlValue::List(_) | YamlValue::Map(_) | YamlValue::Other(_) => {
            let message = format!("expected a text, a number or a boolean, found {}", node.describe());
            problems.push(Problem::at(node.place, message).hint("put the value in quotes"));
            None
        }
    }
}

fn repositories(table: &mut TableReader<'_>, problems: &mut Problems) -> Vec<RepositoryEntry> {
    let Some(node) = table.take("repositories") else { return Vec::new() };
    let YamlValue::List(items) = &node.value else {
        let message = format!("expected `repositories` to be a list, found {}", node.describe());
        problems.push(Problem::at(node.place, message).hint("write `repositories: [../service, ../library]`"));
        return Vec::new();
    };
    if items.is_empty() {
        let empty = Problem::at(node.place, "`repositories` is an empty list: nothing would run");
        problems.push(empty.hint("name a repository or remove the key"));
    }
    let mut all = Vec::new();
    for item in items {
        let (path, base) = match &item.value {
            YamlValue::Text(path) => (Some(path.as_str()), None),
            _ => {
                let Some(mut table) = TableReader::open(item, "a repository", problems) else { continue };
                let named = (table.text("path", problems), table.text("base", problems));
                if table.place_of("path").is_none() {
                    problems
                        .push(Problem::at(item.place, "the repository has no `path`").hint("write `path: ../service`"));
                }
                table.finish(problems);
                named
            }
        };
        let Some(path) = path.filter(|path| !path.trim().is_empty()) else { continue };
        if path.contains("://") || (path.contains('@') && path.contains(':') && !path.starts_with(['/', '.'])) {
            let remote = Problem::at(item.place, format!("`{path}` is not on this machine"));
            problems.push(remote.hint(clone_first(path)));
        }
        all.push(RepositoryEntry { place: item.place, path: path.to_owned(), base: base.map(str::to_owned) });
    }
    all
}

/// Returns a hint for a remote repository. An address with unusual characters does not become part
/// of a command.
fn clone_first(address: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '@' | '~' | '+');
    let name = address.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default().trim_end_matches(".git");
    let is_name = !name.is_empty() && !name.starts_with(['-', '.']);
    if is_name && !address.starts_with('-') && address.chars().all(is_plain) {
        format!("run `git clone {address} ../{name}` in this file's folder, then write `../{name}` here")
    } else {
        "clone the repository first, then write its folder here".to_owned()
    }
}

fn defaults(node: &YamlNode, problems: &mut Problems) -> (TaskDefaults, Vec<String>) {
    let Some(mut table) = TableReader::open(node, "`defaults`", problems) else { return Default::default() };
    let small = |int: Option<i64>| int.and_then(|int| u32::try_from(int).ok());
    let defaults = TaskDefaults {
        lanes: table.text_or_texts("lane", problems),
        max_retries: small(table.int("max_retries", 0..=100, problems)),
        on_tamper: table.one_of("on_tamper", &OnTamper::WORDS, problems),
        tier: table.one_of("tier", &Tier::WORDS, problems),
        commit: table.one_of("commit", &Commit::WORDS, problems),
        isolation: table.one_of("isolation", &Isolation::WORDS, problems),
        budget: table.take("budget").map(|node| read_budget(node, problems)).unwrap_or_default(),
        ..TaskDefaults::default()
    };
    let models = table.text_or_texts("model", problems).unwrap_or_default();
    table.finish(problems);
    (defaults, models)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_file_is_read() {
        let text = "tasks: [tasks/*.md, more]\nmatrix:\n  version: [1, '1.10', true]\n  include: [{ version: 1, extra: x }]\n  \
        exclude: [{ task: a }]\nrepositories: [../svc, { path: ../lib, base: origin/main }]\n\
        defaults: { model: m, lane: [a, b], budget: { usd: 0.5 }, isolation: worktree }\n\
        jobs: 8\nfail_fast: true\nretries: 2\nretry_delay: 30s\nmax_usd: 12.50\n";
        let file = parse(text, "batch.yaml").unwrap();
        let paths: Vec<&str> = file.tasks.iter().map(|(_, path)| path.as_str()).collect();
        assert_eq!(paths, ["tasks/*.md", "more"]);
        assert_eq!(file.matrix.dimensions, [("version".to_owned(), ["1", "1.10", "true"].map(str::to_owned).to_vec())]);
        let repositories: Vec<_> =
            file.repositories.iter().map(|entry| (entry.path.as_str(), entry.base.as_deref())).collect();
        assert_eq!(repositories, [("../svc", None), ("../lib", Some("origin/main"))]);
        assert_eq!((file.jobs, file.fail_fast, file.retries), (Some(8), Some(true), Some(2)));
        assert_eq!((file.retry_delay, file.usd_micros), (Some(Duration::from_secs(30)), Some(12_500_000)));
        assert_eq!((file.models.as_slice(), file.defaults.budget.usd_micros), (&["m".to_owned()][..], Some(500_000)));
        assert_eq!(parse("tasks: a.md", "b.yaml").unwrap().tasks.len(), 1);
    }

    #[test]
    fn every_wrong_batch_file_is_refused_with_its_place_and_what_to_do() {
        let texts = [
            "jobs: 2",
            "tasks: []",
            "tasks: [1]",
            "tasks: a\njobs: 0\nfail_fast: soon\nretries: 99\nretry_delay: 5\nmax_usd: -1\nmatrx: {}",
            "tasks: a\nmatrix: [1]",
            "tasks: a\nmatrix: { v: 1, w: [], task: [a], x: [a, a, [b]] }",
            "tasks: a\nmatrix: { version: [1], exclude: [{ verson: 1 }, {}, a], include: { version: 1 } }",
            "tasks: a\nrepositories: []",
            "tasks: a\nrepositories: [https://example.com/a.git, git@example.com:a.git, { base: main }, { path: x, bse: y }]",
            "tasks: a\ndefaults: { lanes: verify, max_retries: many }",
            "tasks: [a",
        ];
        let shown_error = |text: &&str| format!("{text}\n{}\n", parse(text, "batch.yaml").unwrap_err());
        insta::assert_snapshot!(texts.iter().map(shown_error).collect::<Vec<_>>().join("\n"));
    }
}
