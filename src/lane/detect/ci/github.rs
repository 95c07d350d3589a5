//! A reader for the commands of a GitHub workflow. Pure: it turns the text of a file into offers.

use super::command;
use super::expression::{Names, SECRET, UNKNOWN, fill, holds};
use super::{CheckOffer, Refusal, get, list, text_of};
use crate::yaml::{YamlNode, YamlValue, parse};
use std::collections::BTreeMap;

/// Actions that are checks, each with its equivalent command.
const ACTIONS: [(&str, &str); 7] = [
    ("golangci/golangci-lint-action", "golangci-lint run"),
    ("pre-commit/action", "pre-commit run --all-files"),
    ("psf/black", "black --check ."),
    ("astral-sh/ruff-action", "ruff check ."),
    ("chartboost/ruff-action", "ruff check ."),
    ("dominikh/staticcheck-action", "staticcheck ./..."),
    ("cargo-bins/cargo-deny-action", "cargo deny check"),
];

/// Returns the offers of a workflow, or the reason why the workflow cannot be read. `action`
/// returns the text of a file that belongs to an action of the project.
pub(super) fn read<'t>(
    file: &str,
    text: &str,
    action: &dyn Fn(&str) -> Option<&'t str>,
) -> Result<Vec<CheckOffer>, String> {
    let root = parse(text, 1).map_err(|problem| problem.to_string())?;
    if !runs_on_changes(&root) {
        return Ok(Vec::new());
    }
    let env = variables(&root, &Names::new());
    // Variables that the workflow itself reads are not for its tools.
    let is_read = |name: &str| {
        [format!("${name}"), format!("{{{name}"), format!("env.{name}")].iter().any(|form| text.contains(form))
    };
    let default_dir = get(&root, "defaults").and_then(|d| get(d, "run")).and_then(|run| get(run, "working-directory"));
    let Some(YamlValue::Map(jobs)) = get(&root, "jobs").map(|jobs| &jobs.value) else { return Ok(Vec::new()) };
    let mut offers = Vec::new();
    for (_, job) in jobs {
        let mut reader = Job {
            is_read: &is_read,
            action: Some(action),
            file,
            env: env.clone(),
            dir: default_dir.map_or("", |dir| text_of(dir)),
            why: None,
            names: Names::new(),
        };
        reader.read(job, &mut offers);
    }
    Ok(offers)
}

/// Returns true if a workflow runs when the code changes, and not only on a schedule, by hand, or
/// for a release.
fn runs_on_changes(root: &YamlNode) -> bool {
    let is_change = |name: &str| ["push", "pull_request", "merge_group", "workflow_call"].contains(&name);
    match get(root, "on").map(|on| &on.value) {
        Some(YamlValue::Text(event)) => is_change(event),
        Some(YamlValue::List(events)) => events.iter().filter_map(YamlNode::as_text).any(is_change),
        Some(YamlValue::Map(events)) => events.iter().any(|(event, what)| {
            let only_tags = get(what, "tags").is_some() && get(what, "branches").is_none();
            is_change(&event.text) && !only_tags
        }),
        _ => false,
    }
}

/// Returns the variables under `env`. Unknown values are [`UNKNOWN`] or [`SECRET`].
fn variables(node: &YamlNode, names: &Names) -> BTreeMap<String, String> {
    let Some(YamlValue::Map(entries)) = get(node, "env").map(|env| &env.value) else { return BTreeMap::new() };
    entries.iter().filter_map(|(name, value)| Some((name.text.clone(), fill(&scalar(value)?, names)))).collect()
}

/// Returns a scalar as text.
fn scalar(node: &YamlNode) -> Option<String> {
    match &node.value {
        YamlValue::Text(text) => Some(text.clone()),
        YamlValue::Bool(flag) => Some(flag.to_string()),
        YamlValue::Int(number) => Some(number.to_string()),
        YamlValue::Float(number) => Some(number.to_string()),
        YamlValue::Null => Some(String::new()),
        _ => None,
    }
}

/// Returns the text of a file that belongs to an action.
type ReadAction<'f, 't> = &'f dyn Fn(&str) -> Option<&'t str>;

struct Job<'f, 't> {
    is_read: &'f dyn Fn(&str) -> bool,
    /// Reads an action of the project; `None` inside an action.
    action: Option<ReadAction<'f, 't>>,
    file: &'f str,
    env: BTreeMap<String, String>,
    dir: &'f str,
    /// The reason why none of the job's commands can be used.
    why: Option<&'static str>,
    names: Names,
}

impl Job<'_, '_> {
    fn read(&mut self, job: &YamlNode, offers: &mut Vec<CheckOffer>) {
        let runs_on = get(job, "runs-on").map_or_else(Vec::new, |node| match &node.value {
            YamlValue::List(items) => items.iter().filter_map(scalar).collect(),
            _ => scalar(node).into_iter().collect(),
        });
        let matrix = get(job, "strategy").and_then(|strategy| get(strategy, "matrix"));
        self.names = choose(matrix.map(combinations).unwrap_or_default(), &runs_on);
        self.names.insert("runner.os".into(), "Linux".into());
        self.names.insert("github.event_name".into(), "push".into());
        self.names.insert("github.workspace".into(), ".".into());
        self.names.extend(self.env.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        let env = variables(job, &self.names);
        self.names.extend(env.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        self.env.extend(env);
        let is_foreign = runs_on.iter().any(|on| is_foreign(&fill(on, &self.names)));
        let condition = get(job, "if").and_then(scalar);
        let steps = get(job, "steps").map(list).unwrap_or_default();
        let uses =
            |step: &YamlNode, action: &str| get(step, "uses").is_some_and(|uses| text_of(uses).starts_with(action));
        self.why = match condition {
            _ if is_foreign => Some("it runs on another operating system"),
            _ if steps.iter().any(|step| uses(step, "actions/download-artifact")) => {
                Some("its job tests what another job has built")
            }
            _ if get(job, "services").is_some() => Some("its job needs services"),
            Some(condition) => self.obstacle(&condition),
            None => None,
        };
        let dir = get(job, "defaults").and_then(|d| get(d, "run")).and_then(|run| get(run, "working-directory"));
        let dir = dir.map_or(self.dir, |dir| text_of(dir)).to_owned();
        let may_fail = get(job, "continue-on-error").and_then(scalar).is_some_and(|text| text == "true");
        for step in steps {
            self.step(step, &dir, may_fail, offers);
        }
    }

    /// Returns the reason if a condition excludes a command.
    fn obstacle(&self, condition: &str) -> Option<&'static str> {
        if condition.contains("secrets.") {
            Some("it needs secrets")
        } else if condition.contains("refs/tags") || condition.contains("'release'") {
            Some("it runs only for releases")
        } else {
            (holds(condition, &self.names) == Some(false)).then_some("its condition does not hold here")
        }
    }

    /// Reads the steps of an action in the project.
    fn local(
        &self,
        step: &YamlNode,
        uses: &YamlNode,
        (why, dir, may_fail): (Option<&'static str>, &str, bool),
        offers: &mut Vec<CheckOffer>,
    ) {
        let found = self.action.and_then(|read| action_of(text_of(uses), read));
        let parsed = found.and_then(|(file, text)| Some((file, parse(text, 1).ok()?)));
        let steps = parsed.as_ref().and_then(|(_, root)| get(get(root, "runs")?, "steps"));
        let (Some((file, root)), Some(steps)) = (&parsed, steps) else {
            let (file, line, text) = (self.file.to_owned(), uses.place.line, format!("uses: {}", text_of(uses)));
            let why = why.unwrap_or("fledge does not read what this action runs").to_owned();
            return offers.push(Err(Refusal { file, line, text, why, is_unread: true }));
        };
        let mut names = self.names.clone();
        if let Some(YamlValue::Map(inputs)) = get(root, "inputs").map(|inputs| &inputs.value) {
            let given = |name: &str| get(step, "with").and_then(|with| get(with, name)).and_then(scalar);
            names.extend(inputs.iter().filter_map(|(name, input)| {
                let value = given(&name.text).or_else(|| get(input, "default").and_then(scalar))?;
                Some((format!("inputs.{}", name.text), fill(&value, &self.names)))
            }));
        }
        let inner = Job { is_read: self.is_read, action: None, file, env: self.env.clone(), dir: "", why, names };
        list(steps).iter().for_each(|step| inner.step(step, dir, may_fail, offers));
    }

    fn step(&self, step: &YamlNode, dir: &str, may_fail: bool, offers: &mut Vec<CheckOffer>) {
        let why = self.why.or_else(|| self.obstacle(&get(step, "if").and_then(scalar)?));
        let may_fail = may_fail || get(step, "continue-on-error").and_then(scalar).is_some_and(|text| text == "true");
        if let Some(uses) = get(step, "uses").filter(|uses| text_of(uses).starts_with("./")) {
            return self.local(step, uses, (why, dir, may_fail), offers);
        }
        let own = variables(step, &self.names);
        let mut names = self.names.clone();
        names.extend(own.iter().map(|(name, value)| (format!("env.{name}"), value.clone())));
        let with = |key: &str| get(step, "with").and_then(|with| get(with, key)).and_then(scalar).unwrap_or_default();
        let (script, line) = match (get(step, "run"), get(step, "uses")) {
            (Some(run), _) => (text_of(run).to_owned(), run.place.line),
            (None, Some(uses)) => {
                let action = text_of(uses).split('@').next().unwrap_or_default();
                let known = ACTIONS.iter().find(|(name, _)| *name == action).map(|(_, run)| *run);
                let Some(run) = known else { return };
                (format!("{run} {}", with("args")), uses.place.line)
            }
            (None, None) => return,
        };
        let dir = get(step, "working-directory").map_or(dir, |dir| text_of(dir));
        let dir = fill(dir, &names);
        let shell = get(step, "shell").and_then(scalar).unwrap_or_default();
        let all: BTreeMap<String, String> = self.env.iter().chain(&own).map(|(n, v)| (n.clone(), v.clone())).collect();
        let known =
            all.iter().filter(|(_, value)| !value.contains("${?")).map(|(n, v)| (n.clone(), v.clone())).collect();
        let why = why.or_else(|| match shell.as_str() {
            "" | "bash" | "sh" => None,
            shell if shell.starts_with("bash ") => None,
            _ => Some("it is not written for sh or bash"),
        });
        for (number, read) in command::read(&fill(&script, &names), &known) {
            let (file, line) = (self.file.to_owned(), line + number);
            let refuse = |text: String, why: &str| {
                Err(Refusal { file: self.file.to_owned(), line, text, why: why.to_owned(), is_unread: false })
            };
            offers.push(match read {
                Err((text, why_not)) => refuse(text, why.unwrap_or(why_not)),
                Ok(command) => {
                    let text = command::quoted(&command.words);
                    let place = command::join(&dir, &command.dir).and_then(|dir| command::join("", &dir));
                    match (why, place) {
                        (Some(why), _) => refuse(text, why),
                        (None, _) if own.values().any(|value| value.contains(SECRET)) => {
                            refuse(text, "it needs secrets")
                        }
                        (None, None) => refuse(text, "it runs in a folder outside of the project"),
                        (None, Some(_)) if dir.contains("${?") => refuse(text, "its folder is not known"),
                        (None, Some(dir)) => {
                            let outer = self.env.iter().filter(|(name, _)| !(self.is_read)(name));
                            let mut vars: BTreeMap<_, _> = outer.chain(&own).map(pair).collect();
                            vars.extend(command.vars);
                            vars.retain(|_, value| !value.contains(UNKNOWN) && !value.contains(SECRET));
                            Ok(super::Candidate {
                                file,
                                line,
                                words: command.words,
                                vars,
                                dir,
                                may_fail: may_fail || command.may_fail,
                            })
                        }
                    }
                }
            });
        }
    }
}

/// Returns the file and the text of an action of the project.
fn action_of<'t>(uses: &str, read: &dyn Fn(&str) -> Option<&'t str>) -> Option<(String, &'t str)> {
    let folder = uses.trim_start_matches("./").trim_end_matches('/');
    let files = ["action.yml", "action.yaml"].map(|name| format!("{folder}/{name}"));
    files.into_iter().find_map(|file| read(&file).map(|text| (file, text)))
}

fn is_foreign(system: &str) -> bool {
    let system = system.to_ascii_lowercase();
    ["windows", "macos", "mac-", "freebsd"].iter().any(|name| system.contains(name))
}

/// Returns the combinations of a matrix, formed as by GitHub.
fn combinations(matrix: &YamlNode) -> Vec<Names> {
    let YamlValue::Map(entries) = &matrix.value else { return Vec::new() };
    let mut all = vec![Names::new()];
    for (key, values) in entries.iter().filter(|(key, _)| !["include", "exclude"].contains(&key.text.as_str())) {
        let values: Vec<Names> =
            list(values).iter().map(|value| named(&format!("matrix.{}", key.text), value)).collect();
        if values.is_empty() || all.len() * values.len() > 500 {
            continue;
        }
        all = all
            .iter()
            .flat_map(|one| values.iter().map(move |value| one.iter().chain(value).map(pair).collect()))
            .collect();
    }
    let keyed = |node: &YamlNode| named("matrix", node);
    for excluded in get(matrix, "exclude").map(list).unwrap_or_default() {
        let excluded = keyed(excluded);
        all.retain(|one| !excluded.iter().all(|(name, value)| one.get(name) == Some(value)));
    }
    let has_lists = all.iter().any(|one| !one.is_empty());
    if !has_lists {
        all.clear();
    }
    for included in get(matrix, "include").map(list).unwrap_or_default() {
        let included = keyed(included);
        let fits = |one: &Names| included.iter().all(|(name, value)| one.get(name).is_none_or(|own| own == value));
        let mut is_used = false;
        for one in all.iter_mut().filter(|one| has_lists && fits(one)) {
            one.extend(included.clone());
            is_used = true;
        }
        if !is_used {
            all.push(included);
        }
    }
    all
}

fn pair((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// Returns the names of the scalars in a value, such as `matrix.job.target`.
fn named(prefix: &str, node: &YamlNode) -> Names {
    match &node.value {
        YamlValue::Map(entries) => {
            entries.iter().flat_map(|(key, value)| named(&format!("{prefix}.{}", key.text), value)).collect()
        }
        _ => scalar(node).map(|text| (prefix.to_owned(), text)).into_iter().collect(),
    }
}

/// Chooses the combination most similar to this machine: on Linux, and with a stable toolchain if
/// one is named.
fn choose(all: Vec<Names>, runs_on: &[String]) -> Names {
    let rank = |one: &Names| {
        let has = |word: &str| one.values().any(|value| value.split(['-', ' ']).any(|part| part == word));
        let is_foreign = runs_on.iter().any(|on| is_foreign(&fill(on, one)));
        let is_odd = ["nightly", "beta", "pypy", "experimental", "dev"].iter().any(|word| has(word));
        (is_foreign, !has("stable"), is_odd)
    };
    all.into_iter().min_by_key(rank).unwrap_or_default()
}

#[cfg(test)]
#[path = "github_tests.rs"]
mod tests;
