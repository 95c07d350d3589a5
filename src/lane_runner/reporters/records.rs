//! The records that reporters write, one JSON object in a line. Pure.
//!
//! A run begins with the digest of its secret. Its last record has the secret, and the digest of
//! the secret with all records of the run. So only the process that began a run can end it, and no
//! other process can add a record to it.

use crate::lane::{ReportedState, ReportedTest, RunnerReport};
use crate::store::sha256;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A record. Exactly one of its parts is given, beside the run.
#[derive(Debug, Deserialize)]
struct Record {
    /// The name of the run.
    run: String,
    /// The digest of the secret of a run that begins.
    begin: Option<String>,
    /// The name of a test.
    test: Option<String>,
    state: Option<ReportedState>,
    /// A function of the runner that was replaced, or a hook that was added.
    changed: Option<String>,
    /// The secret of a run that ends.
    end: Option<String>,
    digest: Option<String>,
}

/// The records of a run so far.
#[derive(Debug, Default)]
struct OpenRun {
    /// The digest of its secret.
    commitment: String,
    /// The lines of its records.
    lines: Vec<u8>,
    has_ended: bool,
}

/// Returns the report of all runs in these records.
pub(super) fn report(records: &[u8]) -> RunnerReport {
    let (mut report, mut runs) = (RunnerReport::default(), BTreeMap::<String, OpenRun>::new());
    for line in records.split_inclusive(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<Record>(line) else { continue };
        if let Some(commitment) = record.begin.clone().filter(|_| !runs.contains_key(&record.run)) {
            runs.insert(record.run.clone(), OpenRun { commitment, ..OpenRun::default() });
        }
        let Some(run) = runs.get_mut(&record.run) else { continue };
        if let Some(secret) = record.end {
            let own = [secret.as_bytes(), run.lines.as_slice()].concat();
            let is_own = sha256(secret.as_bytes()) == run.commitment;
            run.has_ended = is_own && record.digest.is_some_and(|digest| digest == sha256(&own));
            continue;
        }
        run.lines.extend_from_slice(line);
        run.has_ended = false;
        if let (Some(name), Some(state)) = (record.test, record.state) {
            report.tests.push(ReportedTest { name, state });
        }
        report.changed.extend(record.changed);
    }
    report.broken = runs.values().filter(|run| !run.has_ended).count() as u64;
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the records of a run with two tests, without its end, and the end.
    fn run(name: &str, secret: &str) -> (String, String) {
        let begin = sha256(secret.as_bytes());
        let lines = format!(
            "{{\"run\":\"{name}\",\"begin\":\"{begin}\"}}\n{{\"test\":\"a\",\"state\":\"passed\",\"run\":\"{name}\"}}\n\
             {{\"test\":\"b\",\"state\":\"expected_to_fail\",\"run\":\"{name}\"}}\n"
        );
        let digest = sha256(format!("{secret}{lines}").as_bytes());
        let end = format!("{{\"end\":\"{secret}\",\"digest\":\"{digest}\",\"run\":\"{name}\"}}\n");
        (lines, end)
    }

    #[test]
    fn only_the_process_that_began_a_run_ends_it() {
        let (lines, end) = run("r", "secret");
        let whole = report(format!("{lines}{end}").as_bytes());
        assert_eq!((whole.tests.len(), whole.broken), (2, 0));
        assert_eq!(whole.tests[1].state, ReportedState::ExpectedToFail);
        let more = "{\"test\":\"c\",\"state\":\"passed\",\"run\":\"r\"}\n";
        let forged = end.replace("secret", "guessed");
        for text in
            [lines.clone(), format!("{lines}{more}{end}"), format!("{lines}{end}{more}"), format!("{lines}{forged}")]
        {
            assert_eq!(report(text.as_bytes()).broken, 1, "{text}");
        }
    }

    #[test]
    fn runs_are_told_apart_and_other_lines_are_ignored() {
        let ((one, end), (other, _)) = (run("r", "secret"), run("s", "other"));
        let both = report(format!("{one}no record\n{other}{end}{{\"run\":\"t\",\"test\":\"x\"}}\n").as_bytes());
        assert_eq!((both.tests.len(), both.broken), (4, 1));
    }
}
