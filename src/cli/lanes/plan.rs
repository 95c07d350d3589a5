//! A lane as text for people: what runs, in which order, and what would be left out. Text of a lane
//! file can neither move the cursor nor add a line.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint;
use super::surroundings::Surroundings;
use crate::duration::show_duration;
use crate::lane::{CanaryTerms, EntryKind, FlakyPolicy, Lane, RoomKind, Step};
use crate::report::lane_data;

/// The maximum number of steps named as needs of a step.
const NAMED: usize = 20;

/// Prints the plan of a run; returns the exit code. `from` is the index of the first entry to run,
/// and `room` describes the surroundings in a clean room.
///
/// # Errors
/// When the output cannot be written.
pub(super) fn print(
    lane: &Lane,
    left_out: &[Option<String>],
    from: Option<usize>,
    room: Option<&Surroundings>,
    is_json: bool,
) -> Result<u8, CliError> {
    let printed = if is_json {
        let mut data = lane_data::planned(lane, left_out, from);
        if let Some(room) = room {
            room.add_to(&mut data);
        }
        print_json(&data.to_string())
    } else {
        print_data((text(lane, left_out) + &room.map(Surroundings::text).unwrap_or_default()).trim_end())
    };
    printed.map_err(no_output).map(|()| 0)
}

/// Returns the lane's settings, then its commands in order. `left_out` has the reason why a step
/// would not run, by its index.
pub(super) fn text(lane: &Lane, left_out: &[Option<String>]) -> String {
    let mut text = format!("{}  {}\n", paint::one_line(&lane.name), paint::one_line(&lane.description));
    let jobs = lane.jobs.map_or("one step per core at once".into(), |jobs| format!("{jobs} at once"));
    let failing = if lane.fail_fast { "ends at the first failure" } else { "runs all steps, even after a failure" };
    text = format!("{}\n  {failing}; at most {}; {jobs}\n", text.trim_end(), show_duration(lane.timeout));
    for (name, value) in &lane.env {
        text.push_str(&format!("  {}\n", paint::one_line(&format!("{name}={value}"))));
    }
    let terms = terms(lane);
    if !terms.is_empty() {
        text.push_str(&format!("  as a gate: {}\n", paint::one_line(&terms.join("; "))));
    }
    for (number, entry) in lane.entries.iter().enumerate() {
        let is_one = entry.steps.len() == 1 && entry.kind != EntryKind::Parallel;
        let number = format!("{}. ", number + 1);
        if !is_one {
            text.push_str(&format!("{number}{}\n", paint::one_line(&entry.name)));
        }
        for step in &entry.steps {
            let (mark, indent) = if is_one { (number.as_str(), "   ") } else { ("   - ", "     ") };
            text.push_str(&format!("{mark}{}", paint::one_line(&lane.steps[*step].name)));
            let why = left_out.get(*step).and_then(Option::as_ref);
            text.push_str(&why.map_or_else(|| "\n".into(), |why| format!("  (left out: {})\n", paint::one_line(why))));
            for line in lane.steps[*step].run.lines() {
                text.push_str(&format!("{indent}{}\n", paint::harmless(line)));
            }
            let details = details(lane, *step, &lane.steps[*step]);
            if !details.is_empty() {
                text.push_str(&format!("{indent}[{}]\n", paint::one_line(&details.join("; "))));
            }
        }
    }
    paint::harmless(&text).into_owned()
}

/// Returns the settings of the lane as a gate that differ from the defaults.
fn terms(lane: &Lane) -> Vec<String> {
    let setup: Vec<&str> = lane.setup.iter().map(|step| step.run.as_str()).collect();
    [
        (lane.room == RoomKind::InPlace).then(|| "in place".into()),
        (!setup.is_empty()).then(|| format!("made ready by {}", setup.join(", "))),
        (!lane.cache.is_empty()).then(|| format!("keeps {}", lane.cache.join(", "))),
        (!lane.include_ignored.is_empty()).then(|| format!("brings {}", lane.include_ignored.join(", "))),
        (!lane.hidden.is_empty()).then(|| format!("hides {} from the agent", lane.hidden.join(", "))),
        lane.network.then(|| "has a network".into()),
        lane.writes.then(|| "may change the sources".into()),
        (!lane.canary.is_auto()).then(|| match &lane.canary {
            CanaryTerms::None => "is not tried with planted failures".into(),
            canary => format!("must see a planted failure ({})", canary.word()),
        }),
        (lane.flaky == FlakyPolicy::Fail).then(|| "a pass after a retry counts as a failure".into()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the settings of a step that differ from the defaults.
fn details(lane: &Lane, number: usize, step: &Step) -> Vec<String> {
    let name = |step: &usize| lane.steps[*step].name.as_str();
    let names = |steps: &[usize]| {
        let named = steps.iter().take(NAMED).map(name).collect::<Vec<_>>().join(", ");
        if steps.len() > NAMED { format!("{named} and {} more", steps.len() - NAMED) } else { named }
    };
    let after = lane.before(number);
    let is_next = number.checked_sub(1).is_some_and(|before| after == [before]) || number == 0;
    let retries = match step.retries {
        0 => None,
        1 => Some("1 more try".to_owned()),
        more => Some(format!("{more} more tries")),
    };
    let pause =
        if step.retry_delay.is_zero() { String::new() } else { format!(" after {}", show_duration(step.retry_delay)) };
    let conditions: Vec<String> = step.when.iter().map(ToString::to_string).collect();
    let env: Vec<String> = step.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let shell = step.shell.join(" ");
    [
        (!step.needs.is_empty()).then(|| format!("needs {}", names(&step.needs))),
        (step.needs.is_empty() && !after.is_empty() && !is_next).then(|| format!("after {}", names(&after))),
        (after.is_empty() && number > 0).then(|| "at once".into()),
        (!conditions.is_empty()).then(|| format!("when {}", conditions.join(", "))),
        (!step.changed.is_empty()).then(|| format!("if {} changed", step.changed.join(" or "))),
        step.dir.as_ref().map(|dir| format!("in {dir}")),
        (!env.is_empty()).then(|| env.join(" ")),
        (shell != "/bin/sh -c").then(|| format!("by {shell}")),
        step.timeout.map(|time| format!("at most {}", show_duration(time))),
        retries.map(|retries| retries + &pause),
        step.allow_failure.then(|| "may fail".into()),
        step.junit.as_ref().map(|junit| format!("tests in {junit}")),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    #[test]
    fn a_lane_is_shown_with_all_that_is_said_of_its_steps() {
        let yaml = "description: Checks\njobs: 2\nroom: in-place\nsetup: [run: get]\ncache: [target]\nnetwork: true\nwrites: true\ncanary: jest\nflaky: fail\ninclude_ignored: [.env]\nenv: { CI: '1' }\nsteps:\n  - { name: fmt, run: cargo fmt --check }\n  - parallel:\n    \
            - { name: lint, run: 'a\n\n      b', allow_failure: true, when: 'CI,!OFF' }\n    - { name: test, run: t, timeout: 90s, retries: 2, retry_delay: 1s, junit: t.xml, dir: web }\n  \
            - { name: docs, run: d, needs: [fmt], changed: ['src/**'] }\n  - { name: now, run: n, needs: [], shell: bash, env: { A: b } }\n  - { name: last, run: l }\n";
        let lane = parse("verify", "lanes/verify.yaml", yaml).unwrap();
        insta::assert_snapshot!(text(&lane, &[None, Some("when: `CI` does not hold".into())]));
    }

    #[test]
    fn nothing_in_a_lane_file_moves_a_cursor() {
        let evil = r"a\eMb\u202e";
        let yaml = format!(
            "description: \"{evil}\"\nenv: {{ A: \"{evil}\" }}\nsteps:\n  - {{ name: a, run: \"{evil}\", dir: \"{evil}\", \
             shell: \"{evil}\", junit: \"{evil}\", changed: [\"{evil}\"] }}\n"
        );
        let lane = parse("verify", "lanes/verify.yaml", &yaml).unwrap();
        let shown = text(&lane, &[Some("a\u{1b}Mb\u{202e}".into())]);
        assert!(!shown.contains(['\u{1b}', '\u{202e}']) && shown.contains("left out: aMb"), "{shown}");
    }
}
