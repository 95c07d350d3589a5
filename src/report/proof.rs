//! The evidence for a pass in words, and its gaps. Pure.

use crate::run::TaskResult;
use crate::verdict::{HeldBack, Proof, Reason, TamperFinding, Verdict, shown_path};

/// The number of digits shown of a tree's id: enough to find the tree again.
const DIGITS: usize = 12;

/// Returns the proof of the verdict that verified the run. A run that found nothing to do has no
/// proof.
pub fn proof_of(result: &TaskResult) -> Option<&Proof> {
    let last = result.attempts.last().filter(|_| result.reason == Reason::Verified)?;
    last.verdict.proof.as_deref()
}

/// Describes the evidence in one line: `tree 3f2a90c1d4e5 in a clean room behind bubblewrap; 42
/// tests, canary seen, 1 hold-out lane`.
pub fn rests_on(proof: &Proof) -> String {
    let tree: String = proof.tree.to_string().chars().take(DIGITS).collect();
    let place = match (is_clean(proof), has_wall(proof)) {
        (true, true) => format!("in a clean room behind {}", proof.sandbox),
        (true, false) => "in a clean room without a sandbox".into(),
        (false, _) => "in the workspace itself".into(),
    };
    let many = |number: u64, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let evidence = [
        proof.tests.map(|tests| many(tests, "test") + &by_name(proof)),
        match proof.canaries {
            0 if proof.tests.is_some_and(|tests| tests > 0) => no_canary(proof),
            0 => None,
            1 => Some("canary seen".into()),
            number => Some(format!("{number} canaries seen")),
        },
        (proof.held_out > 0).then(|| many(proof.held_out, "hold-out lane")),
        (proof.hidden > 0).then(|| many(proof.hidden, "hidden file")),
    ];
    let evidence: Vec<String> = evidence.into_iter().flatten().collect();
    let evidence = if evidence.is_empty() { "exit codes alone".into() } else { evidence.join(", ") };
    format!("tree {tree} {place}; {evidence}")
}

/// Returns why no failing test was planted.
fn no_canary(proof: &Proof) -> Option<String> {
    proof.without_canary.values().next().map(|why| format!("no canary ({why})"))
}

/// Describes how many tests are known by name. If a test of the base did not run, fledge can name
/// it only if its name is known.
fn by_name(proof: &Proof) -> String {
    match proof.tests_by_name {
        0 => String::new(),
        named if proof.tests.is_some_and(|tests| named >= tests) => " by name".into(),
        named => format!(" ({named} by name)"),
    }
}

/// Returns whether a pass rests on exit codes alone: no test was counted or named, and no canary
/// was seen.
pub fn is_by_exit_codes_alone(proof: &Proof) -> bool {
    proof.tests.is_none_or(|tests| tests == 0) && proof.canaries == 0
}

/// Lists what the pass does not prove, one line each. The list is empty if fledge did all that it
/// can.
pub fn unproven(proof: &Proof) -> Vec<&'static str> {
    let all = [
        (
            !is_clean(proof),
            "that files outside the tree (caches, ignored files, installed packages) had no effect (`room: in-place`)",
        ),
        (
            !has_wall(proof),
            "that the gate was not tampered with: the agent and the code under test had your rights (`sandbox: off`)",
        ),
        (
            proof.tests.is_some_and(|tests| tests > 0) && proof.tests_before.is_none(),
            "whether as many tests ran as on the base: the base failed, has no test counts, or was not judged (`--baseline always` judges it)",
        ),
        (
            is_by_exit_codes_alone(proof),
            "whether any test ran: no step has a `junit` report or prints a test count, and fledge saw no test runner for a canary",
        ),
    ];
    all.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
}

/// Describes a finding in one line: `tests/a.py changed: a test of the base`.
pub fn found(finding: &TamperFinding) -> String {
    format!("{} {}: {}", shown_path(&finding.path), finding.change, finding.rule)
}

/// Describes a held-back change in one line, with the flag that lets it through.
pub fn held_back(held: &HeldBack) -> String {
    let flag = held.flag.as_ref().map(|flag| format!(" ({flag} allows it)")).unwrap_or_default();
    format!("{} {}: {}{flag}", shown_path(&held.path), held.change, held.rule)
}

/// Lists the evidence for a verdict and what it does not prove, one line each. The list is empty if
/// the verdict is not a pass.
pub fn grounds(verdict: &Verdict) -> Vec<String> {
    let Some(proof) = verdict.proof.as_deref() else { return Vec::new() };
    let not = unproven(proof).into_iter().map(|what| format!("not proven: {what}"));
    [rests_on(proof)].into_iter().chain(not).collect()
}

fn is_clean(proof: &Proof) -> bool {
    proof.room == "clean"
}

fn has_wall(proof: &Proof) -> bool {
    proof.sandbox != "off"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TreeId;
    use std::collections::BTreeMap;

    fn proof(room: &str, sandbox: &str, tests: Option<u64>, canaries: u64, held_out: u64) -> Proof {
        let base = TreeId::empty();
        let (tree, room, sandbox) = (base.clone(), room.to_owned(), sandbox.to_owned());
        let lanes = "d".into();
        Proof {
            base,
            tree,
            lanes,
            room,
            sandbox,
            tests,
            tests_before: tests,
            tests_by_name: 0,
            canaries,
            without_canary: BTreeMap::new(),
            held_out,
            hidden: 0,
        }
    }

    #[test]
    fn a_pass_is_said_with_its_tree_its_room_and_its_evidence() {
        let tree: String = TreeId::empty().to_string().chars().take(12).collect();
        for (proof, message) in [
            (
                proof("clean", "bubblewrap", Some(42), 1, 1),
                "in a clean room behind bubblewrap; 42 tests, canary seen, 1 hold-out lane",
            ),
            (proof("clean", "landlock", Some(1), 2, 0), "in a clean room behind landlock; 1 test, 2 canaries seen"),
            (proof("clean", "off", None, 0, 3), "in a clean room without a sandbox; 3 hold-out lanes"),
            (proof("in-place", "bubblewrap", None, 0, 0), "in the workspace itself; exit codes alone"),
        ] {
            assert_eq!(rests_on(&proof), format!("tree {tree} {message}"));
        }
        let named = |named| rests_on(&Proof { tests_by_name: named, ..proof("clean", "off", Some(3), 0, 0) });
        assert!(named(3).ends_with("; 3 tests by name") && named(2).ends_with("; 3 tests (2 by name)"));
    }

    #[test]
    fn what_a_pass_does_not_prove_is_said() {
        let first = |proof: &Proof| {
            unproven(proof).iter().map(|what| what.split([':', ' ']).nth(1).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(first(&proof("clean", "bubblewrap", Some(3), 0, 0)), [""; 0]);
        assert_eq!(first(&proof("clean", "off", None, 1, 0)), ["the"]);
        let uncompared = Proof { tests_before: None, ..proof("clean", "bubblewrap", Some(3), 1, 0) };
        assert_eq!(unproven(&uncompared)[0].split(':').next(), Some("whether as many tests ran as on the base"));
        assert_eq!(first(&proof("in-place", "off", Some(0), 0, 1)), ["files", "the", "any"]);
    }
}
