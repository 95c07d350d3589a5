//! A reader for the commands of a `.gitlab-ci.yml`. Pure: it turns a text into offers.

use super::{Candidate, CheckOffer, Refusal, command, get, list, text_of};
use crate::yaml::{YamlNode, YamlValue, parse};
use std::collections::BTreeMap;

/// Top-level keys that are not jobs.
const RESERVED: [&str; 12] = [
    "image",
    "services",
    "stages",
    "variables",
    "include",
    "workflow",
    "default",
    "cache",
    "before_script",
    "after_script",
    "pages",
    "spec",
];

/// The maximum number of jobs that a job extends.
const MOST_PARENTS: usize = 20;

/// Returns the offers of the file.
///
/// # Errors
///
/// The reason why the file cannot be read.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<CheckOffer>, String> {
    let root = parse(text, 1).map_err(|problem| problem.to_string())?;
    let YamlValue::Map(jobs) = &root.value else { return Ok(Vec::new()) };
    let mut offers = Vec::new();
    for (name, job) in
        jobs.iter().filter(|(name, _)| !RESERVED.contains(&name.text.as_str()) && !name.text.starts_with('.'))
    {
        let why = obstacle(&root, job);
        let mut vars: BTreeMap<String, String> = variables(&root).into_iter().collect();
        lineage(&root, job).into_iter().rev().for_each(|own| vars.extend(variables(own)));
        let own = |key: &str| inherited(&root, job, key);
        let may_fail = own("allow_failure").is_some_and(|flag| flag.value == YamlValue::Bool(true));
        let Some(script) = own("script") else {
            if get(job, "extends").is_some() {
                let (text, line) = (format!("job {}", name.text), name.place.line);
                let why = why.unwrap_or("it extends what is in another file").to_owned();
                offers.push(Err(Refusal { file: file.to_owned(), line, text, why, is_unread: true }));
            }
            continue;
        };
        let lines: Vec<&YamlNode> = if list(script).is_empty() { vec![script] } else { list(script).iter().collect() };
        // A job is one script: `cd` in one line applies to the next lines.
        let whole: Vec<&str> = lines.iter().map(|line| text_of(line)).collect();
        let numbers: Vec<usize> =
            lines.iter().flat_map(|line| (0..text_of(line).lines().count()).map(|n| line.place.line + n)).collect();
        for (number, read) in command::read(&whole.join("\n"), &vars) {
            let line = numbers.get(number).copied().unwrap_or(name.place.line);
            let refuse = |text, why: &str| {
                Err(Refusal { file: file.to_owned(), line, text, why: why.to_owned(), is_unread: false })
            };
            offers.push(match read {
                Err((text, why_not)) => refuse(text, why.unwrap_or(why_not)),
                Ok(command) => match why {
                    Some(why) => refuse(command::quoted(&command.words), why),
                    None => Ok(Candidate {
                        file: file.to_owned(),
                        line,
                        words: command.words,
                        vars: command.vars,
                        dir: command.dir,
                        may_fail: may_fail || command.may_fail,
                    }),
                },
            });
        }
    }
    Ok(offers)
}

/// Returns the reason why a job's commands cannot be used.
fn obstacle(root: &YamlNode, job: &YamlNode) -> Option<&'static str> {
    let has = |key: &str, words: &[&str]| {
        let node = inherited(root, job, key)?;
        let texts = std::iter::once(node).chain(list(node)).filter_map(YamlNode::as_text);
        texts.map(str::to_ascii_lowercase).any(|text| words.iter().any(|word| text.contains(word))).then_some(())
    };
    if get(root, "services").or_else(|| inherited(root, job, "services")).is_some() {
        Some("its job needs services")
    } else if has("tags", &["windows", "macos"]).is_some() {
        Some("it runs on another operating system")
    } else if has("stage", &["deploy", "publish", "release"]).is_some() || has("only", &["tags"]).is_some() {
        Some("it runs only for releases")
    } else {
        (inherited(root, job, "when").is_some_and(|when| text_of(when) == "manual")).then_some("it runs only by hand")
    }
}

/// Returns a job and the jobs that it extends, the nearest first.
fn lineage<'n>(root: &'n YamlNode, job: &'n YamlNode) -> Vec<&'n YamlNode> {
    let mut all = vec![job];
    let mut next = 0;
    while let Some(one) = all.get(next).copied().filter(|_| all.len() < MOST_PARENTS) {
        let names = get(one, "extends").map_or_else(Vec::new, |it| std::iter::once(it).chain(list(it)).collect());
        // The last job in a list takes precedence.
        all.extend(names.into_iter().rev().filter_map(YamlNode::as_text).filter_map(|name| get(root, name)));
        next += 1;
    }
    all
}

/// Returns the value of a key from a job, or from the nearest job that it extends.
fn inherited<'n>(root: &'n YamlNode, job: &'n YamlNode, key: &str) -> Option<&'n YamlNode> {
    lineage(root, job).into_iter().find_map(|one| get(one, key))
}

fn variables(node: &YamlNode) -> Vec<(String, String)> {
    let Some(YamlValue::Map(entries)) = get(node, "variables").map(|node| &node.value) else { return Vec::new() };
    let plain = entries.iter().filter_map(|(name, value)| Some((name.text.clone(), value.as_text()?.to_owned())));
    plain.filter(|(_, value)| !value.contains('$')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_of_jobs_are_offered_and_those_of_others_refused() {
        let text = "stages: [test]\nvariables: { F: --all }\nunit:\n  script:\n    - cd web\n    - make test $F\n  allow_failure: true\n\
                    base:\n  services: [postgres]\n  script: make check\nship:\n  stage: deploy\n  script: [make x]\n.hidden:\n  script: [make y]\n\
                    hand:\n  when: manual\n  script: [make z]\nwin:\n  tags: [windows]\n  script:\n    - |\n      make a\n      make $B\n\
                    .root: { variables: { G: x, H: y }, script: [make no] }\n.base: { extends: .root, allow_failure: true, script: [make $G $H] }\n\
                    child: { extends: [.root, .base], variables: { H: z } }\nround: { extends: round }\nfar: { extends: .far }\n";
        let line = |offer: CheckOffer| match offer {
            Ok(found) => {
                format!("{} {} in {} {}", found.line, command::quoted(&found.words), found.dir, found.may_fail)
            }
            Err(refusal) => format!("{} ! {}: {}", refusal.line, refusal.text, refusal.why),
        };
        let told: Vec<String> = read("ci.yml", text).unwrap().into_iter().map(line).collect();
        assert_eq!(
            told,
            [
                "6 make test --all in web true",
                "10 ! make check: its job needs services",
                "13 ! make x: it runs only for releases",
                "18 ! make z: it runs only by hand",
                "23 ! make a: it runs on another operating system",
                "24 ! make $B: it runs on another operating system",
                "26 make x z in  true",
                "28 ! job round: it extends what is in another file",
                "29 ! job far: it extends what is in another file",
            ]
        );
        assert!(read("ci.yml", "a: !x [").is_err());
    }
}
