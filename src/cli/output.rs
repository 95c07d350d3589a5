//! Standard output: data for programs, and the wait for its readers.

use super::failure::CliError;
use super::paint;
use crate::driver::StopToken;
use crate::report::lane::github;
use std::borrow::Cow;
use std::time::Duration;

/// The time that a process that was asked to stop waits for the readers of its output.
const LAST_WORDS_IN_HASTE: Duration = Duration::from_millis(300);

/// Waits until all output is printed, however slow its reader: a person may read page by page.
/// Returns false if the process was asked to stop and the output was not printed soon after.
pub(super) async fn hear_out(stop: &StopToken, words: impl Future<Output = ()>) -> bool {
    let in_haste = async {
        stop.token().cancelled().await;
        tokio::time::sleep(LAST_WORDS_IN_HASTE).await;
    };
    tokio::select! {
        biased;
        () = words => true,
        () = in_haste => false,
    }
}

/// Prints a line or text of data on standard output. For GitHub's runner, makes its commands in the
/// data inert. A reader that has gone away is not an error.
///
/// # Errors
/// When writing fails for another reason.
pub(super) fn print_data(line: &str) -> std::io::Result<()> {
    if paint::speaks_to_runner() { print_raw(&github::inert(line)) } else { print_raw(line) }
}

/// Prints a line of JSON like [`print_data`]. The JSON keeps its meaning.
pub(super) fn print_json(json: &str) -> std::io::Result<()> {
    print_raw(&json_line(json))
}

/// Returns a line of JSON. For GitHub's runner, makes its commands in the JSON inert.
pub(super) fn json_line(json: &str) -> Cow<'_, str> {
    if paint::speaks_to_runner() { inert_json(json).into() } else { json.into() }
}

/// Escapes `##[`, which begins a command of GitHub's runner. In JSON, `##[` occurs only inside
/// strings, and `::` never begins a line.
fn inert_json(json: &str) -> String {
    json.replace("##[", "##\\u005b")
}

fn print_raw(line: &str) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    let done = writeln!(out, "{line}").and_then(|()| out.flush());
    match done {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Prints bytes unchanged, for a program that reads them.
pub(super) fn print_bytes(bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Returns the failure of a verb that could not write its data.
pub(super) fn no_output(error: std::io::Error) -> CliError {
    CliError::own(anyhow::Error::new(error).context("cannot write to standard output"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_runner_reads_is_the_same_json_without_commands() {
        let object = serde_json::json!({ "line": "x ##[group]y" });
        let said = inert_json(&object.to_string());
        assert!(!said.contains("##["), "{said}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&said).unwrap(), object);
    }

    #[tokio::test]
    async fn a_slow_reader_is_waited_for_until_the_process_is_asked_to_stop() {
        let stop = StopToken::default();
        let (taken, reader) = tokio::sync::oneshot::channel();
        let (was_heard, ()) = tokio::join!(hear_out(&stop, async { drop(reader.await) }), async {
            tokio::task::yield_now().await;
            taken.send(()).unwrap();
        });
        assert!(was_heard);
        stop.ask(crate::verdict::StopCause::Interrupt);
        assert!(!hear_out(&stop, std::future::pending()).await);
        assert!(hear_out(&stop, std::future::ready(())).await);
    }
}
