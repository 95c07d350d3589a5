//! Steps that fail on the base because something around them is missing, not because of the
//! project: a program, a module, the network, a writable path. No work of an agent can fix that, so
//! the run ends with the remedy. Pure, except for a look at programs.
//!
//! No code of an agent has run on the base, so the output of its steps is trusted.

use super::GateSite;
use crate::process::sandbox::interpreter;
use crate::verdict::{StepReport, StepStatus};
use rustix::fs::{Access, access};
use std::path::Path;

/// The number of last lines that are searched.
const LINES: usize = 30;
/// Text after the name of a program that cannot be found.
const NOT_FOUND: [&str; 3] = [": command not found", ": not found", ": No such file or directory"];
/// Signs that a step, or a program that it started, ended because a program could not be found.
const ENDED_SO: [&str; 4] = ["Error 127", "exit status 127", "exit code 127", "code 127"];
/// Signs that a version manager knows no version of a program: asdf, mise, Volta, rbenv, nodenv,
/// pyenv, jenv, corepack.
const UNMANAGED: [&str; 8] = [
    "No version is set for command",
    "No version is set for shim",
    "not a valid shim",
    "Volta error: ",
    "is not installed (set by",
    "The command exists in these Python versions",
    "are not trusted",
    "Internal Error: Error when performing the request to https://registry.",
];
/// Modules that are tools and not part of a project.
const TOOLS: [&str; 12] =
    ["pytest", "tox", "nox", "mypy", "ruff", "black", "flake8", "coverage", "pylint", "isort", "build", "pip"];
/// Messages, in lower case, of programs that need a network.
#[rustfmt::skip]
const NETWORK: &[&str] = &[
    "could not resolve host", "eai_again", "network is unreachable", "temporary failure in name resolution", "name or service not known",
    "module lookup disabled by goproxy=off", "but --offline was specified", "enotcached", "err_pnpm_no_offline_tarball", "network connectivity is disabled",
    "cannot access central", "in offline mode", "dial tcp: lookup", "could not transfer artifact", "network unreachable", "unknownhostexception",
    "getaddrinfo enotfound",
];

/// The surroundings of steps.
#[derive(Debug, Clone, Copy)]
pub(super) struct StepSurroundings<'a> {
    /// The search path.
    path: &'a str,
    /// The user's home.
    home: &'a Path,
    /// The project's folder, as steps see it.
    root: &'a Path,
    has_network: bool,
}

impl<'a> StepSurroundings<'a> {
    /// Returns the surroundings of the steps of a site.
    pub(super) fn from_site(site: &'a GateSite, has_network: bool) -> Self {
        Self { path: site.variable("PATH"), home: Path::new(site.variable("HOME")), root: &site.origin, has_network }
    }
}

/// Returns why a step cannot run on the base, with the remedy. Returns `None` if the steps failed
/// by themselves.
pub(super) fn why(steps: &[StepReport], around: &StepSurroundings<'_>) -> Option<String> {
    let failed = steps.iter().filter(|step| step.status == StepStatus::Failed);
    failed.into_iter().find_map(|step| {
        let (what, cure) = program(step, around.path, |name| elsewhere(name, around))
            .or_else(|| unmanaged(step))
            .or_else(|| module(step))
            .or_else(|| unwritable(step, around.root))
            .or_else(|| hidden_path(step, around.root))
            .or_else(|| offline(step, around.has_network))?;
        Some(format!("step `{}` of lane `{}` cannot run: {what}; {cure}", step.step, step.lane))
    })
}

/// Returns the program or module that a step lacked, if it failed for that.
pub fn lacks(step: &StepReport, path: &str) -> Option<String> {
    program(step, path, |_| None).or_else(|| module(step)).map(|(what, _)| what)
}

fn lines(step: &StepReport) -> impl Iterator<Item = &str> {
    step.excerpt.lines().rev().take(LINES).map(str::trim)
}

/// Messages, in lower case, of package managers whose registry does not answer or wants
/// credentials.
#[rustfmt::skip]
const NO_REGISTRY: &[&str] = &[
    "econnrefused", "connection refused", "etimedout", "connection timed out", "enetunreach", "enotfound", "eai_again", "code e401", "401 unauthorized",
    "authentication required", "err_pnpm_fetch_401", "unauthorized - 401", "status code: 401", "401 error", "credential-provider", "terminal prompts disabled",
];
/// Messages, in lower case, of a registry that does not have a package.
const NO_PACKAGE: &[&str] = &["e404", "404 not found", " 404 ", "status code: 404", "etarget", "no matching version"];

/// Returns whether a package manager could not reach its registry. A registry that answers that it
/// lacks a package was reached.
pub(super) fn says_offline(output: &str) -> bool {
    let output = output.to_lowercase();
    let says = |signs: &[&str]| signs.iter().any(|sign| output.contains(sign));
    !says(NO_PACKAGE) && (says(NETWORK) || says(NO_REGISTRY))
}

/// Folders with programs that are not on the search path: in a project, and in a home.
const OF_PROJECT: [&str; 5] = [".venv/bin", "venv/bin", "env/bin", "node_modules/.bin", "vendor/bin"];
const OF_HOME: [&str; 6] = [".local/bin", ".cargo/bin", "go/bin", ".npm-global/bin", ".bun/bin", ".deno/bin"];

/// Returns the problem with a program that is not on the search path but in a known folder, and the
/// remedy.
fn elsewhere(name: &str, around: &StepSurroundings<'_>) -> Option<(String, String)> {
    let has = |folder: &Path, at: &&&str| folder.join(at).join(name).is_file();
    if let Some(at) = OF_PROJECT.iter().find(|at| has(around.root, at)) {
        let cure = format!("write `{at}/{name}` in the step instead of `{name}`");
        return Some((format!("there is no program `{name}` on PATH; the project has it in {at}"), cure));
    }
    let at = around.home.join(OF_HOME.iter().find(|at| has(around.home, at))?);
    let what = format!("there is no program `{name}` on PATH; it is in {}", at.display());
    Some((what, format!("add the folder to PATH before you start fledge: `export PATH=\"{}:$PATH\"`", at.display())))
}

/// Returns the problem with a program that a shell did not find, and the remedy. `elsewhere`
/// returns them if the program is in a folder that is not on the search path.
fn program(
    step: &StepReport,
    path: &str,
    elsewhere: impl Fn(&str) -> Option<(String, String)>,
) -> Option<(String, String)> {
    let ended_so = step.exit_code == Some(127) || ENDED_SO.iter().any(|sign| step.excerpt.contains(sign));
    // uv exits with 2, and make with another code.
    let unspawned =
        lines(step).find_map(|line| line.split_once("Failed to spawn: ")).map(|(_, name)| name.trim_matches('`'));
    if let Some(name) = unspawned.filter(|name| !name.contains('/')) {
        let cure = "install it, with the project's other dependencies, before the run".to_owned();
        return Some((format!("there is no program `{name}`"), cure));
    }
    if !ended_so {
        return None;
    }
    let named = |line: &str| {
        let start = NOT_FOUND.iter().find_map(|words| line.strip_suffix(words).map(str::to_owned))?;
        let name = start.rsplit(": ").next()?.trim().to_owned();
        (!name.is_empty() && name.len() < 100 && !name.contains(char::is_whitespace)).then_some(name)
    };
    let name = lines(step).find_map(named)?;
    if name.contains('/') {
        return hidden_file(Path::new(&name));
    }
    let places = std::env::split_paths(path).map(|folder| folder.join(&name));
    let unknown = || {
        let cure =
            "install it, with the project's other dependencies, before the run, or give the lane a `setup` that does";
        (format!("there is no program `{name}`"), cure.to_owned())
    };
    Some(match places.into_iter().find(|place| place.is_file()) {
        None => elsewhere(&name).unwrap_or_else(unknown),
        Some(place) => hidden_program(&name, &place),
    })
}

/// Returns the problem with a program at an absolute path whose interpreter exists, and the remedy.
/// A file without one may belong to the project, and may be the file to be written.
fn hidden_file(file: &Path) -> Option<(String, String)> {
    let has_interpreter = interpreter(file).first().is_some_and(|first| Path::new(first).exists());
    let name = file.file_name().filter(|_| file.is_absolute() && has_interpreter)?;
    Some(hidden_program(&name.to_string_lossy(), file))
}

/// Returns the problem with a program that exists by hand but that a room does not show, and the
/// remedy.
pub(super) fn hidden_program(name: &str, place: &Path) -> (String, String) {
    let real = place.canonicalize().ok().filter(|real| real != place);
    let leads = real.as_deref().map(|real| format!(", which leads to {}", real.display())).unwrap_or_default();
    let at = place.display();
    let cure = "put the program into a folder that a room shows (see `fledge docs explanation/sandbox`), or run the lane with `room: in-place`";
    (format!("a room does not show the program `{name}` at {at}{leads}"), cure.to_owned())
}

/// Returns the problem with a program that a version manager did not find, and the remedy.
fn unmanaged(step: &StepReport) -> Option<(String, String)> {
    let line = lines(step).find(|line| UNMANAGED.iter().any(|sign| line.contains(sign)))?;
    let cure = "name the version in a file of the project (`.tool-versions`, `mise.toml`, `package.json`), install it before \
        the run, or put the program's own folder into PATH";
    Some((format!("a version manager finds no program ({line})"), cure.to_owned()))
}

/// Returns the problem with a module that `python -m` did not find, and the remedy.
fn module(step: &StepReport) -> Option<(String, String)> {
    let missing = lines(step).find_map(|line| line.split_once("No module named ").map(|(_, name)| name))?;
    let name = missing.trim_matches(|c: char| !c.is_alphanumeric() && c != '_' && c != '.');
    let words: Vec<&str> = step.command.split_whitespace().collect();
    let asked = words.windows(2).find(|pair| pair[0] == "-m" && pair[1] == name && TOOLS.contains(&name))?;
    let python = words
        .iter()
        .find(|word| Path::new(word).file_name().is_some_and(|name| name.to_string_lossy().starts_with("python")));
    let python = python.copied().unwrap_or("python3");
    Some((
        format!("there is no module `{}`", asked[1]),
        format!("install it before the run: `{python} -m pip install {name}`"),
    ))
}

/// Returns the absolute paths in a line that lie outside of the project.
fn paths_outside<'l>(line: &'l str, root: &Path) -> impl DoubleEndedIterator<Item = &'l str> {
    let marks = |mark: char| mark.is_whitespace() || "'\"`:,()[]‘’".contains(mark);
    let words: Vec<&str> = line.split(marks).collect();
    words.into_iter().filter(move |word| word.len() > 1 && word.starts_with('/') && !Path::new(word).starts_with(root))
}

/// Returns the problem with a file that a script could not run or source although it exists by
/// hand, and the remedy. Only the last line counts, and only if a shell printed it: other programs
/// may do without the file. The last path is the file, because the line begins with the script.
fn hidden_path(step: &StepReport, root: &Path) -> Option<(String, String)> {
    let line = lines(step).find(|line| !line.is_empty())?;
    let (script, rest) = line.split_once(": ")?;
    let is_place = |text: &str| text.strip_prefix("line ").unwrap_or(text).parse::<u32>().is_ok();
    let is_of_shell = rest.split_once(": ").is_some_and(|(place, _)| is_place(place)) && !script.contains(' ');
    let path = paths_outside(line, root).next_back().map(Path::new).filter(|path| path.is_file())?;
    let cure = "put it into a folder that a room shows (see `fledge docs explanation/sandbox`), or run the lane with `room: in-place`";
    let is_absent = line.contains("No such file") && is_of_shell;
    is_absent.then(|| (format!("a room does not show the file {}", path.display()), cure.to_owned()))
}

/// Returns the problem with a path outside of the project that no step may write, and the remedy.
/// For paths in the project, the gate itself reports what is read-only. Landlock refuses a path
/// with the error that the kernel also gives for the path of another user. So the path counts only
/// if the user may write it by hand.
fn unwritable(step: &StepReport, root: &Path) -> Option<(String, String)> {
    const SIGNS: [&str; 4] = ["Read-only file system", "EROFS", "Permission denied", "EACCES"];
    let is_of_room = |line: &str, place: &str| {
        let may = |path: &Path| access(path, Access::READ_OK | Access::WRITE_OK).is_ok();
        let place = Path::new(place);
        SIGNS[..2].iter().any(|sign| line.contains(sign))
            || may(place)
            || (!place.exists() && place.parent().is_some_and(may))
    };
    // `/bin/sh: 1: cannot create x: Read-only file system` begins with the program that reports it.
    let message = |line: &'_ str| match line.split_once(": ") {
        Some((_, message)) if !SIGNS.iter().any(|sign| message.starts_with(sign)) => message.to_owned(),
        _ => line.to_owned(),
    };
    let place = |line: &str| {
        paths_outside(&message(line), root).next().filter(|place| is_of_room(line, place)).map(str::to_owned)
    };
    let place = lines(step).filter(|line| SIGNS.iter().any(|sign| line.contains(sign))).find_map(place)?;
    let cure = "make the step write below the project's folder, its home or `$TMPDIR`".to_owned();
    Some((format!("it may not write `{place}`"), cure))
}

/// Returns the problem with a step that needs a network, and the remedy.
fn offline(step: &StepReport, network: bool) -> Option<(String, String)> {
    let asks = |line: &&str| NETWORK.iter().any(|sign| line.to_lowercase().contains(sign));
    let line = lines(step).find(asks).filter(|_| !network)?;
    Some((
        format!("it needs a network ({line})"),
        "install its downloads before the run, or add `network: true` to the lane".to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::step_report;

    fn around(path: &str, has_network: bool) -> StepSurroundings<'_> {
        StepSurroundings { path, home: Path::new("/h"), root: Path::new("/p"), has_network }
    }

    fn step(command: &str, exit_code: i32, excerpt: &str) -> StepReport {
        StepReport { exit_code: Some(exit_code), ..step_report(command, StepStatus::Failed, excerpt) }
    }

    #[test]
    fn what_is_missing_around_a_step_is_named_with_what_mends_it() {
        let folder = crate::test_support::temp_dir();
        std::fs::write(folder.path().join("there"), "#!/bin/sh\n").unwrap();
        let hidden = format!("/h/bin/tool: 2: {}: not found", folder.path().join("there").display());
        let path = folder.path().to_str().unwrap();
        let unsourced = format!("/h/bin/tool: 2: .: cannot open {path}/there: No such file\n");
        for (command, code, excerpt, text) in [
            ("npm run lint", 127, "> eslint .\n\nsh: 1: eslint: not found\n", "there is no program `eslint`"),
            (
                "make test",
                2,
                "/bin/sh: 1: bats: not found\nmake: *** [Makefile:3: test] Error 127\n",
                "there is no program `bats`",
            ),
            (
                "uv run mypy",
                2,
                "error: Failed to spawn: `mypy`\n  cause: No such file or directory\n",
                "there is no program `mypy`",
            ),
            (
                "node x.js",
                126,
                "No version is set for command node\nConsider adding one of the following versions\n",
                "a version manager finds no program (No version is set for command node)",
            ),
            ("there -q", 127, "sh: 1: there: not found", "a room does not show the program `there`"),
            ("tool -q", 127, &hidden, "a room does not show the program `there`"),
            (
                ".venv/bin/python -m pytest",
                1,
                "/p/.venv/bin/python: No module named pytest\n",
                "`.venv/bin/python -m pip install pytest`",
            ),
            (
                "cargo test",
                101,
                "error: failed\nCaused by:\n  attempting to make an HTTP request, but --offline was specified\n",
                "it needs a network",
            ),
            ("go test ./...", 1, "x.go:3:2: module lookup disabled by GOPROXY=off\n", "`network: true`"),
            (
                "make check",
                2,
                "touch: cannot touch '/etc/x.lock': Read-only file system\nmake: *** [Makefile:2: check] Error 1\n",
                "it may not write `/etc/x.lock`",
            ),
            ("npm test", 1, "Error: EROFS: read-only file system, open '/opt/x/a'\n", "it may not write `/opt/x/a`"),
            ("tool -q", 2, &unsourced, &format!("a room does not show the file {path}/there")),
            (
                "tool -q",
                1,
                &format!("/h/bin/tool: line 2: {path}/there: No such file or directory\n"),
                &format!("a room does not show the file {path}/there"),
            ),
        ] {
            let reported = why(&[step(command, code, excerpt)], &around(path, false));
            assert!(reported.as_ref().is_some_and(|reported| reported.contains(text)), "{command}: {reported:?}");
        }
    }

    #[test]
    fn a_program_in_a_folder_that_is_not_on_the_search_path_is_named_with_its_place() {
        let dir = crate::test_support::temp_dir();
        let (root, home) = (dir.path().join("p"), dir.path().join("h"));
        for file in [root.join(".venv/bin/pytest"), home.join(".cargo/bin/just")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let around = StepSurroundings { path: "/nowhere", home: &home, root: &root, has_network: false };
        let cargo = home.join(".cargo/bin").display().to_string();
        for (name, expected) in [
            ("pytest", "on PATH; the project has it in .venv/bin; write `.venv/bin/pytest` in the step".to_owned()),
            (
                "just",
                format!("it is in {cargo}; add the folder to PATH before you start fledge: `export PATH=\"{cargo}:"),
            ),
            ("nowhere", "there is no program `nowhere`; install it".to_owned()),
        ] {
            let reported = why(&[step(name, 127, &format!("sh: 1: {name}: not found\n"))], &around).unwrap();
            assert!(reported.contains(&expected), "{reported}");
        }
    }

    #[test]
    fn a_path_that_only_the_room_refuses_is_named() {
        let dir = crate::test_support::temp_dir();
        let path = dir.path().join("data").display().to_string();
        let excerpt = format!("touch: cannot touch '{path}': Permission denied\n");
        let reported = why(&[step("sh check.sh", 1, &excerpt)], &around("/bin", false)).unwrap();
        assert!(reported.contains(&format!("it may not write `{path}`")), "{reported}");
        let other = "cat: /proc/1/nothing/x: Permission denied\n";
        assert_eq!(why(&[step("sh check.sh", 1, other)], &around("/bin", false)), None);
    }

    #[test]
    fn a_check_that_fails_by_itself_is_not_taken_for_one_that_cannot_run() {
        for (command, code, excerpt) in [
            ("sh test.sh", 1, "curl: not found\nexpected 3, got 4\n"),
            ("python3 -m pytest", 1, "E   ModuleNotFoundError: No module named 'calc'\n"),
            ("cargo test", 101, "assertion failed: offline mode\n"),
            ("npm test", 1, "AssertionError: page not found\n"),
            ("sh test.sh", 1, "touch: cannot touch '/p/tests/x': Read-only file system\n"),
            ("sh test.sh", 1, "touch: cannot touch 'x': Read-only file system\n"),
            ("sh test.sh", 1, "test.sh: 3: .: cannot open /nowhere/x: No such file\n"),
            ("sh test.sh", 1, "cat: /etc/passwd: No such file or directory\n"),
            ("sh test.sh", 1, "test.sh: line 2: /etc/passwd: No such file or directory\n1 failed\n"),
            ("make", 2, "/bin/sh: 1: cannot create tests/x: Read-only file system\n"),
        ] {
            assert_eq!(why(&[step(command, code, excerpt)], &around("/bin", false)), None, "{command}");
        }
        let network = step("go test", 1, "dial tcp: lookup example.com: no such host");
        assert_eq!(why(&[network], &around("/bin", true)), None);
        let allowed = StepReport { status: StepStatus::AllowedFailure, ..step("x", 127, "sh: x: not found") };
        assert_eq!(why(&[allowed], &around("/bin", false)), None);
    }
}
