//! A lane's complaints as SARIF 2.1.0
//! (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html>), for code scanning. Pure.

use super::LaneResult;
use super::complaints::{LaneComplaint, complaints};
use crate::verdict::StepStatus;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Builds the whole document, indented and with a final newline.
pub(crate) fn document(result: &LaneResult<'_>) -> String {
    let all = complaints(result);
    let mut rules: BTreeMap<String, usize> = all.iter().map(|one| (rule(one), 0)).collect();
    rules.values_mut().enumerate().for_each(|(number, index)| *index = number);
    let results: Vec<Value> = all.iter().map(|one| entry(one, &rules)).collect();
    let rules: Vec<Value> =
        rules.keys().map(|id| json!({ "id": id, "shortDescription": { "text": format!("the step {id}") } })).collect();
    let driver = json!({
        "name": "fledge",
        "semanticVersion": env!("CARGO_PKG_VERSION"),
        "informationUri": "https://docs.rs/fledge",
        "rules": rules,
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": driver },
            "invocations": [invocation(result)],
            "results": results,
            "columnKind": "unicodeCodePoints",
        }],
    });
    let mut text = serde_json::to_string_pretty(&document).unwrap_or_default();
    text.push('\n');
    text
}

/// Describes whether all checks ran. Only then is a document without results good news.
fn invocation(result: &LaneResult<'_>) -> Value {
    let complaint = result.complaint();
    let was_asked = complaint.is_none() && result.steps.iter().all(|step| step.status != StepStatus::Errored);
    let mut invocation = json!({ "executionSuccessful": was_asked });
    if let Some(complaint) = complaint {
        let (file, line) = result.place();
        let place = json!({ "artifactLocation": { "uri": uri(&file) }, "region": { "startLine": line } });
        invocation["toolExecutionNotifications"] = json!([{
            "level": "error",
            "message": { "text": complaint },
            "locations": [{ "physicalLocation": place }],
        }]);
    }
    invocation
}

fn rule(one: &LaneComplaint<'_>) -> String {
    format!("{}/{}", one.step.lane, one.step.step)
}

fn entry(one: &LaneComplaint<'_>, rules: &BTreeMap<String, usize>) -> Value {
    let id = rule(one);
    let mut region = json!({ "startLine": one.line });
    if let Some(column) = one.column {
        region["startColumn"] = column.into();
    }
    json!({
        "ruleIndex": rules.get(&id),
        "ruleId": id,
        "level": if one.is_error { "error" } else { "warning" },
        "message": { "text": one.message },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri(&one.file) }, "region": region } }],
    })
}

/// Converts a path to a relative reference. Characters with a meaning in references are
/// percent-encoded.
fn uri(path: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' | b'+' | b'@' | b',' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    path.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::lane::tests::{all_kinds, failed};

    #[test]
    fn each_complaint_has_a_rule_a_level_and_a_place() {
        let steps = all_kinds();
        let document: Value = serde_json::from_str(&document(&failed(&steps, &[]))).unwrap();
        let run = &document["runs"][0];
        let rules: Vec<&str> =
            run["tool"]["driver"]["rules"].as_array().unwrap().iter().filter_map(|rule| rule["id"].as_str()).collect();
        let results = run["results"].as_array().unwrap();
        assert!(!results.is_empty());
        for result in results {
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(rules[index], result["ruleId"]);
            let place = &result["locations"][0]["physicalLocation"];
            assert!(place["region"]["startLine"].as_u64().unwrap() >= 1, "{result}");
            assert!(
                !place["artifactLocation"]["uri"].as_str().unwrap().contains([' ', ':', '%'])
                    || result["ruleId"] == "verify/t|e`st <b>"
            );
        }
        let levels: Vec<&str> = results.iter().filter_map(|result| result["level"].as_str()).collect();
        assert_eq!(levels, ["warning", "warning", "error", "error", "error"]);
    }

    #[test]
    fn a_path_is_a_reference_of_its_own() {
        assert_eq!(uri("src/a b,c%.rs"), "src/a%20b,c%25.rs");
        assert_eq!(uri("ü.c"), "%C3%BC.c");
    }
}
