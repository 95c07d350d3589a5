//! The decision whether a CI command can be a step, and the form in which fledge starts it. Pure.

use super::super::facts::ProjectFacts;
use super::super::{CheckEffect, environments, node, python, recipes};
use super::packages::of_node;
use super::tools::{self, ToolKind};
use super::{Candidate, CiChecks, command, envs, script};

/// A CI command as a step.
pub(super) struct ResolvedCommand {
    pub(super) stack: &'static str,
    pub(super) kind: ToolKind,
    pub(super) run: String,
    pub(super) words: Vec<String>,
    /// A name for the step, better than that of its kind.
    pub(super) name: Option<String>,
    pub(super) effect: CheckEffect,
}

/// Resolves a command into steps, or returns the reason why it cannot be one. An empty reason is
/// not reported.
pub(super) fn resolve(
    candidate: &Candidate,
    root: &ProjectFacts,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let facts = match candidate.dir.as_str() {
        "" => root,
        // CMake and Meson run in their build folder.
        dir if is_native(&candidate.words) && !root.below.contains_key(dir) => root,
        dir => root.below.get(dir).ok_or_else(|| format!("its folder `{dir}` is none that fledge looks into"))?,
    };
    if candidate.words.first().is_some_and(|word| tools::name(word) == "hatch") && candidate.words.len() > 1 {
        return super::hatch::steps(&candidate.words, candidate, facts, root, own);
    }
    let words = unstarted(&candidate.words)?;
    let program = words.first().map(|word| tools::name(word).to_owned()).unwrap_or_default();
    if words.len() == 2 && ["--version", "-V", "-v", "version", "-version"].contains(&words[1].as_str()) {
        return Err(String::new());
    }
    match program.as_str() {
        "" => Err(String::new()),
        "npm" | "pnpm" | "yarn" | "bun" | "npx" | "bunx" | "pnpx" => of_node(&words, facts, own),
        "make" | "just" | "task" => of_recipes(&program, &words, facts),
        "cmake" | "ctest" | "meson" | "ninja" => native(&program, &words, candidate, own),
        "tox" => each(&envs::tox(&words, facts.text("tox.ini"), facts.text("pyproject.toml")), candidate, root, own),
        "nox" => each(&envs::nox(&words, facts.text("noxfile.py")), candidate, root, own),
        // The hooks are known already, as evidence that the CI runs their tools.
        "pre-commit" => Err(String::new()),
        "python" => of_python_script(&words, facts),
        _ => of_table(&words, facts).map(|step| vec![step]),
    }
}

/// Resolves the lines of an environment into steps. Without any step, it returns the first reason.
pub(super) fn each(
    lines: &[String],
    candidate: &Candidate,
    root: &ProjectFacts,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let mut steps = Vec::new();
    let mut reasons = Vec::new();
    for (_, read) in lines.iter().flat_map(|line| command::read(line, &Default::default())) {
        let Ok(command::ScriptCommand { words, .. }) = read else { continue };
        let is_gathering = words.iter().any(|word| ["tox", "nox", "hatch"].contains(&tools::name(word)));
        if is_gathering {
            continue;
        }
        match resolve(&Candidate { words: words.clone(), ..candidate.clone() }, root, own) {
            Ok(found) => steps.extend(found),
            Err(why) if !why.is_empty() => reasons.push(format!("of `{}`: {why}", command::quoted(&words))),
            Err(_) => {}
        }
    }
    match reasons.into_iter().next() {
        Some(why) if steps.is_empty() => Err(why),
        _ => Ok(steps),
    }
}

fn is_native(words: &[String]) -> bool {
    words.first().is_some_and(|word| ["cmake", "ctest", "meson", "ninja"].contains(&tools::name(word)))
}

/// Flags of `uv run` and similar commands that take a value.
const VALUED: [&str; 12] = [
    "--group",
    "--extra",
    "--with",
    "--python",
    "-p",
    "--package",
    "--project",
    "--only-group",
    "--no-group",
    "--with-editable",
    "--env-file",
    "-e",
];

/// Removes all programs from a command that only start another one.
pub(super) fn unstarted(words: &[String]) -> Result<Vec<String>, String> {
    let inner = without_starter(words)?;
    if inner.len() == words.len() { Ok(inner) } else { unstarted(&inner) }
}

/// Removes one program from a command that only starts another one.
fn without_starter(words: &[String]) -> Result<Vec<String>, String> {
    let Some((first, rest)) = words.split_first() else { return Ok(Vec::new()) };
    let skip_flags = |words: &[String]| {
        let mut at = 0;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            at += if VALUED.contains(&word.as_str()) { 2 } else { 1 };
        }
        words.get(at..).unwrap_or_default().to_vec()
    };
    let is_python = |name: &str| name == "py" || name.starts_with("python");
    Ok(match (tools::name(first), rest.first().map(String::as_str)) {
        ("uv" | "poetry" | "pdm" | "pipenv" | "rye", Some(_)) if rest.iter().any(|word| word == "run") => {
            let run = rest.iter().position(|word| word == "run").unwrap_or_default();
            skip_flags(&rest[run + 1..])
        }
        ("uvx", _) => skip_flags(rest),
        (python, Some("-m")) if is_python(python) => rest[1..].to_vec(),
        (python, Some(flag)) if is_python(python) && flag.starts_with("-W") | flag.starts_with("-X") => {
            [vec![first.clone()], rest[1..].to_vec()].concat()
        }
        (python, _) if is_python(python) && python != "python" => [vec!["python".to_owned()], rest.to_vec()].concat(),
        ("coverage", Some("run")) => {
            let inner = skip_flags(&rest[1..]);
            if rest.iter().any(|word| word == "-m") { inner } else { [vec!["python".to_owned()], inner].concat() }
        }
        ("c8" | "nyc" | "time" | "command" | "exec" | "xvfb-run" | "cross-env", _) => skip_flags(rest),
        ("bundle", Some("exec")) => rest[1..].to_vec(),
        ("npm" | "pnpm" | "yarn", Some("exec" | "dlx")) => {
            let inner = rest[1..].iter().filter(|word| *word != "--").cloned().collect::<Vec<_>>();
            [vec!["npx".to_owned()], inner].concat()
        }
        _ => words.to_vec(),
    })
}

pub(super) fn of_table(words: &[String], facts: &ProjectFacts) -> Result<ResolvedCommand, String> {
    let Some(row) = tools::find(words) else {
        return Err("fledge knows no check by that program".into());
    };
    match row.kind {
        ToolKind::Helper => return Err(String::new()),
        ToolKind::No(why) => return Err(why.into()),
        _ if tools::writes(words) => return Err("it changes files".into()),
        _ => {}
    }
    let mut words: Vec<String> = words.to_vec();
    strip(&mut words, facts)?;
    let is_build = row.program == "tsc" && !script::is_without_output(&words);
    let kind = match row.kind {
        ToolKind::Lint if is_build => ToolKind::Build,
        ToolKind::Recipe => recipe_kind(&words)?,
        kind => kind,
    };
    let run = match row.stack {
        "python" => python::started(facts, &words)?,
        "node" if row.program != "node" => node::started(facts, &words)?,
        "ruby" if facts.has_program("bundle") => format!("bundle exec {}", command::quoted(&words)),
        "ruby" => return Err("`bundle` is not installed".into()),
        _ => {
            let (program, mut words) = (needed(&words), words.clone());
            if !facts.has_program(&program) {
                let lacks = || format!("`{program}` is not installed");
                words[0] = environments::program(facts, &program).ok_or_else(lacks)?;
            }
            command::quoted(&words)
        }
    };
    Ok(ResolvedCommand { stack: row.stack, kind, run, words, name: None, effect: effect(kind) })
}

fn effect(kind: ToolKind) -> CheckEffect {
    match kind {
        ToolKind::Test => CheckEffect::Tests,
        ToolKind::Lint => CheckEffect::Reads,
        _ => CheckEffect::Builds,
    }
}

/// Returns the kind of a Gradle, Maven or Rake call, judged by its tasks.
fn recipe_kind(words: &[String]) -> Result<ToolKind, String> {
    let goals: Vec<&String> = words[1..].iter().filter(|word| !word.starts_with('-')).collect();
    let installs = ["install", "deploy", "publish", "release"];
    if goals.iter().any(|goal| installs.contains(&goal.rsplit(':').next().unwrap_or(goal))) {
        return Err("it installs or publishes".into());
    }
    // `site` and goals of plugins produce reports, except for goals that check.
    let is_report = |goal: &&&String| match goal.rsplit_once(':') {
        Some((_, goal)) => tools::name(&words[0]).starts_with("mvn") && !["check", "test", "verify"].contains(&goal),
        None => goal.as_str() == "site",
    };
    if goals.iter().any(|goal| is_report(&goal)) {
        return Err("it makes a report".into());
    }
    if words.iter().any(|word| ["-DskipTests", "-Dmaven.test.skip"].iter().any(|skip| word.starts_with(skip))) {
        return Ok(ToolKind::Build);
    }
    let kinds: Vec<ToolKind> = goals.iter().map(|goal| tools::by_name(goal)).collect();
    let has = |kind: ToolKind| kinds.contains(&kind);
    Ok(if has(ToolKind::Test) || goals.is_empty() { ToolKind::Test } else { ToolKind::Build })
}

/// Returns the program that must be installed. Some cargo subcommands are separate programs.
fn needed(words: &[String]) -> String {
    match tools::tool(words).strip_prefix("cargo ") {
        Some(sub @ ("fmt" | "clippy" | "nextest")) => format!("cargo-{sub}"),
        _ => match words[0].starts_with("./") {
            true => words[0].clone(),
            false => tools::name(&words[0]).to_owned(),
        },
    }
}

/// Removes options that measure coverage, select a toolchain, or need a missing compiler.
pub(super) fn strip(words: &mut Vec<String>, facts: &ProjectFacts) -> Result<(), String> {
    let program = words[0].clone();
    if tools::name(&program).starts_with("mvn") {
        strip_maven(words);
    }
    let mut is_value = false;
    let has_compiler = ["cc", "gcc", "clang"].iter().any(|compiler| facts.has_program(compiler));
    words.retain(|word| {
        if std::mem::take(&mut is_value) {
            return false;
        }
        is_value = matches!(
            word.as_str(),
            "--cov-report"
                | "--cov-config"
                | "-coverprofile"
                | "-covermode"
                | "-coverpkg"
                | "--junitxml"
                | "--junit-xml"
        );
        let is_coverage = ["--cov", "--coverage", "-cover", "--junitxml=", "--junit-xml="]
            .iter()
            .any(|start| word.starts_with(start));
        let is_race = program == "go" && word == "-race" && !has_compiler;
        !(is_value || is_coverage || is_race || word.contains("{posargs") || word == "--no-cov" || word == "+stable")
    });
    if program == "cargo" && words.iter().any(|word| word.starts_with('+')) {
        return Err("it needs another toolchain".into());
    }
    if program == "cargo" && words.iter().any(|word| word == "-Z" || word.starts_with("-Z")) {
        return Err("it needs another toolchain".into());
    }
    if words.iter().any(|word| word == "--target" || word.starts_with("--target=")) && program == "cargo" {
        return Err("it builds for another platform".into());
    }
    Ok(())
}

/// Removes options of a Maven call that select a compiler. Also removes `clean`, because a room is
/// clean.
fn strip_maven(words: &mut Vec<String>) {
    let mut rest = std::mem::take(words).into_iter();
    while let Some(word) = rest.next() {
        let word = if word == "-D" { format!("-D{}", rest.next().unwrap_or_default()) } else { word };
        let is_taken_out = word == "clean" || word.starts_with("-Dmaven.compiler.");
        words.extend(Some(word).filter(|_| !is_taken_out));
    }
}

/// Resolves `python X` for a known X.
fn of_python_script(words: &[String], facts: &ProjectFacts) -> Result<Vec<ResolvedCommand>, String> {
    let [_, file, goal, ..] = words else { return Err("fledge knows no check by that program".into()) };
    if file != "manage.py" || goal != "test" {
        return Err("fledge knows no check by that program".into());
    }
    let run = format!("{} {}", python::interpreter(facts)?, command::quoted(&words[1..]));
    Ok(vec![ResolvedCommand {
        stack: "python",
        kind: ToolKind::Test,
        run,
        words: words.to_vec(),
        name: None,
        effect: CheckEffect::Tests,
    }])
}

/// Resolves `make a b`. Its targets must exist, and their names must be those of checks.
fn of_recipes(program: &str, words: &[String], facts: &ProjectFacts) -> Result<Vec<ResolvedCommand>, String> {
    let is_goal = |word: &&String| !word.starts_with('-') && !word.contains('=');
    let mut goals: Vec<&String> = Vec::new();
    let mut rest = words[1..].iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-C" | "-f" | "--directory" | "--file" | "--justfile" => {
                return Err("it names another folder or file".into());
            }
            "-j" => drop(rest.clone().next().filter(|word| word.parse::<u16>().is_ok()).and_then(|_| rest.next())),
            _ if is_goal(&word) => goals.push(word),
            _ => {}
        }
    }
    if let Some(why) = recipes::obstacle(facts, program) {
        return Err(why.into());
    }
    let names =
        recipes::names(facts, program).ok_or_else(|| format!("there is no file of {program} that can be read"))?;
    if let Some(missing) = goals.iter().find(|goal| !names.contains(goal.as_str())) {
        return Err(format!("there is no recipe `{missing}`"));
    }
    let mut kind = ToolKind::Build;
    for goal in &goals {
        match tools::by_name(goal) {
            ToolKind::No(why) => return Err(why.into()),
            ToolKind::Test => kind = ToolKind::Test,
            ToolKind::Lint if kind == ToolKind::Build && goals.len() == 1 => kind = ToolKind::Lint,
            _ => {}
        }
    }
    if !facts.has_program(program) {
        return Err(format!("`{program}` is not installed"));
    }
    let name = goals.last().map(|goal| goal.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect());
    // A recipe may do more than its name suggests, so it runs alone.
    let effect = if kind == ToolKind::Test { CheckEffect::Tests } else { CheckEffect::Builds };
    Ok(vec![ResolvedCommand { stack: "make", kind, run: command::quoted(words), words: words.to_vec(), name, effect }])
}

/// Keeps the options with which the CI configures a build. The commands themselves do not vary.
fn native(
    program: &str,
    words: &[String],
    candidate: &Candidate,
    own: &mut CiChecks,
) -> Result<Vec<ResolvedCommand>, String> {
    let stack = if program == "meson" || program == "ninja" { "meson" } else { "cmake" };
    let is_configuring = match program {
        "cmake" => !words.iter().any(|word| ["--build", "--install", "-E", "-P"].contains(&word.as_str())),
        "meson" => {
            words.get(1).is_none_or(|word| !["test", "compile", "install", "dist", "init"].contains(&word.as_str()))
        }
        _ => false,
    };
    if !is_configuring {
        own.native.entry(stack).or_insert_with(|| (Vec::new(), candidate.file.clone()));
        return Err(String::new());
    }
    let foreign =
        ["INSTALL_PREFIX", "TOOLCHAIN", "_COMPILER", "MAKE_PROGRAM", "OSX", "prefix=", "LAUNCHER", "SYSTEM_NAME"];
    let mut options = Vec::new();
    let mut rest = words[1..].iter().peekable();
    while let Some(word) = rest.next() {
        let option = match word.as_str() {
            "-D" => rest.next().map(|value| format!("-D{value}")),
            word if word.starts_with("-D") || (stack == "meson" && word.starts_with("--buildtype")) => {
                Some(word.to_owned())
            }
            _ => None,
        };
        options.extend(
            option.filter(|option| !foreign.iter().any(|part| option.contains(part)) && !option.contains(['/', '$'])),
        );
    }
    let known = own.native.entry(stack).or_insert_with(|| (Vec::new(), candidate.file.clone()));
    if known.0.is_empty() {
        *known = (options, candidate.file.clone());
    }
    Err(String::new())
}
