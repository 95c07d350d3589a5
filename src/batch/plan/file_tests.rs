//! Valid and invalid batch files.

use super::*;

#[test]
fn a_whole_file_is_read() {
    let text = "tasks: [tasks/*.md, more]\nmatrix:\n  version: [1, '1.10', true]\n  include: [{ version: 1, extra: x }]\n  \
        exclude: [{ task: a }]\nrepositories: [../svc, { path: ../lib, base: origin/main }]\n\
        defaults: { model: m, lane: [a, b], budget: { usd: 0.5 }, isolation: worktree }\n\
        jobs: 8\nfail_fast: true\nretries: 2\nretry_delay: 30s\nmax_usd: 12.50\n";
    let file = parse(text, "batch.yaml").unwrap();
    let paths: Vec<&str> = file.tasks.iter().map(|(_, path)| path.as_str()).collect();
    assert_eq!(paths, ["tasks/*.md", "more"]);
    assert_eq!(file.matrix.dimensions, [("version".to_owned(), ["1", "1.10", "true"].map(str::to_owned).to_vec())]);
    let repositories: Vec<_> =
        file.repositories.iter().map(|entry| (entry.path.as_str(), entry.base.as_deref())).collect();
    assert_eq!(repositories, [("../svc", None), ("../lib", Some("origin/main"))]);
    assert_eq!((file.jobs, file.fail_fast, file.retries), (Some(8), Some(true), Some(2)));
    assert_eq!((file.retry_delay, file.usd_micros), (Some(Duration::from_secs(30)), Some(12_500_000)));
    assert_eq!((file.models.as_slice(), file.defaults.budget.usd_micros), (&["m".to_owned()][..], Some(500_000)));
    assert_eq!(parse("tasks: a.md", "b.yaml").unwrap().tasks.len(), 1);
}

#[test]
fn every_wrong_batch_file_is_refused_with_its_place_and_what_to_do() {
    let texts = [
        "jobs: 2",
        "tasks: []",
        "tasks: [1]",
        "tasks: a\njobs: 0\nfail_fast: soon\nretries: 99\nretry_delay: 5\nmax_usd: -1\nmatrx: {}",
        "tasks: a\nmatrix: [1]",
        "tasks: a\nmatrix: { v: 1, w: [], task: [a], x: [a, a, [b]] }",
        "tasks: a\nmatrix: { version: [1], exclude: [{ verson: 1 }, {}, a], include: { version: 1 } }",
        "tasks: a\nrepositories: []",
        "tasks: a\nrepositories: [https://example.com/a.git, git@example.com:a.git, { base: main }, { path: x, bse: y }]",
        "tasks: a\ndefaults: { lanes: verify, max_retries: many }",
        "tasks: [a",
    ];
    let said = |text: &&str| format!("{text}\n{}\n", parse(text, "batch.yaml").unwrap_err());
    insta::assert_snapshot!(texts.iter().map(said).collect::<Vec<_>>().join("\n"));
}
