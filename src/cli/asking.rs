//! A person at the terminal is asked whether a call may run: shown is exactly what would be done, with every character that hides something
//! spelled out; the question stays below all other output, and what was typed before it was shown is no answer.

use super::failure::Failure;
use super::live::{cells, pin, settle, unpin};
use super::paint::{self, Tone};
use crate::driver::{Consent, Question, Watcher};
use crate::duration::milliseconds;
use crate::report::seconds;
use anyhow::{Context as _, anyhow};
use rustix::fs::{Mode, OFlags, open};
use rustix::termios::{QueueSelector, tcflush, tcgetwinsize, ttyname};
use serde_json::Value;
use std::io::{BufRead as _, ErrorKind, IsTerminal, stderr, stdin};
use std::sync::Arc;
use tokio::net::unix::pipe::Receiver;

/// Lines of an argument that are shown, where it is neither a command nor a path.
const LINES: usize = 12;
/// The longest command that is shown, in bytes. A longer one cannot be judged by anybody.
const LONGEST: usize = 16 * 1024;

/// Asks a person whether to do what cannot be taken back. `what` would happen: "2 memories would be forgotten".
///
/// # Errors
/// When standard input or error is no terminal, or the answer cannot be read.
pub(super) fn confirm(what: &str) -> Result<bool, Failure> {
    if !is_somebody_there() {
        let nobody = anyhow!("{what}, and nobody is there to be asked");
        return Err(Failure::input(nobody).hint("say --yes if you mean it"));
    }
    paint::write(&[(Tone::Plain, &format!("{what}; go on? [y/N] "))]);
    let mut answer = String::new();
    let heard = stdin().lock().read_line(&mut answer);
    heard.context("cannot read the answer").map_err(Failure::own)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Whether somebody sits at a terminal, reads what is said there, and can type.
pub(super) fn is_somebody_there() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// What is shown, by a thread that does nothing else: a terminal that takes nothing for a while holds no run up.
#[derive(Debug)]
pub(super) enum Shown {
    /// A text that stays.
    Above(String),
    /// A question below everything, and whether it can move.
    Question(String, bool),
    /// It was answered.
    Answered,
    /// Nobody waits for an answer any more.
    Withdrawn,
}

/// Who shows questions, in their order.
pub(super) type Screen = Arc<Watcher<Shown>>;

/// The one for the questions of a run.
pub(super) fn screen() -> Screen {
    let show = |shown, _| match shown {
        Shown::Above(text) => paint::log(&text),
        Shown::Question(text, can_move) => pin(&text, can_move),
        Shown::Answered => settle(),
        Shown::Withdrawn => unpin(),
    };
    Arc::new(Watcher::new(|_| 1, show))
}

/// Asks. When this is dropped the question is withdrawn.
pub(super) async fn ask(question: Question, can_move: bool, screen: Screen) -> Consent {
    let size: usize = question
        .args
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| is_exact(name))
        .map(|(_, value)| value.to_string().len())
        .sum();
    if size > LONGEST {
        return Consent::No(format!("nobody can judge {size} bytes: make it shorter than {LONGEST}"));
    }
    let Ok(keys) = keys() else { return Consent::No("the terminal cannot be read".into()) };
    let _pinned = Pinned(screen.clone());
    let show = |shown| screen.tell(shown, false);
    let body = body(&question);
    let prompt = prompt(&question);
    let whole = format!("{body}\n{prompt}");
    let (width, height) =
        tcgetwinsize(stderr()).map_or((80, 24), |size| (usize::from(size.ws_col).max(1), usize::from(size.ws_row)));
    let rows: usize = whole.split('\n').map(|line| cells(line).div_ceil(width).max(1)).sum();
    let shown = if rows < height.max(4) {
        whole
    } else {
        show(Shown::Above(body + "\n")); // what does not fit stays where it was written, and is asked about by its name
        format!("? {} (above): may it run?\n{prompt}", spelled(&question.tool))
    };
    show(Shown::Question(shown, can_move));
    screen.settled().await;
    loop {
        match line(&keys).await {
            Ok(Some(answer)) => {
                show(Shown::Answered);
                match understood(&answer) {
                    Some(consent) => return consent,
                    None => show(Shown::Question(format!("please say y, n or a\n{prompt}"), can_move)),
                }
            }
            Ok(None) => return Consent::No(String::new()),
            Err(_) => return Consent::No("the terminal cannot be read".into()),
        }
    }
}

/// What stands on the screen as long as this does.
struct Pinned(Screen);

impl Drop for Pinned {
    fn drop(&mut self) {
        self.0.tell(Shown::Withdrawn, false);
    }
}

/// The terminal's keys, opened anew so that nobody else's handle is changed. What was typed so far is gone.
fn keys() -> std::io::Result<Receiver> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let keys = open(ttyname(stdin(), Vec::new())?, flags, Mode::empty())?;
    tcflush(&keys, QueueSelector::IFlush)?;
    Receiver::from_owned_fd_unchecked(keys)
}

/// The next line that is typed; `None` at the end of input.
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

/// What an answer means. Anything that is not surely one of the three is asked again.
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

/// What would be done, a line each.
fn body(question: &Question) -> String {
    let of = question.of.as_deref().map(|path| format!(" of sub-agent {}", spelled(path))).unwrap_or_default();
    let mut text = format!("? {}{of}: may it run?", spelled(&question.tool));
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

/// Whether an argument says what is done, and where: it is never cut.
fn is_exact(argument: &str) -> bool {
    ["command", "path"].contains(&argument)
}

/// The lines of a text, each behind a bar.
fn quoted(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let cut = |line: &str| {
        if most == usize::MAX { spelled(line) } else { spelled(&line.chars().take(400).collect::<String>()) }
    };
    let shown: String = lines.iter().take(most).map(|line| format!("\n  │ {}", cut(line))).collect();
    let more = lines.len().saturating_sub(most);
    if more == 0 { shown } else { format!("{shown}\n  … {more} more lines") }
}

/// A text in which nothing moves a cursor, turns the direction or is not seen: such characters are spelled out.
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
