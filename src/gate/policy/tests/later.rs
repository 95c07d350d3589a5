//! Files that run or steer something after the run.

use super::*;

#[test]
fn scripts_that_only_ci_or_a_git_hook_runs_are_protected() {
    let files = [
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: ./ci/run.sh --fast\n      - run: |\n          bash scripts/lint.sh\n",
        ),
        (".gitlab-ci.yml", "test:\n  script:\n    - sh tools/check.sh\n"),
        (".pre-commit-config.yaml", "repos:\n- repo: local\n  hooks:\n  - id: a\n    entry: ./hack/format.sh\n"),
        (".husky/pre-commit", "./scripts/hook.sh\n"),
        ("lefthook.yml", "pre-push:\n  commands:\n    a: { run: python3 -m qa.hook }\n"),
        (
            ".pre-commit-config.yml",
            "repos: [{ repo: local, hooks: [{ id: l, entry: qa/lint.py, language: script }] }]\n",
        ),
        ("web/.husky/pre-push", "node web/hook.mjs\n"),
        ("qa/hook.py", ""),
        ("qa/lint.py", ""),
        ("web/hook.mjs", ""),
        ("ci/run.sh", ""),
        ("scripts/lint.sh", ""),
        ("scripts/release.sh", ""),
        ("scripts/hook.sh", "bash \"$(dirname \"$0\")/deep.sh\"\n"),
        ("scripts/deep.sh", ""),
        ("tools/check.sh", ""),
        ("hack/format.sh", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    let free: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_none()).collect();
    assert_eq!(free, ["scripts/release.sh"]);
}

#[test]
fn changes_of_files_that_steer_agents_and_editors_are_notes() {
    for path in [
        "AGENTS.md",
        "sub/CLAUDE.md",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".devcontainer.json",
        ".cursorrules",
    ] {
        assert_eq!(POLICY.findings(&[change(path, ChangeKind::Added)], |_, _| None), [], "{path}");
        assert_eq!(POLICY.notes(&[change(path, ChangeKind::Added)]).len(), 1, "{path}");
    }
    assert_eq!(POLICY.notes(&[change("docs/AGENTS.txt", ChangeKind::Added)]), [""; 0]);
}

#[test]
fn a_source_that_a_configuration_names_only_as_an_alias_is_the_work() {
    let files = [
        (
            "vitest.config.mts",
            "test: { alias: {\n 'thing': new URL('src/index.ts', import.meta.url).pathname,\n '@in': 'src/in.ts' },\n setupFiles: ['setup.ts'] }\n",
        ),
        ("src/index.ts", ""),
        ("src/in.ts", ""),
        ("setup.ts", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    let free: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_none()).collect();
    assert_eq!(free, ["src/index.ts", "src/in.ts"]);
}
