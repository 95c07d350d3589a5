//! Questions to a person at the terminal: whether a tool call may run.
//!
//! The question shows exactly what the call would do, and escapes characters that could hide
//! something. It stays below all other output. Keys typed before the question appeared do not count
//! as an answer.

use super::failure::CliError;
use super::live::{cells, forget_question, pin, unpin};
use super::paint::{self, Tone};
use crate::driver::{Consent, EventWatcher, Question};
use crate::duration::milliseconds;
use crate::report::seconds;
use anyhow::{Context as _, anyhow};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize, ttyname};
use serde_json::Value;
use std::io::{BufRead as _, ErrorKind, IsTerminal, stderr, stdin};
use std::sync::Arc;
use tokio::net::unix::pipe::Receiver;

/// Lines to show of an argument that is neither a command nor a path.
const LINES: usize = 12;
/// The longest command and path to show, in bytes together. A person cannot judge longer ones.
const LONGEST: usize = 16 * 1024;

/// Asks a person to confirm an irreversible action. `what` states the effect: "2 memories would be
/// forgotten".
///
/// # Errors
/// When standard input or standard error is not a terminal, or the answer cannot be read.
pub(super) fn confirm(what: &str) -> Result<bool, CliError> {
    if !is_somebody_there() {
        let error = anyhow!("{what}: cannot ask for confirmation without a terminal");
        return Err(CliError::input(error).hint("pass --yes to confirm"));
    }
    paint::write(&[(Tone::Plain, &format!("{what}; continue? [y/N] "))]);
    let mut answer = String::new();
    let heard = stdin().lock().read_line(&mut answer);
    heard.context("cannot read the answer").map_err(CliError::own)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Returns true if standard input and standard error are terminals, so that a person can answer.
pub(super) fn is_somebody_there() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// A message for the thread that shows questions. The thread does nothing else, so a terminal that
/// accepts no output does not block a run.
#[derive(Debug)]
pub(super) enum ScreenThread {
    /// Text that stays above the question.
    Above(String),
    /// The question below all other output, and true if the terminal can move its cursor.
    Question(String, bool),
    /// The person has answered.
    Answered,
    /// The question was withdrawn: no answer is needed any more.
    Withdrawn,
}

/// The thread that shows questions, in their order.
pub(super) type QuestionScreen = Arc<EventWatcher<ScreenThread>>;

/// Returns the screen for the questions of a run.
pub(super) fn screen() -> QuestionScreen {
    let show = |shown, _| match shown {
        ScreenThread::Above(text) => paint::log(&text),
        ScreenThread::Question(text, can_move) => pin(&text, can_move),
        ScreenThread::Answered => forget_question(),
        ScreenThread::Withdrawn => unpin(),
    };
    Arc::new(EventWatcher::new(|_| 1, show))
}

/// Asks the question and waits for the answer. Dropping the future withdraws the question.
pub(super) async fn ask(question: Question, can_move: bool, screen: QuestionScreen) -> Consent {
    let size: usize = question
        .args
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_exact(name))
        .map(|(_, value)| value.to_string().len())
        .sum();
    if size > LONGEST {
        return Consent::No(format!("call too long to review: {size} bytes, at most {LONGEST}; shorten it"));
    }
    let Ok(keys) = keys() else { return Consent::No("the terminal cannot be read".into()) };
    let _pinned = Pinned(screen.clone());
    let show = |shown| screen.send(shown, false);
    let body = body(&question);
    let prompt = prompt(&question);
    let whole = format!("{body}\n{prompt}");
    let (width, height) =
        tcgetwinsize(stderr()).map_or((80, 24), |size| (usize::from(size.ws_col).max(1), usize::from(size.ws_row)));
    let rows: usize = whole.split('\n').map(|line| cells(line).div_ceil(width).max(1)).sum();
    let shown = if rows < height.max(4) {
        whole
    } else {
        show(ScreenThread::Above(body + "\n")); // too long to stay at the bottom; the question names the tool instead
        format!("? {} (above): allow this call?\n{prompt}", spelled(&question.tool))
    };
    show(ScreenThread::Question(shown, can_move));
    screen.wait_until_idle().await;
    loop {
        match line(&keys).await {
            Ok(Some(answer)) => {
                show(ScreenThread::Answered);
                match understood(&answer) {
                    Some(consent) => return consent,
                    None => show(ScreenThread::Question(format!("answer y, n or a\n{prompt}"), can_move)),
                }
            }
            Ok(None) => return Consent::No(String::new()),
            Err(_) => return Consent::No("the terminal cannot be read".into()),
        }
    }
}

/// Withdraws the question when dropped.
struct Pinned(QuestionScreen);

impl Drop for Pinned {
    fn drop(&mut self) {
        self.0.send(ScreenThread::Withdrawn, false);
    }
}

/// Opens the terminal for reading. A new handle leaves the flags of other handles unchanged.
/// Discards keys that were typed before.
fn keys() -> std::io::Result<Receiver> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let keys = open(ttyname(stdin(), Vec::new())?, flags, Mode::empty())?;
    tcflush(&keys, QueueSelector::IFlush)?;
    Receiver::from_owned_fd_unchecked(keys)
}

/// Returns the next line that is typed, or `None` at the end of input.
async fn line(keys: &Receiver) -> std::io::Result<Option<String>> {
    let (mut line, mut bytes) = (Vec::new(), [0; 1024]);
    loop {
        keys.readable().await?;
        match keys.try_read(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(count) => line.extend_from_slice(&bytes[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if line.ends_with(b"\n") {
            return Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()));
        }
    }
}

/// Parses an answer. Returns `None`, so that fledge asks again, unless the answer is clearly one of
/// the three.
fn understood(answer: &str) -> Option<Consent> {
    let (word, why) = answer.split_once(' ').unwrap_or((answer, ""));
    match (word.to_lowercase().as_str(), why.trim()) {
        ("y" | "yes", "") => Some(Consent::Yes),
        ("a" | "always", "") => Some(Consent::Always),
        ("n" | "no", why) => Some(Consent::No(why.to_owned())),
        _ => None,
    }
}

fn prompt(question: &Question) -> String {
    let within = question.within.map(|within| format!(" (within {})", seconds(milliseconds(within))));
    let what = match &question.args {
        Value::Object(args) if question.tool == "shell-exec" && args.contains_key("command") => "this command",
        Value::Object(args) if question.tool.starts_with("files-") && args.contains_key("path") => "this path",
        _ => "just this",
    };
    format!("y yes, n no, a always {what}{}: ", within.unwrap_or_default())
}

/// Returns the tool and its arguments as text, one argument per line.
fn body(question: &Question) -> String {
    let of = question.of.as_deref().map(|path| format!(" of sub-agent {}", spelled(path))).unwrap_or_default();
    let mut text = format!("? {}{of}: allow this call?", spelled(&question.tool));
    let Value::Object(args) = &question.args else {
        return text + &quoted(&question.args.to_string(), usize::MAX);
    };
    for (name, value) in args {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let most = if is_exact(name) { usize::MAX } else { LINES };
        let is_short = !value.contains('\n') && name != "command";
        text.push_str(&match is_short {
            true if most == usize::MAX || value.len() <= 400 => format!("\n  {}: {}", spelled(name), spelled(&value)),
            _ if name == "command" => quoted(&value, most),
            _ => format!("\n  {} ({} bytes):{}", spelled(name), value.len(), quoted(&value, most)),
        });
    }
    text
}

/// Returns true if an argument states the action or its place. Such arguments are never cut.
fn is_exact(argument: &str) -> bool {
    ["command", "path"].contains(&argument)
}

/// Returns the lines of a text, each with a bar before it.
fn quoted(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let cut = |line: &str| {
        if most == usize::MAX { spelled(line) } else { spelled(&line.chars().take(400).collect::<String>()) }
    };
    let shown: String = lines.iter().take(most).map(|line| format!("\n  │ {}", cut(line))).collect();
    let more = lines.len().saturating_sub(most);
    if more == 0 { shown } else { format!("{shown}\n  … {more} more lines") }
}

/// Escapes characters that move the cursor, change the text direction or are invisible.
fn spelled(text: &str) -> String {
    let spell = |c: char| match c {
        '\'' | '"' | '\\' => c.to_string(),
        c if crate::process::is_invisible(c) => c.escape_unicode().to_string(),
        c => c.escape_debug().to_string(),
    };
    text.chars().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::RunId;
    use serde_json::json;
    use std::time::Duration;

    fn question(tool: &str, args: Value) -> Question {
        Question { run: RunId::new("r"), of: None, tool: tool.into(), args, within: Some(Duration::from_secs(300)) }
    }

    #[test]
    fn what_hides_something_is_spelled_out() {
        let command = "echo 'a\u{1b}[2K\r' \u{202e}x\u{200b}\ty \\n ü\nrm \u{7}x";
        let shown = body(&question("shell-exec", json!({ "command": command, "timeout": 5 })));
        let wanted = "\n  │ echo 'a\\u{1b}[2K\\r' \\u{202e}x\\u{200b}\\ty \\n ü\n  │ rm \\u{7}x\n  timeout: 5";
        assert_eq!(shown.split_once('\n').map(|(_, rest)| format!("\n{rest}")).as_deref(), Some(wanted));
    }

    #[test]
    fn paths_are_shown_whole_and_contents_in_part() {
        let content: String = (0..40).map(|n| format!("{n}\n")).collect();
        let path = "a/".repeat(300) + "b";
        let shown = body(&question("files-write", json!({ "path": path, "content": content })));
        assert!(
            shown.contains(&format!("  path: {path}")) && shown.contains("  content (110 bytes):\n  │ 0\n"),
            "{shown}"
        );
        assert!(shown.contains("  │ 11\n  … 29 more lines"), "{shown}");
    }

    #[test]
    fn only_what_is_surely_an_answer_is_one() {
        for (answer, wanted) in [
            ("y", Some(Consent::Yes)),
            ("YES", Some(Consent::Yes)),
            ("a", Some(Consent::Always)),
            ("n", Some(Consent::No(String::new()))),
            ("no not on a friday", Some(Consent::No("not on a friday".into()))),
            ("", None),
            ("ny", None),
            ("y n", None),
            ("yy", None),
        ] {
            assert_eq!(understood(answer), wanted, "{answer:?}");
        }
    }
}
