//! The distinction between steps that could not run and steps that ran and failed. fledge excuses a
//! failure only if it sees for itself that something outside of the project is missing. Neither the
//! output of a step nor a change to the project can cause an excuse.

use super::LaneRoom;
use super::place::leads_out;
use crate::lane::Step;
use crate::process::sandbox::interpreter;
use crate::process::{EndedProcess, ProcessEnd, Variables};
use crate::verdict::StepStatus;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The texts that follow the name of a program that a shell cannot run. The longest match counts.
const BEHIND: [&str; 8] = [
    ": bad interpreter: No such file or directory",
    ": cannot execute: required file not found",
    ": cannot execute binary file: Exec format error",
    ": command not found",
    ": not found",
    ": Exec format error",
    ": No such file or directory",
    ": Permission denied",
];
/// The maximum length of a program name taken from a step's output, in bytes.
const LONGEST_NAME: usize = 100;
/// The texts that precede the name of the program in zsh.
const BEFORE: [&str; 3] = [": command not found: ", ": no such file or directory: ", ": permission denied: "];

/// Returns the status and the reason for a step that could not start, or whose shell reports that
/// it could not start a program. `variables` are the step's variables, including its search path.
pub(super) fn judge(
    room: &LaneRoom,
    step: &Step,
    variables: &Variables,
    ended: &EndedProcess,
) -> Option<(StepStatus, String)> {
    match &ended.end {
        ProcessEnd::NotStarted(why) => {
            let is_the_projects = lacks_its_own(room, step);
            Some((if is_the_projects { StepStatus::Failed } else { StepStatus::Errored }, why.clone()))
        }
        ProcessEnd::Exited(code @ (126 | 127)) => {
            let output = ended.output.text(2048);
            let path = variables.get("PATH").unwrap_or_default();
            let name = named(&output).filter(|name| is_name(name));
            let is_all = |name| step.is_one_program() && step.program() == Some(name);
            let is_missing = name.is_some_and(|name| is_all(name) && is_nowhere(room, path, name));
            let note = match name {
                Some(name) if is_missing => format!("there is no program `{name}` in PATH ({path})"),
                Some(name) => refused(room, step, *code, name),
                None if *code == 126 => "126 is also what a shell ends with when it may not run a program".into(),
                None => "127 is also what a shell ends with when it finds no program".into(),
            };
            Some((if is_missing { StepStatus::Errored } else { StepStatus::Failed }, note))
        }
        ProcessEnd::Exited(_)
        | ProcessEnd::Signalled(_)
        | ProcessEnd::TimedOut
        | ProcessEnd::Stopped
        | ProcessEnd::Exceeded(_) => None,
    }
}

/// Returns true if the missing item may be the step's folder, or a shell that is a file of the
/// project. The agent can remove these.
fn lacks_its_own(room: &LaneRoom, step: &Step) -> bool {
    let dir = room.root.join(step.dir.as_deref().unwrap_or("."));
    let shell = step.shell.first().filter(|shell| shell.contains('/')).map(|shell| dir.join(shell));
    leads_out(room, step.dir.as_deref().unwrap_or("."))
        || room.root.is_dir() && !dir.is_dir()
        || shell.is_some_and(|shell| shell.starts_with(&room.root))
}

/// Returns the program that a shell names in its last line.
fn named(output: &str) -> Option<&str> {
    let line = output.trim_end().lines().next_back()?;
    let name = BEHIND.iter().find_map(|words| line.strip_suffix(words)).and_then(|start| start.rsplit(": ").next());
    name.or_else(|| BEFORE.iter().find_map(|words| line.rsplit_once(words).map(|(_, name)| name)))
        .filter(|name| !name.is_empty())
}

/// Returns true if a printed text can be the name of a program. Other text could mislead readers of
/// the note.
fn is_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && !text.chars().any(|char| char.is_whitespace() || char.is_control())
}

/// Returns true if a program is looked up in the search path and no folder there contains it. The
/// search path must not have folders of the project, from which the project could have removed the
/// program.
fn is_nowhere(room: &LaneRoom, path: &str, name: &str) -> bool {
    let is_program =
        |file: &Path| file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    !name.contains('/')
        && std::env::split_paths(path)
            .all(|folder| folder.is_absolute() && !folder.starts_with(&room.root) && !is_program(&folder.join(name)))
}

/// Explains why the shell could not run this program, as far as fledge can see.
fn refused(room: &LaneRoom, step: &Step, code: i32, name: &str) -> String {
    let file = room.root.join(step.dir.as_deref().unwrap_or(".")).join(name);
    let is_there = name.contains('/') && file.exists();
    let has_interpreter = interpreter(&file).first().is_some_and(|first| Path::new(first).exists());
    match (code, is_there) {
        (127, true) if has_interpreter => {
            format!(
                "the shell could not start `{name}`: it or its interpreter is there by hand, and not in the sandbox of the step"
            )
        }
        (127, true) => {
            format!("the shell could not start `{name}`: it is there, but what it needs to be run by is not")
        }
        (127, false) => format!("the shell found no program `{name}`"),
        (_, _) => format!("the shell may not or cannot run `{name}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_named_by_the_last_words_of_every_shell() {
        let cases = [
            ("sh: 1: nope: not found", Some("nope")),
            ("some output\n./run.sh: 3: nope: not found\n", Some("nope")),
            ("bash: line 1: nope: command not found", Some("nope")),
            ("sh: 1: ./x: Permission denied", Some("./x")),
            ("bash: ./x: cannot execute: required file not found", Some("./x")),
            ("bash: ./x: /nope: bad interpreter: No such file or directory", Some("/nope")),
            ("bash: line 1: ./x: cannot execute binary file: Exec format error", Some("./x")),
            ("zsh:1: command not found: nope", Some("nope")),
            ("ksh: nope: not found [No such file or directory]", None),
            ("sh: 1: nope: not found\nand more", None),
            (": not found", None),
            ("", None),
        ];
        for (output, name) in cases {
            assert_eq!(named(output), name, "{output}");
        }
    }
}
