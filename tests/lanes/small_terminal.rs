//! Live lines on small terminals: the whole screen while steps run, and after they end.
#![cfg(target_os = "linux")]

use super::terminal::{Terminal, timeless};
use crate::support::Fledge;

/// Columns and rows of small terminals.
const SIZES: [(u16, u16); 2] = [(40, 10), (30, 6)];
/// A step that prints a progress bar as pytest does, with `END` after it, and then waits for the
/// file `go`.
const PYTEST: &str = "name: pytest\n    run: |\n      \
    printf 'a.py ........  [ 52%%]\\nb.py '; for dot in . . . . .; do printf $dot; done; \
    printf '\\r\\033[2Kb.py .....    [100%%]END'; until test -f go; do sleep 0.01; done; echo\n";

/// Returns the rows of the screen, with equal times and spinners.
fn rows(terminal: &Terminal) -> String {
    let spinner = |c: char| if ('\u{2800}'..='\u{28ff}').contains(&c) { '⠋' } else { c };
    timeless(&terminal.shown().join("\n")).chars().map(spinner).collect()
}

/// Returns the rows with equal times and ids. An id may be broken by the edge of the terminal.
fn text(rows: &[String]) -> String {
    let is_id = |word: &str| word.len() > 4 && word.chars().all(|c| c == '-' || c.is_ascii_hexdigit());
    let word = |word: &str| if is_id(word) { "0".repeat(word.len()) } else { timeless(word) };
    let row = |row: &String| row.split(' ').map(word).collect::<Vec<_>>().join(" ");
    rows.iter().map(row).collect::<Vec<_>>().join("\n")
}

/// Plays the program on both terminals. Returns the screens while the step runs and at the end.
/// `last` is in the last row while the step runs.
fn play(fledge: impl Fn() -> Fledge, args: &[&str], last: &str) -> String {
    let mut all = String::new();
    for size in SIZES {
        let fledge = fledge();
        let go = fledge.workspace().join("go");
        let mut terminal = Terminal::run_on(size, fledge, args, &[]);
        terminal.wait_until(|screen| {
            let is_cut = ["b.py ..…", "b.py .....    …"].iter().any(|row| screen.contains(row));
            is_cut && screen.lines().last().is_some_and(|row| row.contains(last))
        });
        let running = rows(&terminal);
        std::fs::write(go, "").unwrap();
        let (code, rest) = terminal.end_shown();
        all += &format!("{}x{}\n{running}\n--- exit code {}\n{}\n\n", size.0, size.1, code.unwrap(), text(&rest));
    }
    all
}

#[test]
fn the_screen_of_a_lane_holds_a_progress_bar_and_nothing_twice() {
    let lane = format!("room: in-place\nsteps:\n  - {}", PYTEST.replace("END", ""));
    let place = || Fledge::new().lane("verify", &lane);
    insta::assert_snapshot!("lane", &play(place, &["lanes", "run", "verify"], "b.py .."));
}

#[test]
fn the_screen_of_a_run_holds_its_step_and_its_status() {
    let lane = format!("room: in-place\nsteps:\n  - {}", PYTEST.replace("END", ""));
    let answers = "turns: [{ text: The parser is mended. }]\n";
    let place = || Fledge::new().lane("verify", &lane).file("answers.yaml", answers);
    let args = ["run", "-p", "Mend the parser", "--model", "cassette/answers.yaml", "--max-retries=0"];
    let flags = ["--baseline=never", "--sandbox=off"];
    insta::assert_snapshot!("run", &play(place, &[&args[..], &flags].concat(), " 0:0"));
}
