//! Example evaluations.

use super::*;
use crate::batch::outcome::NotRunReason;
use crate::id::RunId;
use crate::verdict::Verification;

fn job(name: &str, reason: Reason, turns: u64, usd_micros: Option<u64>) -> JobSummary {
    let ran = RunSummary {
        run: RunId::new(name),
        reason,
        exit_code: reason.row().exit_code,
        verified: reason.row().exit_code == 0,
        verification: Verification::NotReached,
        exit_codes_alone: false,
        cancelled: false,
        message: reason.row().meaning.into(),
        summary: String::new(),
        attempts: 1,
        turns,
        tokens_in: 0,
        estimated_tokens: 0,
        tokens_out: 0,
        usd_micros,
        duration_ms: turns * 1000,
        files_changed: Vec::new(),
        tree: None,
        commit: None,
        branch: None,
        worktree: None,
        protected: Vec::new(),
    };
    over(name, usd_micros.unwrap_or(0), JobEnding::Ran(Box::new(ran)))
}

fn over(name: &str, usd_micros: u64, end: JobEnding) -> JobSummary {
    let outcome = FinishedJob { job: name.into(), title: name.into(), tries: 1, usd_micros, beaten: false, end };
    JobSummary::new(outcome, format!("{name}.md"), "/r".into(), None)
}

/// Job names have the form `task.model.time`.
fn evaluation(jobs: Vec<JobSummary>, min_rate: Option<f64>) -> Evaluation {
    let of = |job: &str| {
        let mut parts = job.split('.').map(str::to_owned);
        Some((parts.next()?, parts.next()?))
    };
    Evaluation::new(&BatchSummary::new("b".into(), jobs, None, 1000), min_rate, of)
}

fn jobs() -> Vec<JobSummary> {
    vec![
        job("a.one.1", Reason::Verified, 2, Some(10)),
        job("a.one.2", Reason::GateFailed, 4, Some(30)),
        job("b.one.1", Reason::Verified, 9, Some(20)),
        job("b.one.2", Reason::ProviderFailed, 1, Some(4)),
        job("a.two.1", Reason::MaxTurns, 5, None),
        job("a.two.2", Reason::Verified, 5, None),
        job("b.two.1", Reason::Verified, 6, None),
        over("b.two.2", 0, JobEnding::NotRun(NotRunReason::Money)),
    ]
}

#[test]
fn an_error_is_no_failure_and_is_counted_apart() {
    let evaluation = evaluation(jobs(), None);
    let one = &evaluation.models[0];
    assert_eq!((one.runs, one.judged, one.verified, one.errored, one.cut_off), (4, 3, 2, 1, 0));
    assert_eq!((one.rate, one.interval), (Some(2.0 / 3.0), wilson(2, 3)));
    // The rate is 1/2 at `a` and 1 at `b`.
    assert_eq!(one.pass_at_1, Some(0.75));
    assert_eq!((one.usd_micros, one.mean_usd_micros, one.unpriced), (64, Some(16), 0));
    assert_eq!((one.median_turns, one.median_ms), (Some(4.0), Some(4000.0)));
    let two = &evaluation.models[1];
    assert_eq!((two.judged, two.cut_off, two.unpriced, two.mean_usd_micros), (3, 1, 3, None));
    assert_eq!(evaluation.tasks[1].models[1].median_turns, Some(6.0));
    let unjudged: Vec<(&str, u8)> = evaluation.unjudged.iter().map(|run| (run.job.as_str(), run.exit_code)).collect();
    assert_eq!(unjudged, [("b.one.2", 3), ("b.two.2", 4)]);
    assert_eq!(evaluation.exit_code, 3);
}

#[test]
fn a_rate_that_is_too_low_fails_and_a_failure_alone_does_not() {
    let judged =
        || jobs().into_iter().filter(|job| !["b.one.2", "b.two.2"].contains(&job.outcome.job.as_str())).collect();
    assert_eq!(evaluation(judged(), None).exit_code, 0);
    let low = evaluation(judged(), Some(0.7));
    assert_eq!((low.exit_code, low.below), (1, vec!["one".to_owned(), "two".into()]));
    assert_eq!(evaluation(judged(), Some(0.6)).exit_code, 0);
    let none = evaluation(vec![job("a.one.1", Reason::ProviderFailed, 1, None)], Some(0.0));
    assert_eq!((none.exit_code, none.below.len(), none.models[0].rate), (3, 1, None));
}

#[cfg(feature = "cli")]
#[test]
fn a_page_has_a_row_for_each_model_and_names_what_was_not_judged() {
    insta::assert_snapshot!(page::page(&evaluation(jobs(), Some(0.9))));
}

/// Source: R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics
/// in Medicine 17 (1998), table I, method 3.
#[test]
fn the_interval_is_that_of_the_literature() {
    for (successes, trials, low, high) in
        [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
    {
        let [own_low, own_high] = wilson(successes, trials).unwrap();
        let is_near = |own: f64, known: f64| (own - known).abs() < 0.000_05;
        assert!(is_near(own_low, low) && is_near(own_high, high), "{successes}/{trials}: {own_low} {own_high}");
    }
    let [low, high] = wilson(20, 20).unwrap();
    assert!((low - (1.0 - 0.1611)).abs() < 0.000_05 && (1.0 - 1e-12..=1.0).contains(&high));
    assert_eq!(wilson(0, 0), None);
}
