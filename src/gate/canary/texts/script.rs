//! Planted tests for `node --test`, Jest and Vitest. Each file of tests runs in its own process or
//! context, so each gets a planted file beside it.

use super::{MOST_FORMS, PlainFailure, PlantDraft, PlantGroup, tokens};
use crate::gate::names::name_of;
use std::collections::{BTreeMap, BTreeSet};

/// Assertions of `node:assert` and Chai, each with arguments that fail.
#[rustfmt::skip]
const ASSERTIONS: [(&str, &str); 27] = [
    ("equal", "(\"{mark}\", \"\")"), ("strictEqual", "(\"{mark}\", \"\")"),
    ("deepEqual", "(\"{mark}\", \"\")"), ("deepStrictEqual", "(\"{mark}\", \"\")"),
    ("partialDeepStrictEqual", "(\"{mark}\", \"\")"), ("notEqual", "(\"{mark}\", \"{mark}\")"),
    ("notStrictEqual", "(\"{mark}\", \"{mark}\")"), ("notDeepEqual", "(\"{mark}\", \"{mark}\")"),
    ("notDeepStrictEqual", "(\"{mark}\", \"{mark}\")"), ("ok", "(false, \"{mark}\")"),
    ("match", "(\"\", new RegExp(\"{mark}\"))"), ("doesNotMatch", "(\"{mark}\", new RegExp(\"{mark}\"))"),
    ("throws", "(() => {})"), ("doesNotThrow", "(() => { throw new Error(\"{mark}\"); })"),
    ("rejects", "(async () => {})"), ("doesNotReject", "(async () => { throw new Error(\"{mark}\"); })"),
    ("fail", "(\"{mark}\")"), ("ifError", "(new Error(\"{mark}\"))"),
    ("isTrue", "(false, \"{mark}\")"), ("isFalse", "(true, \"{mark}\")"),
    ("isOk", "(false, \"{mark}\")"), ("isNotOk", "(true, \"{mark}\")"),
    ("isNull", "(\"{mark}\")"), ("isUndefined", "(\"{mark}\")"), ("isDefined", "(undefined, \"{mark}\")"),
    ("lengthOf", "(\"{mark}\", 0)"), ("include", "(\"\", \"{mark}\")"),
];
/// The modules of [`ASSERTIONS`].
const ASSERTING: [&str; 5] = ["node:assert", "assert", "node:assert/strict", "assert/strict", "chai"];

/// Matchers of `expect`: the name, a value that does not match, a value that matches, and the
/// expected value.
#[rustfmt::skip]
const MATCHERS: [(&str, &str, &str, &str); 23] = [
    ("toBe", "\"\"", "\"{mark}\"", "\"{mark}\""), ("toEqual", "\"\"", "\"{mark}\"", "\"{mark}\""),
    ("toStrictEqual", "\"\"", "\"{mark}\"", "\"{mark}\""), ("toBeNull", "\"{mark}\"", "null", ""),
    ("toBeUndefined", "\"{mark}\"", "undefined", ""), ("toBeDefined", "undefined", "\"{mark}\"", ""),
    ("toBeTruthy", "\"\"", "\"{mark}\"", ""), ("toBeFalsy", "\"{mark}\"", "\"\"", ""),
    ("toBeNaN", "1", "NaN", ""), ("toBeCloseTo", "1", "2", "2"),
    ("toBeGreaterThan", "1", "3", "2"), ("toBeGreaterThanOrEqual", "1", "2", "2"),
    ("toBeLessThan", "3", "1", "2"), ("toBeLessThanOrEqual", "3", "2", "2"),
    ("toContain", "[\"\"]", "[\"{mark}\"]", "\"{mark}\""), ("toContainEqual", "[\"\"]", "[\"{mark}\"]", "\"{mark}\""),
    ("toHaveLength", "\"\"", "\"a\"", "1"), ("toHaveProperty", "{}", "{ [\"{mark}\"]: 1 }", "\"{mark}\""),
    ("toMatch", "\"\"", "\"{mark}\"", "new RegExp(\"{mark}\")"), ("toMatchObject", "{}", "{ [\"{mark}\"]: 1 }", "{ [\"{mark}\"]: 1 }"),
    ("toBeInstanceOf", "{}", "[]", "Array"),
    ("toThrow", "() => {}", "() => { throw new Error(\"{mark}\"); }", ""),
    ("toThrowError", "() => {}", "() => { throw new Error(\"{mark}\"); }", ""),
];
/// Blank lines between tests. Reports show the lines around a failure, which would otherwise
/// include the names of other tests.
const APART: &str = "\n\n\n\n\n\n\n\n";

/// Names that a head imports from modules: the local name, and the name in the module, which is
/// empty for the whole module.
type Bound<'t> = BTreeMap<&'t str, &'t str>;

/// Returns tests that throw, and a test for each assertion that the base's file uses.
pub(in crate::gate::canary) fn node(folder: &str, path: &str, like: &str) -> PlantDraft {
    let (head, names) = (head(like), tokens(like));
    let is_module = match path.rsplit('.').next() {
        Some("mjs" | "mts") => true,
        Some("cjs" | "cts") => false,
        _ => head.lines().any(|line| line.starts_with("import ")),
    };
    // The file may already use the plain names, so the imports have other names.
    let imports = if is_module {
        "import { test as test_{file} } from \"node:test\";\nimport assert_{file} from \"node:assert\";\n"
    } else {
        "const { test: test_{file} } = require(\"node:test\");\nconst assert_{file} = require(\"node:assert\");\n"
    };
    let own =
        [("throw", "throw new Error(\"{mark}\")"), ("strictEqual", "assert_{file}.strictEqual(\"{mark}\", \"\")")];
    let own = own.map(|(form, body)| (form.to_owned(), script_test("test_{file}", body)));
    let mut groups = vec![PlantGroup { open: imports.into(), ..PlantGroup::new("node:test", own.into()) }];
    let plain = PlainFailure { head: String::new(), group: PlantGroup { label: "plain".into(), ..groups[0].clone() } };
    let runners = bound(&head, &["node:test", "test"]);
    let mut runners: Vec<&str> = runners
        .iter()
        .filter(|(_, name)| matches!(**name, "" | "default" | "test" | "it"))
        .map(|(local, _)| *local)
        .collect();
    runners.retain(|runner| like.contains(&format!("{runner}(")));
    let assertions = assertions(&head, &names);
    for (at, runner) in runners.into_iter().enumerate() {
        let mut tests = vec![("throw".to_owned(), script_test(runner, "throw new Error(\"{mark}\")"))];
        let each = assertions.iter().filter(|_| at == 0);
        tests.extend(each.map(|(form, body)| (form.clone(), script_test(runner, body))));
        groups.push(PlantGroup::new(runner, tests));
    }
    if groups.len() == 1 {
        groups[0].tests.extend(assertions.into_iter().map(|(form, body)| (form, script_test("test_{file}", &body))));
    }
    draft(folder, path, head, groups, Some(plain))
}

/// Returns a test that throws, and a test for each matcher and assertion that the base's file uses.
pub(in crate::gate::canary) fn jest(folder: &str, path: &str, like: &str) -> PlantDraft {
    let (head, names) = (head(like), tokens(like));
    let calls = |name: &str| like.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")));
    let runners: Vec<&str> = ["it", "test"].into_iter().filter(|name| calls(name)).collect();
    let first = runners.first().copied().unwrap_or("test");
    let mut bodies: Vec<(String, String)> = if like.contains("expect(") { matchers(&names) } else { Vec::new() };
    bodies.extend(assertions(&head, &names));
    let mut tests = vec![("throw".to_owned(), script_test(first, "throw new Error(\"{mark}\")"))];
    tests.extend(bodies.into_iter().map(|(form, body)| (form, script_test(first, &body))));
    let mut groups = vec![PlantGroup::new(first, tests)];
    groups.extend(runners.iter().skip(1).map(|runner| {
        PlantGroup::new(*runner, vec![("throw".to_owned(), script_test(runner, "throw new Error(\"{mark}\")"))])
    }));
    let modules = ["vitest", "@jest/globals"];
    let module = modules.into_iter().find(|module| bound(&head, &[*module]).contains_key(first));
    let import = module.map_or(String::new(), |module| format!("import {{ {first} }} from \"{module}\";\n"));
    let plain = PlainFailure::new(import, "throw", script_test(first, "throw new Error(\"{mark}\")"));
    draft(folder, path, head, groups, plain)
}

fn draft(folder: &str, path: &str, head: String, groups: Vec<PlantGroup>, plain: Option<PlainFailure>) -> PlantDraft {
    let (like, path) = (path.into(), format!("{folder}{}", script_name(path)));
    PlantDraft { like, path, head, groups, plain, tail: String::new() }
}

fn script_test(runner: &str, body: &str) -> String {
    let context = if body.contains("t.assert.") { "t" } else { "" };
    format!("{runner}(\"{{name}}\", async ({context}) => {{\n  {body};\n}});\n{APART}")
}

/// Returns the name of a test script with the same form as the imitated one, so that the lane's
/// runner finds both.
fn script_name(like: &str) -> String {
    let like = name_of(like);
    let (stem, ending) = like.rsplit_once('.').unwrap_or((like, "js"));
    let end = [".spec", "_test", "-test"].into_iter().find(|end| stem.ends_with(end));
    match end {
        None if stem.starts_with("test-") => format!("test-{{file}}.{ending}"),
        end => format!("{{file}}{}.{ending}", end.unwrap_or(".test")),
    }
}

/// Returns the lines of a file before its tests. Lines inside a comment do not end the head.
fn head(like: &str) -> String {
    #[rustfmt::skip]
    const ENDS: [&str; 15] = [
        "describe", "test", "it(", "it.", "suite", "before", "after", "function", "class ", "async ", "for ", "if ", "export ", "await ", "(",
    ];
    let mut is_comment = false;
    let is_head = |line: &&str| {
        let is_end = !is_comment && ENDS.iter().any(|end| line.starts_with(end));
        is_comment = match (line.rfind("/*"), line.rfind("*/")) {
            (Some(open), Some(close)) if close > open => false,
            (Some(_), _) if line.trim_start().starts_with("/*") => true,
            (_, Some(_)) => false,
            _ => is_comment,
        };
        !is_end
    };
    like.lines().take_while(is_head).collect::<Vec<_>>().join("\n")
}

/// Returns the assertions that are called by names from the head or by `t.assert`.
fn assertions(head: &str, names: &BTreeSet<&str>) -> Vec<(String, String)> {
    let args = |name: &str| ASSERTIONS.iter().find(|(known, _)| *known == name).map(|(_, args)| *args);
    let bound = bound(head, &ASSERTING);
    let mut found = Vec::new();
    for token in names {
        let (root, name) = (token.split('.').next().unwrap_or_default(), token.rsplit('.').next().unwrap_or_default());
        let is_in_context = token.strip_prefix("t.assert.") == Some(name);
        let args = match bound.get(root) {
            Some(own) if root == *token => args(own).or_else(|| is_whole(own).then_some("(false, \"{mark}\")")),
            Some(own) if is_whole(own) => args(name),
            _ if is_in_context => args(name),
            _ => None,
        };
        found.extend(args.map(|args| ((*token).to_owned(), format!("await {token}{args}"))));
    }
    found.truncate(MOST_FORMS);
    found
}

/// Returns whether a name in a module stands for all of its assertions.
fn is_whole(name: &str) -> bool {
    matches!(name, "" | "default" | "assert" | "strict")
}

fn matchers(names: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let begin =
        |token: &str| [".not.", ".resolves.", ".rejects.", ".to"].iter().filter_map(|part| token.find(part)).min();
    for token in names.iter().filter_map(|token| Some(&token[begin(token)?..])) {
        let Some((before, name)) = token.rsplit_once('.') else { continue };
        let Some((_, unlike, alike, expected)) = MATCHERS.iter().find(|(known, ..)| *known == name) else { continue };
        let value = match before.strip_suffix(".not") {
            Some(_) => alike,
            None => unlike,
        };
        let throws = value.contains("=>");
        let body = match before.strip_suffix(".not").unwrap_or(before) {
            "" => format!("expect({value}){token}({expected})"),
            ".resolves" if !throws => format!("await expect(Promise.resolve({value})){token}({expected})"),
            ".rejects" if !throws => format!("await expect(Promise.reject({value})){token}({expected})"),
            _ => continue,
        };
        found.push((token.to_owned(), body));
    }
    found.sort();
    found.dedup();
    found.truncate(MOST_FORMS);
    found
}

/// Returns the names that a head imports from these modules.
fn bound<'t>(head: &'t str, modules: &[&str]) -> Bound<'t> {
    let mut found = Bound::new();
    for (quote, module) in modules.iter().flat_map(|module| [('"', module), ('\'', module)]) {
        let named = format!("{quote}{module}{quote}");
        for (at, _) in head.match_indices(&named) {
            let before = &head[..at];
            let begin =
                ["import ", "const ", "let ", "var "].iter().filter_map(|word| Some(before.rfind(word)? + word.len()));
            let Some(begin) = begin.max() else { continue };
            let clause = &before[begin..];
            let clause =
                clause.rsplit_once(" from").or_else(|| clause.split_once('=')).map_or("", |(clause, _)| clause);
            let rest = &head[at + named.len()..];
            // The property in `require("node:assert").strict`.
            let of = rest
                .strip_prefix(").")
                .map_or("", |rest| rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default());
            let (whole, parts) = clause.split_once('{').unwrap_or((clause, ""));
            let whole = whole.trim().trim_end_matches(',').trim().trim_start_matches("* as ").trim();
            if !whole.is_empty() {
                found.insert(whole, of);
            }
            for part in parts.trim_end().trim_end_matches('}').split(',').map(str::trim).filter(|part| !part.is_empty())
            {
                let (name, local) = part.split_once(" as ").or_else(|| part.split_once(':')).unwrap_or((part, part));
                found.insert(local.trim(), name.trim());
            }
        }
    }
    found
}
