//! What is plain to see of a step's command: the program that it begins with.

use super::Step;

impl Step {
    /// Whether its command goes to the system's own POSIX shell, as it does when nothing else is said.
    pub fn has_plain_shell(&self) -> bool {
        self.shell == ["/bin/sh", "-c"]
    }

    /// The program that its command begins with, where a POSIX shell has no choice about it.
    pub fn program(&self) -> Option<&str> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+".contains(c);
        let word = self.run.split_whitespace().next().filter(|word| word.chars().all(plain))?;
        (self.has_plain_shell() && !SHELL_WORDS.contains(&word)).then_some(word)
    }

    /// Whether that program is all that its command runs: plain words follow it, and nothing that a shell acts on.
    pub fn is_one_program(&self) -> bool {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+=:,@% ".contains(c);
        self.program().is_some() && self.run.chars().all(plain)
    }
}

/// Words that a POSIX shell understands without a program (POSIX.1-2017, XCU 1.6, 2.4 and 2.14).
const SHELL_WORDS: [&str; 49] = [
    ".", "alias", "bg", "break", "case", "cd", "command", "continue", "do", "done", "elif", "else", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "getopts", "hash", "if", "in", "jobs", "kill",
    "newgrp", "printf", "pwd", "read", "readonly", "return", "set", "shift", "test", "then", "times", "trap", "true",
    "type", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

#[cfg(test)]
mod tests {
    use crate::lane::parse;

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
        ] {
            let lane = parse("v", "v.yaml", &format!("steps: [{{ run: '{run}'{shell} }}]")).unwrap();
            let step = &lane.steps[0];
            assert_eq!((step.program(), step.is_one_program()), (program, is_one), "{run}");
        }
    }
}
