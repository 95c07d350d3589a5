//! The programs of a step's command, as far as its text shows them.

use super::Step;

impl Step {
    /// Returns true if the system's POSIX shell runs the command, which is the default.
    pub fn has_plain_shell(&self) -> bool {
        self.shell == ["/bin/sh", "-c"]
    }

    /// Returns the program at the beginning of the command, if a POSIX shell cannot interpret the
    /// word in another way.
    pub fn program(&self) -> Option<&str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        let word = self.run.split_whitespace().next().filter(|word| word.chars().all(plain))?;
        (self.has_plain_shell() && !SHELL_WORDS.contains(&word)).then_some(word)
    }

    /// Returns the programs that the command starts, as far as plain words name them. These are the
    /// first word of each simple command, and the shell if it is not the default. Words in quotes
    /// and here-documents may be included by mistake.
    pub fn programs(&self) -> Vec<&str> {
        let plain = |word: &&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./+".contains(c));
        let own = self.shell.first().filter(|_| !self.has_plain_shell()).map(String::as_str);
        let is_shell = own.is_none_or(|own| own.ends_with("sh"));
        let commands = self.run.split(['\n', ';', '&', '|', '(', ')', '{', '}', '`', '$']).filter(|_| is_shell);
        let is_before = |word: &&str| {
            word.contains('=')
                || word.starts_with('-')
                || word.starts_with(|c: char| c.is_ascii_digit())
                || STARTERS.contains(word)
        };
        let first = commands.filter_map(|command| command.split_whitespace().find(|word| !is_before(word)));
        own.into_iter().chain(first.filter(plain).filter(|word| !SHELL_WORDS.contains(word))).collect()
    }

    /// Returns true if the command has several lines and a POSIX shell continues after a failing
    /// line. Its exit code is then only that of the last line.
    pub fn is_deaf_to_failures(&self) -> bool {
        let lines = self.run.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        let lines: Vec<&str> = lines.collect();
        let is_careful = lines.first().is_some_and(|first| {
            let is_e = |word: &str| word == "errexit" || (word.starts_with('-') && word.contains('e'));
            first.starts_with("set ") && first.split([' ', ';']).any(is_e)
        });
        let is_told_apart = |pair: &[&str]| {
            let [before, line] = pair else { return false };
            !before.ends_with(['\\', '&', '|', '{', '(', ';'])
                && !before.split_whitespace().next_back().is_some_and(|word| OPENING.contains(&word))
                && !line.split([' ', ';']).next().is_some_and(|word| CLOSING.contains(&word))
        };
        self.has_plain_shell() && !is_careful && !self.run.contains("<<") && lines.windows(2).any(is_told_apart)
    }

    /// Returns true if the program is the whole command: only plain words follow it, and no shell
    /// operator.
    pub fn is_one_program(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+=:,@% ".contains(c);
        self.program().is_some() && self.run.chars().all(plain)
    }
}

/// Words that precede another command.
pub(super) const STARTERS: [&str; 18] = [
    "!", "if", "then", "elif", "else", "while", "until", "do", "time", "exec", "command", "env", "nice", "nohup",
    "timeout", "xargs", "sudo", "stdbuf",
];

/// Words after which a command continues, and words that continue a command.
const OPENING: [&str; 4] = ["do", "then", "else", "in"];
const CLOSING: [&str; 10] = ["&&", "||", "|", "}", ")", "do", "done", "then", "else", "fi"];

/// Words that a POSIX shell understands without a program (POSIX.1-2017, XCU 1.6, 2.4 and 2.14).
/// Also includes two words that every such shell adds, and words of shells that some systems
/// install as `sh`.
pub(super) const SHELL_WORDS: [&str; 67] = [
    ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "echo", "elif", "else", "esac",
    "eval", "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "getopts", "hash", "if", "in", "jobs", "kill",
    "local", "newgrp", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "then", "times", "trap",
    "true", "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while", "builtin", "declare", "dirs",
    "disown", "enable", "function", "let", "mapfile", "popd", "pushd", "select", "shopt", "source", "suspend", "time",
    "typeset",
];

#[cfg(test)]
mod tests {
    use crate::lane::parse;

    #[test]
    fn a_command_of_several_lines_is_deaf_to_the_failures_of_all_but_the_last() {
        for (run, is_deaf) in [
            ("cd nowhere\nfalse\necho done", true),
            ("cargo build &&\n  cargo test", false),
            ("cargo test \\\n  --all\n# that is all\n", false),
            ("set -eu\nfalse\ntrue", false),
            ("set -o errexit; false\ntrue", false),
            ("set -x\nfalse\ntrue", true),
            ("if false; then\n  a\nelse\n  b\nfi", false),
            ("for a in b; do\n  c\n  d\ndone", true),
            ("cat > f <<E\na\nE", false),
            ("sudo\nb", true),
        ] {
            let mut step = parse("v", "v.yaml", "steps: [{ run: x }]").unwrap().steps.remove(0);
            step.run = run.into();
            assert_eq!(step.is_deaf_to_failures(), is_deaf, "{run}");
            step.shell = ["/bin/sh", "-ec"].map(str::to_owned).into();
            assert!(!step.is_deaf_to_failures());
        }
    }

    #[test]
    fn each_simple_command_names_a_program() {
        for (run, shell, programs) in [
            ("cargo test --all", "", vec!["cargo"]),
            ("A=1 timeout 5 pytest -q && (cd web; ruff check) | tee log", "", vec!["pytest", "ruff", "tee"]),
            ("if black --check .; then\n  exec eslint .\nfi", "", vec!["black", "eslint"]),
            ("$CARGO test; \"a b\" c", "", vec!["CARGO"]),
            ("import sys", ", shell: python3", vec!["python3"]),
            ("x", ", shell: bash", vec!["bash", "x"]),
        ] {
            let mut step = parse("v", "v.yaml", &format!("steps: [{{ run: x{shell} }}]")).unwrap().steps.remove(0);
            step.run = run.into();
            assert_eq!(step.programs(), programs, "{run}");
        }
    }

    #[test]
    fn a_program_is_told_only_where_the_shell_has_no_choice() {
        for (run, shell, program, is_one) in [
            ("cargo test --all", "", Some("cargo"), true),
            ("./t.sh", "", Some("./t.sh"), true),
            ("cargo test && echo", "", Some("cargo"), false),
            ("cargo test > log", "", Some("cargo"), false),
            ("set -eu", "", None, false),
            ("A=1 cargo test", "", None, false),
            ("$CARGO test", "", None, false),
            ("import sys", ", shell: python3", None, false),
            ("source x", ", shell: bash", None, false),
            ("source x", "", None, false),
            ("pushd web && npm test", "", None, false),
            ("time make", "", None, false),
        ] {
            let lane = parse("v", "v.yaml", &format!("steps: [{{ run: '{run}'{shell} }}]")).unwrap();
            let step = &lane.steps[0];
            assert_eq!((step.program(), step.is_one_program()), (program, is_one), "{run}");
        }
    }
}
