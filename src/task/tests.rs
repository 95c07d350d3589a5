//! Tests of parsing tasks and of the messages about invalid tasks.

use super::*;
use proptest::prelude::*;

fn read(text: &str) -> Result<Task, String> {
    parse(text, "tasks/task.md", &ParamValues::new()).map_err(|fault| fault.to_string())
}

fn read_with(text: &str, values: &[(&str, &str)]) -> Result<String, String> {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    parse(text, "task.md", &values).map(|task| task.prompt).map_err(|fault| fault.to_string())
}

const FULL: &str = r#"---
title: Repair the date parser
lane: [lint, verify]
max_retries: 5
model: [anthropic/claude-sonnet-4-5, local]
tier: tool
files: ["src/**"]
protect: ["fixtures/**"]
allow_edit: ["tests/dates.rs"]
hidden: auto 25%
on_tamper: fail
stuck_after: 2
specs: [dates]
context: ["docs/dates.md"]
tools: { allow: ["files-*"], deny: ["shell-exec"] }
budget: { turns: 60, tokens: 500000, usd: 2.50, time: 30m }
approve: { ask: ["shell-exec:git push*"] }
mcp: [docs]
needs: [bump-deps]
candidates: 3
output_schema: report.schema.json
isolation: worktree
commit: on-success
expect: failing
baseline: always
---
# Something else

Fix it.
"#;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn every_key_of_the_front_matter_has_its_field() {
    let expected = Task {
        title: "Repair the date parser".into(),
        prompt: "# Something else\n\nFix it.".into(),
        source: "tasks/task.md".into(),
        gate: GateChoice::Lanes(texts(&["lint", "verify"])),
        max_retries: 5,
        models: texts(&["anthropic/claude-sonnet-4-5", "local"]),
        tier: Tier::Tool,
        files: texts(&["src/**"]),
        protect: texts(&["fixtures/**"]),
        allow_edit: texts(&["tests/dates.rs"]),
        hidden: texts(&["auto 25%"]),
        on_tamper: OnTamper::Fail,
        stuck_after: Some(2),
        specs: SpecChoice::Modules(texts(&["dates"])),
        context: texts(&["docs/dates.md"]),
        tools: ToolChoice { allow: texts(&["files-*"]), deny: texts(&["shell-exec"]) },
        budget: TaskBudget {
            turns: Some(60),
            tokens: Some(500_000),
            usd_micros: Some(2_500_000),
            time_ms: Some(1_800_000),
        },
        output_schema: Some("report.schema.json".into()),
        expect: Some(Expect::Failing),
        baseline: Some(Baseline::Always),
        is_fix: false,
        commit: Some(Commit::OnSuccess),
        isolation: Isolation::Worktree,
        base: None,
        allow_dirty: false,
        approve: texts(&["shell-exec:git push*"]),
        mcp: texts(&["docs"]),
        needs: texts(&["bump-deps"]),
        candidates: Some(Candidates::Count(3)),
        conduct: TaskSettings::default(),
    };
    assert_eq!(read(FULL), Ok(expected));
}

#[test]
fn candidates_are_counted_or_have_a_model_each() {
    let all = read("---\ncandidates: [claude, gpt]\n---\nDo.").unwrap().candidates.map(|all| all.each());
    assert_eq!(all, Some(vec![texts(&["claude"]), texts(&["gpt"])]));
    assert!(races("---\ncandidates: 2\n---\nDo.") && !races("---\nlane: x\n---\ncandidates: 2"));
}

#[test]
fn a_file_without_front_matter_is_a_prompt_and_nothing_else() {
    let expected = Task { source: "-".into(), ..Task::from_prompt("Fix {{ it }} {% now %}") };
    assert_eq!(parse("\u{feff}Fix {{ it }} {% now %}\r\n", "-", &ParamValues::new()), Ok(expected));
}

#[test]
fn carriage_returns_and_a_byte_order_mark_change_nothing() {
    let windows = format!("\u{feff}{}", FULL.replace('\n', "\r\n"));
    let expected = read(FULL).map(|task| Task { prompt: task.prompt.replace('\n', "\r\n"), ..task });
    assert_eq!(read(&windows), expected);
}

#[test]
fn a_title_is_given_or_the_first_heading_or_the_files_name() {
    let title = |text: &str| read(text).unwrap().title;
    assert_eq!(title("---\ntitle: |\n  two\n  lines\n---\n# no"), "two lines");
    assert_eq!(title("Do.\n\n```sh\n# a comment\n```\n\n## Repair\tdates ##\n"), "Repair dates");
    assert_eq!(title("#hashtag\nDo."), "task");
    assert_eq!(parse("Do.", "a/fix-dates.md", &ParamValues::new()).unwrap().title, "fix-dates");
    let prompt = |text: &str| parse(text, "-", &ParamValues::new()).unwrap().title;
    assert_eq!((prompt("Do.\n\n# This"), prompt("\nFix  it.\nNow.")), ("This".into(), "Fix it.".into()));
    assert_eq!(prompt(&"ž".repeat(200)), "ž".repeat(200));
}

#[test]
fn a_gate_is_named_or_skipped_on_purpose() {
    let gate = |lane: &str| read(&format!("---\nlane: {lane}\n---\nDo.")).unwrap().gate;
    assert_eq!(gate("quick"), GateChoice::Lanes(texts(&["quick"])));
    assert_eq!(gate("false"), GateChoice::Skip);
    assert_eq!(read("Do.").unwrap().gate, GateChoice::Lanes(texts(&["verify"])));
}

#[test]
fn all_problems_are_said_at_once_in_the_order_of_the_file() {
    let text = "---\nmax_retires: 1\nlane: true\nlimits: { memory: 4G }\nbudget: { turns: 0, usd: 2.5, tiem: 1m }\napprove: [x]\n---\n \n";
    let expected = "\
        tasks/task.md:2:1: unknown key `max_retires` in the front matter (did you mean `max_retries`?)\n\
        tasks/task.md:3:7: expected `lane` to be a lane's name, a list of names or `false`, found `true` (write `lane: verify`)\n\
        tasks/task.md:4:1: `limits` is a key of fledge.yaml, not of a task (move it to fledge.yaml)\n\
        tasks/task.md:5:18: expected `turns` to be a whole number, at least 1, found the number 0 (write a number in that range)\n\
        tasks/task.md:5:31: unknown key `tiem` in `budget` (did you mean `time`?)\n\
        tasks/task.md:6:10: expected `approve` to be a map, found a list (write `key: value` lines)\n\
        tasks/task.md:8:1: the task has no text (write the task below the front matter)";
    assert_eq!(read(text), Err(expected.into()));
}

#[test]
fn every_malformed_front_matter_is_refused_with_its_place_and_what_to_do() {
    let sources = [
        "titel: x",
        "title:",
        "title: 5",
        "title: ''",
        "title: [x]",
        "title: {a: b}",
        "title: a: b",
        "title: 'x",
        "title: @x",
        "title: {{ issue }}",
        "title: a\ntitle: b",
        "Title: x",
        "lane: true",
        "lane: 1",
        "lane:",
        "lane: []",
        "lane: [a, 2]",
        "lane: {verify: true}",
        "lanes: verify",
        "max_retries: -1",
        "max_retries: 101",
        "max_retries: 1.5",
        "max_retries: '3'",
        "max_retries: many",
        "max-retries: 3",
        "maxRetries: 3",
        "max_retries: 99999999999999999999",
        "model:",
        "model: 4",
        "model: []",
        "model: [claude, ~]",
        "models: [a]",
        "tier: codes",
        "tier: 1",
        "tier: Code",
        "files: src/**",
        "files: []",
        "files: ['/etc/passwd']",
        "files: ['../x']",
        "files: ['./src']",
        "files: ['src/']",
        "files: ['!src/**']",
        "files: ['a[']",
        "files: ['{a']",
        "files: [1]",
        "protect: x",
        "protect: ['~/x']",
        "hidden: auto 200%",
        "hidden: ['../x', 'auto']",
        "allow_edit: [a/../b]",
        "on_tamper: restor",
        "on_tamper: true",
        "specs: atuo",
        "specs: false",
        "specs: [a, ]\nspecs: [b]",
        "specs: ['']",
        "context: docs/a.md",
        "context: ['/abs']",
        "tools: [read]",
        "tools: { alow: ['*'] }",
        "tools: { allow: '*' }",
        "tools: { deny: ['[z-a]'] }",
        "tools: { allow: [files-raed], deny: [shell-exce, 'web-*'] }",
        "budget: 5",
        "budget: { turns: ten }",
        "checks: test\nretries: 2\ntime: 5m",
        "budget: { tokens: -5 }",
        "budget: { time: 30 }",
        "budget: { time: 30x }",
        "budget: { time: 0s }",
        "budget: { usd: 2.5000001 }",
        "budget: { usd: '2.50' }",
        "budget: { usd: $2.50 }",
        "budget: { usd: -1 }",
        "budget: { usd: 1e40 }",
        "isolation: docker",
        "commit: sometimes",
        "approve: { ask: git-push }",
        "approve: { ask: ['files-write:*'] }",
        "approve: { ask: ['git push*', 'git-push*', 'shell-exec:', files-wirte, 'mcp-'] }",
        "approve: { deny: [x] }",
        "mcp: docs",
        "needs: x",
        "expect: red",
        "expect: failing\nlane: false",
        "expect: passing\nbaseline: never",
        "baseline: true",
        "output_schema: { type: object }",
        "output_schema: ../a.json",
        "schedule: soon",
        "candidates: 1",
        "candidates: []",
        "candidates: many",
        "model: a\ncandidates: [b, c]",
        "params: [issue]",
        "params: { issue: }",
        "params: { a-b: {} }",
        "params: { if: {} }",
        "params: { a: { required: yes } }",
        "params: { a: { requird: true } }",
        "params: { a: { default: x, required: true } }",
        "params: { a: { default: x, choices: [y, z] } }",
        "params: { a: { default: 3 } }",
        "params: { a: {} }",
        "- a\n- b",
        "text",
        "\ttitle: x",
        "title: !!str x",
        "a: &x 1\nb: *y",
        "<<: { title: x }",
        "1: x",
        "? [a]\n: b",
        "[",
        "title: x\n  lane: y",
        "title: \"\\q\"",
    ];
    let shown: Vec<String> = sources
        .iter()
        .map(|source| match read(&format!("---\n{source}\n---\nDo.\n")) {
            Ok(task) => panic!("{source:?} was accepted: {task:?}"),
            Err(message) => format!("{source:?}\n{message}"),
        })
        .collect();
    for line in shown.iter().flat_map(|shown| shown.lines().skip(1)) {
        assert!(line.starts_with("tasks/task.md:") && (line.ends_with(')') || line.contains("expected")), "{line}");
        let numbers = line.trim_start_matches("tasks/task.md:").splitn(3, ':').take(2);
        assert!(numbers.filter(|part| part.parse::<usize>().is_ok_and(|n| n > 0)).count() == 2, "{line}");
    }
    insta::assert_snapshot!(shown.join("\n"));
}

const TEMPLATE: &str = "---\nparams:\n  issue: { required: true, description: its number }\n  \
    style: { default: minimal, choices: [minimal, full] }\n  note: { required: false }\n---\n";

#[test]
fn parameters_fill_the_text() {
    let body = "Fix {{ issue }} in {{style|upper}} style{{ '. ' ~ note if note is defined else '' }} {{ '{{' }}";
    let text = format!("{TEMPLATE}{body}");
    assert_eq!(read_with(&text, &[("issue", "12")]), Ok("Fix 12 in MINIMAL style {{".into()));
    let all = [("issue", "{{ style }}"), ("style", "full"), ("note", "Now")];
    assert_eq!(read_with(&text, &all), Ok("Fix {{ style }} in FULL style. Now {{".into()));
}

#[test]
fn values_without_declared_parameters_may_be_used_freely() {
    assert_eq!(read_with("Fix {{ issue }}", &[("issue", "12")]), Ok("Fix 12".into()));
}

#[test]
fn what_is_wrong_with_parameters_is_said_where_it_stands() {
    let given: &[(&str, &[(&str, &str)])] = &[
        ("Fix.", &[]),
        ("Fix.", &[("isue", "1"), ("issue", "2")]),
        ("Fix.", &[("issue", "2"), ("zebra", "1")]),
        ("Fix.", &[("issue", "2"), ("style", "fast")]),
        ("Fix\n  é {{ isue }} {{ other }}", &[("issue", "2")]),
        ("{{ note }}", &[("issue", "2")]),
        ("{{ issue", &[("issue", "2")]),
        ("{{ issue + }}", &[("issue", "2")]),
        ("{{ issue | shout }}", &[("issue", "2")]),
        ("{{ }}", &[("issue", "2")]),
        ("{{ range(9) }}", &[("issue", "2")]),
        ("{{ issue.number }}", &[("issue", "2")]),
        ("a\n {% for x in issue %}{% endfor %}", &[("issue", "2")]),
    ];
    let shown = given.iter().map(|(body, values)| {
        let message = read_with(&format!("{TEMPLATE}{body}"), values).expect_err(body);
        format!("{body:?} {values:?}\n{message}")
    });
    insta::assert_snapshot!(shown.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_template_cannot_grow_without_end() {
    let long = "x".repeat(600_000);
    let many = format!("{TEMPLATE}{}", "{{ issue }}".repeat(1_000));
    assert!(read_with(&many, &[("issue", &long)]).unwrap_err().contains("larger than"));
    let product = format!("{TEMPLATE}{}", "{{ issue * 99999999999 }}");
    assert!(read_with(&product, &[("issue", "xx")]).unwrap_err().contains("too large"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in "(---\n)?\\PC{0,60}(\n---\n)?[-a-z{}%|'\" \n]{0,40}") {
        let _ = read(&text);
        let _ = read_with(&text, &[("a", "b")]);
    }

    #[test]
    fn a_valid_file_with_a_hole_or_a_splinter_is_read_or_refused_with_its_name(
        at in 0..FULL.len(), gone in 0_usize..12, splinter in "[-a-z:{}\\[\\]&*!|>'\"%@`#, \t\n0-9]{0,6}",
    ) {
        let end = (at + gone).min(FULL.len());
        let text = format!("{}{splinter}{}", &FULL[..at], &FULL[end..]);
        if let Err(message) = read(&text) {
            prop_assert!(message.lines().all(|line| line.starts_with("tasks/task.md:")), "{}", message);
        }
    }
}
