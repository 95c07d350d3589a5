//! Result of a batch in formats for other programs: JUnit with a test for each job, a page in
//! Markdown, and step outputs. Pure.

use super::outcome::JobStatus;
use super::summary::{BatchSummary, JobSummary};
use crate::report::lane::junit::{name, time, valid};
use crate::report::lane::markdown::{cell, code};
use crate::report::{money, seconds};
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;

/// The most rows in the table of the page. A job summary on GitHub is limited to 1 MiB.
const ROWS: usize = 500;
/// The title for a batch in which no job began.
const UNBEGUN: &str = "the batch did not begin";

type Xml = Writer<Vec<u8>>;

/// Returns a JUnit document.
pub(crate) fn junit(summary: &BatchSummary) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let _memory_takes_all = write(&mut xml, summary);
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default() // it is built from text
}

fn write(xml: &mut Xml, summary: &BatchSummary) -> io::Result<()> {
    let count = |wanted: &str| summary.jobs.iter().filter(|job| element(job) == Some(wanted)).count().to_string();
    let (tests, failures, errors, skipped) =
        (summary.jobs.len().to_string(), count("failure"), count("error"), count("skipped"));
    let time = time(summary.duration_ms);
    let all = [
        ("name", "fledge"),
        ("tests", &tests),
        ("failures", &failures),
        ("errors", &errors),
        ("skipped", &skipped),
        ("time", &time),
    ];
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attributes(all).write_inner_content(|xml| {
        let suite = xml.create_element("testsuite").with_attributes(all);
        suite.write_inner_content(|xml| summary.jobs.iter().try_for_each(|job| case(xml, job)))?;
        Ok(())
    })?;
    Ok(())
}

/// Returns a JUnit document for a batch that could not begin. It contains one test with the reason,
/// since an empty document would look like a success.
pub(crate) fn unbegun_junit(batch: &str, why: &str) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    let _memory_takes_all = write_unbegun(&mut xml, &name(batch), &name(&format!("{UNBEGUN}: {why}")));
    let mut bytes = xml.into_inner();
    bytes.push(b'\n');
    String::from_utf8(bytes).unwrap_or_default() // it is built from text
}

fn write_unbegun(xml: &mut Xml, batch: &str, message: &str) -> io::Result<()> {
    let time = time(0);
    let all = [
        ("name", "fledge"),
        ("tests", "1"),
        ("failures", "0"),
        ("errors", "1"),
        ("skipped", "0"),
        ("time", time.as_str()),
    ];
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    xml.create_element("testsuites").with_attributes(all).write_inner_content(|xml| {
        xml.create_element("testsuite").with_attributes(all).write_inner_content(|xml| {
            let about = [("classname", batch), ("name", batch), ("time", time.as_str())];
            xml.create_element("testcase").with_attributes(about).write_inner_content(|xml| {
                let error = xml.create_element("error");
                error.with_attributes([("message", message), ("type", "errored")]).write_empty().map(drop)
            })?;
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

/// Returns the page for a batch that could not begin.
pub(crate) fn unbegun_page(batch: &str, why: &str) -> String {
    let lines: Vec<String> = why.lines().map(code).collect();
    format!("# ✗ {UNBEGUN}\n\n{}\n\n{}\n", code(batch), lines.join("\\\n"))
}

/// Returns the step outputs for a batch that could not begin.
pub(crate) fn unbegun_outputs(exit_code: u8) -> String {
    format!("verified=false\nexit-code={exit_code}\nbatch=\njobs=0\nverified-jobs=0\nunverified-jobs=0\n")
}

fn case(xml: &mut Xml, job: &JobSummary) -> io::Result<()> {
    let (task, own, time) =
        (name(&job.task), name(&job.outcome.job), time(job.effort().map_or(0, |(_, _, duration_ms)| duration_ms)));
    let about = [("classname", task.as_str()), ("name", &own), ("time", &time)];
    let test = xml.create_element("testcase").with_attributes(about);
    let Some(element) = element(job) else {
        let Some(doubt) = job.doubt() else { return test.write_empty().map(drop) };
        return test
            .write_inner_content(|xml| {
                xml.create_element("system-out").write_text_content(BytesText::new(&format!("verified {doubt}")))?;
                Ok(())
            })
            .map(drop);
    };
    let (message, kind) = (name(&job.says), job.standing.word());
    test.write_inner_content(|xml| {
        let befallen = xml.create_element(element).with_attributes([("message", message.as_str()), ("type", kind)]);
        let report = job.report.as_ref().map(|report| format!("report: {report}")).unwrap_or_default();
        if report.is_empty() {
            befallen.write_empty()?;
        } else {
            befallen.write_text_content(BytesText::new(&valid(&report)))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns the JUnit element for the outcome of a job; `None` for a verified job.
fn element(job: &JobSummary) -> Option<&'static str> {
    match job.standing {
        JobStatus::Verified => None,
        _ if job.outcome.beaten => Some("skipped"),
        JobStatus::Failed => Some("failure"),
        JobStatus::Errored => Some("error"),
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => Some("skipped"),
    }
}

/// Returns a page with the overall result and a row for each job. A very large batch lists only the
/// jobs with a remark.
pub(crate) fn page(summary: &BatchSummary) -> String {
    let mark = if summary.verified { "✓" } else { "✗" };
    let mut text = format!("# {mark} {}\n\n", summary.counts.words());
    let bound = summary.max_usd_micros.map(|limit| format!(" of {}", money(limit))).unwrap_or_default();
    text.push_str(&format!("{}, {}{bound}\n\n", seconds(summary.duration_ms), money(summary.usd_micros)));
    text.push_str("| | job | result | attempts | turns | cost | time |\n|---|---|---|---:|---:|---:|---:|\n");
    let is_wanted = |job: &&JobSummary| summary.jobs.len() <= ROWS || !job.remark().is_empty();
    let rows: Vec<&JobSummary> = summary.jobs.iter().filter(is_wanted).take(ROWS).collect();
    for job in &rows {
        let (attempts, turns, time) = job.effort().map_or_else(Default::default, |(attempts, turns, ms)| {
            (attempts.to_string(), turns.to_string(), seconds(ms))
        });
        let how = if job.remark().is_empty() { String::new() } else { format!(": {}", cell(job.remark())) };
        let how = format!("{}{how}", job.word());
        let cost = if job.outcome.usd_micros == 0 { String::new() } else { money(job.outcome.usd_micros) };
        let name = cell(&job.outcome.job);
        text.push_str(&format!("| {} | {name} | {how} | {attempts} | {turns} | {cost} | {time} |\n", mark_of(job)));
    }
    if rows.len() < summary.jobs.len() {
        text.push_str(&format!("\nand {} more\n", summary.jobs.len() - rows.len()));
    }
    let committed = summary.jobs.iter().filter_map(|job| match &job.outcome.end {
        super::JobEnding::Ran(ran) => Some((job, ran.branch.as_ref()?)),
        super::JobEnding::NotRun(_) => None,
    });
    let branches: Vec<String> = committed
        .take(ROWS)
        .map(|(job, branch)| {
            format!("- {}: {}\n", code(&job.outcome.job), code(branch.trim_start_matches("refs/heads/")))
        })
        .collect();
    if !branches.is_empty() {
        text.push_str(&format!("\n## Branches\n\n{}", branches.concat()));
    }
    text
}

/// Returns the step outputs for a workflow, one `name=value` a line.
pub(crate) fn outputs(summary: &BatchSummary) -> String {
    let BatchSummary { batch, verified, exit_code, counts, .. } = summary;
    let failed = counts.jobs - counts.verified;
    format!(
        "verified={verified}\nexit-code={exit_code}\nbatch={batch}\njobs={}\nverified-jobs={}\nunverified-jobs={failed}\n",
        counts.jobs, counts.verified
    )
}

fn mark_of(job: &JobSummary) -> &'static str {
    match job.standing {
        _ if job.outcome.beaten => "-",
        JobStatus::Verified => "✓",
        JobStatus::Failed | JobStatus::Errored => "✗",
        JobStatus::Cancelled | JobStatus::Skipped | JobStatus::NotStarted => "-",
    }
}
