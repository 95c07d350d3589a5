//! A lane's complaints as GitLab's code quality report
//! (<https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>), for the widget
//! of a merge request. Pure.

use super::LaneResult;
use super::complaints::{LaneComplaint, complaints};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Builds the whole document, indented and with a final newline.
pub(crate) fn document(result: &LaneResult<'_>) -> String {
    let mut seen = BTreeMap::new();
    let of_steps = complaints(result).into_iter().map(|one| issue(&one, &mut seen)).collect::<Vec<_>>();
    let issues: Vec<Value> = of_lane(result).into_iter().chain(of_steps).collect();
    let mut text = serde_json::to_string_pretty(&issues).unwrap_or_default();
    text.push('\n');
    text
}

/// Builds an issue for a problem of the lane as a whole. Without it, the report would be empty and
/// suggest that all is well.
fn of_lane(result: &LaneResult<'_>) -> Option<Value> {
    let complaint = result.complaint()?;
    let (file, line) = result.place();
    Some(json!({
        "description": complaint,
        "check_name": result.lane,
        "fingerprint": fingerprint(&format!("{}\n{file}\n{complaint}", result.lane)),
        "severity": "major",
        "location": { "path": file, "lines": { "begin": line } },
    }))
}

/// Builds an issue. Its fingerprint excludes the line number, so that the same complaint keeps its
/// fingerprint when lines move.
fn issue(one: &LaneComplaint<'_>, seen: &mut BTreeMap<String, u32>) -> Value {
    let check = format!("{}/{}", one.step.lane, one.step.step);
    let about = format!("{check}\n{}\n{}", one.file, one.message);
    let number = seen.entry(about.clone()).and_modify(|number| *number += 1).or_insert(1);
    json!({
        "description": one.message,
        "check_name": check,
        "fingerprint": fingerprint(&format!("{about}\n{number}")),
        "severity": if one.is_error { "major" } else { "minor" },
        "location": { "path": one.file, "lines": { "begin": one.line } },
    })
}

fn fingerprint(about: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, about.as_bytes());
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{failed, step};
    use crate::verdict::{StepReport, StepStatus};

    fn issues(excerpt: &str) -> Vec<Value> {
        let steps = [StepReport { excerpt: excerpt.into(), ..step("cc", StepStatus::Failed) }];
        serde_json::from_str(&document(&failed(&steps, &[]))).unwrap()
    }

    #[test]
    fn an_issue_has_what_the_platform_demands() {
        let all = issues("src/a.c:12:5: error: no");
        let fingerprint = all[0]["fingerprint"].clone();
        assert_eq!(
            all,
            [json!({
                "description": "error: no",
                "check_name": "verify/cc",
                "fingerprint": fingerprint,
                "severity": "major",
                "location": { "path": "src/a.c", "lines": { "begin": 12 } },
            })]
        );
    }

    #[test]
    fn fingerprints_outlive_lines_that_move_and_tell_twins_apart() {
        let of = |excerpt: &str| -> Vec<String> {
            issues(excerpt).iter().map(|one| one["fingerprint"].to_string()).collect()
        };
        assert_eq!(of("a.c:12:5: error: no"), of("a.c:13:5: error: no"));
        let twins = of("a.c:1:5: error: no\na.c:2:5: error: no");
        assert!(twins.len() == 2 && twins[0] != twins[1], "{twins:?}");
    }
}
