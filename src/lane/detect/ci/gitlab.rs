//! A reader for the commands of a `.gitlab-ci.yml`. Pure: it turns a text into offers.

use super::{Candidate, CheckOffer, Refusal, command, get, list, text_of};
use crate::yaml::{YamlNode, YamlValue, parse};
use std::borrow::Cow;
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
/// The deepest nesting of lists and references in a script, as in GitLab.
const DEEPEST: usize = 10;
/// The maximum number of lines of a script.
const MOST_LINES: usize = 1000;
/// The tag of a reference to a part of another job.
const REFERENCE: &str = "!reference";
/// The key of a map whose entries are merged into the map around it.
const MERGED: &str = "<<";

/// Returns the offers of the file.
///
/// # Errors
///
/// The reason why the file cannot be read.
pub(super) fn read(file: &str, text: &str) -> Result<Vec<CheckOffer>, String> {
    let root = parse(&plain(text), 1).map_err(|problem| problem.to_string())?;
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
        let (mut lines, mut left_out) = (Vec::new(), Vec::new());
        add_lines(&root, script, DEEPEST, &mut lines, &mut left_out);
        offers.extend(left_out.into_iter().map(|(node, text, why)| {
            let (file, line, why) = (file.to_owned(), node.place.line, why.to_owned());
            Err(Refusal { file, line, text, why, is_unread: true })
        }));
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

/// Returns the text in plain YAML: references as maps with one key, and merge keys as plain keys.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(REFERENCE) && !text.contains("<<:") {
        return text.into();
    }
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find(REFERENCE) {
        let after = &rest[start + REFERENCE.len()..];
        let path = after.trim_start_matches(' ');
        let end = path.find(']').filter(|_| path.starts_with('['));
        whole.push_str(&rest[..start]);
        match end {
            Some(end) => whole.push_str(&format!("{{ \"{REFERENCE}\": {} }}", &path[..=end])),
            None => whole.push_str(REFERENCE),
        }
        rest = end.map_or(after, |end| &path[end + 1..]);
    }
    whole.push_str(rest);
    let line = |line: &str| {
        let start =
            line.find("<<:").filter(|start| line[..*start].trim_end().is_empty() || line[..*start].ends_with("{ "));
        start.map_or_else(|| line.to_owned(), |start| format!("{}\"{MERGED}\"{}", &line[..start], &line[start + 2..]))
    };
    whole.split('\n').map(line).collect::<Vec<_>>().join("\n").into()
}

/// Adds the lines of a script, also those in nested lists and behind references. Adds to `left_out`
/// items that are not lines of this file, with its text and the reason.
fn add_lines<'n>(
    root: &'n YamlNode,
    node: &'n YamlNode,
    depth: usize,
    lines: &mut Vec<&'n YamlNode>,
    left_out: &mut Vec<(&'n YamlNode, String, &'static str)>,
) {
    let Some(depth) = depth.checked_sub(1).filter(|_| lines.len() < MOST_LINES) else {
        return left_out.push((node, "script".into(), "its script has too many lines or lists in lists"));
    };
    match &node.value {
        YamlValue::List(items) => items.iter().for_each(|item| add_lines(root, item, depth, lines, left_out)),
        YamlValue::Map(entries) => match get(node, REFERENCE).map(list) {
            Some(path) => match referred(root, path) {
                Some(part) => add_lines(root, part, depth, lines, left_out),
                None => {
                    let names: Vec<&str> = path.iter().map(text_of).collect();
                    left_out.push((node, format!("{REFERENCE} [{}]", names.join(", ")), "it is in another file"));
                }
            },
            None => {
                let keys: Vec<&str> = entries.iter().map(|(key, _)| key.text.as_str()).collect();
                left_out.push((node, keys.join(", "), "a `: ` makes it a map and no command"));
            }
        },
        _ => lines.push(node),
    }
}

/// Returns the part of another job to which a reference leads.
fn referred<'n>(root: &'n YamlNode, path: &[YamlNode]) -> Option<&'n YamlNode> {
    let (job, keys) = path.split_first()?;
    keys.iter().try_fold(get(root, job.as_text()?)?, |node, key| inherited(root, node, key.as_text()?))
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

/// Returns a job, the maps that are merged into it, and the jobs that it extends, the nearest
/// first.
fn lineage<'n>(root: &'n YamlNode, job: &'n YamlNode) -> Vec<&'n YamlNode> {
    let mut all = vec![job];
    let mut next = 0;
    while let Some(one) = all.get(next).copied().filter(|_| all.len() < MOST_PARENTS) {
        let values =
            |key: &str| get(one, key).map_or_else(Vec::new, |it| std::iter::once(it).chain(list(it)).collect());
        all.extend(values(MERGED));
        let names = values("extends");
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
        let reported: Vec<String> = read("ci.yml", text).unwrap().into_iter().map(line).collect();
        assert_eq!(
            reported,
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
        let text = ".setup:\n  script:\n    - make deps\n    - [cd web, [make lint]]\n.near: &near { allow_failure: true }\n\
                    .far:\n  extends: .setup\n  variables: { A: x }\n\
                    unit:\n  <<: *near\n  script:\n    - !reference [.far, script]\n    - - make unit\n      - - make deep\n    \
                    - !reference [.other, script]\n    - echo a: b\n    - make\n\
                    same: { <<: *near, script: !reference [.setup, script] }\n\
                    round: { script: [!reference [round, script]] }\nquoted: { script: \"echo !reference x\" }\n";
        let reported: Vec<String> = read("ci.yml", text).unwrap().into_iter().map(line).collect();
        assert_eq!(
            reported,
            [
                "15 ! !reference [.other, script]: it is in another file",
                "16 ! echo a: a `: ` makes it a map and no command",
                "3 make deps in  true",
                "4 make lint in web true",
                "13 make unit in web true",
                "14 make deep in web true",
                "17 make in web true",
                "3 make deps in  true",
                "4 make lint in web true",
                "19 ! script: its script has too many lines or lists in lists",
                "20 echo '!reference' x in  false",
            ]
        );
    }
}
