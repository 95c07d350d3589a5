//! A lane on a terminal: the screen while steps run and after they end.
#![cfg(target_os = "linux")]

use crate::support::{Fledge, must_be_gone, unique};
use crate::support::{PATIENCE, open_terminal, read_some};
use fledge::limits::CANCEL_GRACE;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Instant;

const WIDTH: u16 = 48;
const HINT: &str = "stopping; press Ctrl-C again to kill at once";
/// The arguments that run the lane of a test.
const LANE: &[&str] = &["lanes", "run", "verify"];

/// The program on a terminal, with the terminal's control sequences applied.
pub(crate) struct Terminal {
    _fledge: Fledge,
    child: Child,
    output: File,
    /// The columns and rows of the terminal.
    size: (u16, u16),
    /// All rows that were ever shown. `at` is the cursor.
    rows: Vec<Vec<char>>,
    at: (usize, usize),
    escape: Option<String>,
    /// Dropping this sender ends the watchdog that kills a hanging program.
    _over: Sender<()>,
}

impl Terminal {
    /// Runs a lane that receives signals but no keys.
    fn run(fledge: Fledge, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::run_on((WIDTH, 8), fledge, &[LANE, args].concat(), env)
    }

    /// Runs the program on a terminal with this many columns and rows.
    pub(crate) fn run_on(size: (u16, u16), fledge: Fledge, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::run_by(Command::new(env!("CARGO_BIN_EXE_fledge")), size, false, fledge, args, env)
    }

    /// Runs a lane in a separate session that receives the keys of the terminal.
    fn run_with_keys(fledge: Fledge) -> Self {
        let mut command = Command::new("setsid");
        command.args(["--ctty", env!("CARGO_BIN_EXE_fledge")]);
        Self::run_by(command, (WIDTH, 8), true, fledge, LANE, &[])
    }

    fn run_by(
        mut command: Command,
        size: (u16, u16),
        has_keys: bool,
        fledge: Fledge,
        args: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let (main, own) = open_terminal(size.0, size.1);
        command.args(args).current_dir(fledge.workspace()).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TERM", "xterm").env("NO_COLOR", "1");
        command.env("HOME", fledge.workspace()).env("FLEDGE_STATE_DIR", fledge.state()).envs(env.iter().copied());
        let keys = if has_keys { Stdio::from(own.try_clone().unwrap()) } else { Stdio::null() };
        command.stdin(keys).stdout(Stdio::null()).stderr(own);
        let child = command.spawn().unwrap();
        let (over, heard) = channel();
        let pid = Pid::from_child(&child);
        std::thread::spawn(move || {
            if heard.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let _it_is_stuck = kill_process(pid, Signal::KILL);
            }
        });
        let (rows, at) = (vec![Vec::new()], (0, 0));
        Self { _fledge: fledge, child, output: main, size, rows, at, escape: None, _over: over }
    }

    /// Reads until the screen matches.
    #[track_caller]
    pub(crate) fn wait_until(&mut self, wanted: impl Fn(&str) -> bool) {
        let mut bytes = [0; 4096];
        while !wanted(&self.screen()) {
            // Linux reports a closed other end as an error.
            let read = read_some(&mut self.output, &mut bytes);
            assert!(read > 0, "it ended before that:\n{}", self.screen());
            String::from_utf8_lossy(&bytes[..read]).chars().for_each(|char| self.take(char));
        }
    }

    /// Returns the exit code and the final screen.
    fn end(mut self) -> (Option<i32>, String) {
        self.read_rest();
        (self.child.wait().unwrap().code(), self.screen())
    }

    /// Returns the exit code and the rows that the terminal shows at the end.
    pub(crate) fn end_shown(mut self) -> (Option<i32>, Vec<String>) {
        self.read_rest();
        (self.child.wait().unwrap().code(), self.shown())
    }

    fn read_rest(&mut self) {
        let mut rest = Vec::new();
        let _ends_with_an_error = self.output.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).chars().for_each(|char| self.take(char));
    }

    /// Returns the rows that the terminal shows now, without those that have left at the top.
    pub(crate) fn shown(&self) -> Vec<String> {
        let (columns, rows) = self.size;
        let all: Vec<String> = self.screen().lines().map(str::to_owned).collect();
        assert!(all.iter().all(|row| row.chars().count() <= usize::from(columns)), "{all:?}");
        all[all.len().saturating_sub(usize::from(rows))..].to_vec()
    }

    fn screen(&self) -> String {
        let row = |row: &Vec<char>| row.iter().collect::<String>().trim_end().to_owned() + "\n";
        self.rows.iter().map(row).collect::<String>().trim_end().to_owned()
    }

    fn take(&mut self, char: char) {
        if let Some(mut escape) = self.escape.take() {
            escape.push(char);
            match escape.as_str() {
                "[A" => self.at.0 = self.at.0.saturating_sub(1),
                "[2K" => self.rows[self.at.0].clear(),
                other if char.is_ascii_alphabetic() => panic!("the terminal gets {other:?}"),
                _ => self.escape = Some(escape),
            }
            return;
        }
        match char {
            '\u{1b}' => self.escape = Some(String::new()),
            '\r' => self.at.1 = 0,
            '\n' => self.down(),
            char => {
                if self.at.1 == usize::from(self.size.0) {
                    self.down();
                    self.at.1 = 0;
                }
                let row = &mut self.rows[self.at.0];
                row.resize(row.len().max(self.at.1 + 1), ' ');
                row[self.at.1] = char;
                self.at.1 += 1;
            }
        }
    }

    fn down(&mut self) {
        self.at.0 += 1;
        self.rows.resize(self.rows.len().max(self.at.0 + 1), Vec::new());
    }
}

/// Replaces each digit with 0, so that times are equal.
pub(crate) fn timeless(screen: &str) -> String {
    screen.replace(|c: char| c.is_ascii_digit(), "0")
}

#[test]
fn each_running_step_has_a_line_that_goes_when_it_ends() {
    let step =
        |name: &str| format!("{{ name: {name}, run: 'echo I am {name}; until test -f go; do sleep 0.01; done' }}");
    let lane = format!("jobs: 2\nsteps:\n  - name: both\n    parallel: [{}, {}]\n", step("one"), step("two"));
    let fledge = Fledge::new().lane("verify", &lane);
    let go = fledge.workspace().join("go");
    let mut terminal = Terminal::run(fledge, &[], &[]);
    terminal.wait_until(|screen| screen.contains("one  I am one\n") && screen.ends_with("two  I am two"));
    std::fs::write(go, "").unwrap();
    let (code, screen) = terminal.end();
    let mut lines: Vec<String> = timeless(&screen).lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["  ✓ verify/one 0.0s", "  ✓ verify/two 0.0s", "lane verify passed (0.0s): 0 passed"]);
    assert_eq!(code, Some(0));
}

#[test]
fn nothing_wraps_and_what_does_not_fit_is_counted() {
    let number = unique();
    let say = "printf '10%%\\r🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀 and on and on\\n'";
    let steps: String =
        (1..=9).map(|n| format!("  - {{ name: a-step-{n}, run: \"{say}; sleep {number}\", needs: [] }}\n")).collect();
    let fledge = Fledge::new().lane("verify", &format!("jobs: 9\nsteps:\n{steps}"));
    let mut terminal = Terminal::run(fledge, &[], &[]);
    terminal.wait_until(|screen| {
        let rows: Vec<&str> = screen.lines().collect();
        rows.len() == 6
            && rows[..5].iter().all(|row| row.contains('🦀') && row.ends_with('…'))
            && rows[5] == "  and 4 more"
    });
    let pid = Pid::from_child(&terminal.child);
    kill_process(pid, Signal::INT).unwrap();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130));
    let rest = screen.strip_prefix(HINT).unwrap().trim_start_matches('\n');
    assert!(rest.lines().all(|line| line.starts_with("  - verify/") || line.starts_with("lane verify")), "{screen}");
    assert_eq!(timeless(screen.lines().last().unwrap()), "lane verify cancelled (0.0s): 0 cancelled");
    must_be_gone(&number);
}

#[test]
fn asked_twice_it_ends_at_once_and_leaves_a_clean_screen() {
    let lane = "steps: [{ name: deaf, run: 'trap \"\" INT TERM; echo deaf now; sleep 3 & wait; sleep 3' }]";
    let mut terminal = Terminal::run(Fledge::new().lane("verify", lane), &[], &[]);
    terminal.wait_until(|screen| screen.ends_with("deaf  deaf now"));
    let pid = Pid::from_child(&terminal.child);
    let asked = Instant::now();
    kill_process(pid, Signal::INT).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    let (code, screen) = terminal.end();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    // On a very busy machine the grace period may pass before the second signal. Then fledge prints
    // its last lines.
    let is_late = asked.elapsed() >= CANCEL_GRACE;
    assert!(!screen.contains("deaf now") && (is_late || !screen.contains("lane verify")), "{screen}");
}

#[test]
fn the_first_ctrl_c_says_at_once_what_a_second_one_does_and_that_kills() {
    let number = unique();
    let lane = format!("steps: [{{ name: deaf, run: 'trap \"\" INT TERM; echo deaf now; sleep {number} & wait' }}]");
    let mut terminal = Terminal::run_with_keys(Fledge::new().lane("verify", &lane));
    terminal.wait_until(|screen| screen.ends_with("deaf  deaf now"));
    let asked = Instant::now();
    terminal.output.write_all(b"\x03").unwrap();
    terminal.wait_until(|screen| screen.contains(&format!("{HINT}\n")) && screen.ends_with("deaf  deaf now"));
    terminal.output.write_all(b"\x03").unwrap();
    let (code, screen) = terminal.end();
    assert_eq!(code, Some(130));
    let screen = screen.trim_start_matches("^C").trim();
    let is_late = asked.elapsed() >= CANCEL_GRACE; // as above
    assert!(if is_late { screen.starts_with(HINT) } else { screen == HINT }, "{screen}");
    must_be_gone(&number);
}

#[test]
fn a_line_that_is_only_begun_is_shown() {
    let wait = "until test -f go; do sleep 0.01; done";
    let lane = format!("steps: [{{ name: bar, run: \"echo begun; printf '10%%\\r20%%\\r'; {wait}\" }}]");
    let fledge = Fledge::new().lane("verify", &lane);
    let go = fledge.workspace().join("go");
    let mut terminal = Terminal::run(fledge, &[], &[]);
    terminal.wait_until(|screen| screen.ends_with("bar  20%"));
    std::fs::write(go, "").unwrap();
    assert_eq!(terminal.end().0, Some(0));
}

#[test]
fn where_nobody_wants_them_there_are_no_live_lines() {
    let lane = "steps: [{ name: a, run: sleep 0.4 }]";
    let cases = [
        ("--ni", ("LANG", "C")),
        ("--keep-going", ("TERM", "dumb")),
        ("--keep-going", ("FLEDGE_NON_INTERACTIVE", "1")),
        ("--output=none", ("GITHUB_ACTIONS", "true")),
    ];
    for (arg, env) in cases {
        let mut terminal = Terminal::run(Fledge::new().lane("verify", lane), &[arg], &[env]);
        let mut said = Vec::new();
        let _ends_with_an_error = terminal.output.read_to_end(&mut said);
        let said = timeless(&String::from_utf8(said).unwrap());
        assert_eq!(said, "  ✓ verify/a 0.0s\r\nlane verify passed (0.0s): 0 passed\r\n", "{arg} {env:?}");
        assert_eq!(terminal.end().0, Some(0));
    }
}
