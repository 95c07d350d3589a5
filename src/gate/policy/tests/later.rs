//! Files that run or steer something after the run.

use super::*;

#[test]
fn a_task_or_a_batch_anywhere_stays_as_it_is_and_none_is_added() {
    let task = "---\nlane: false\nallow_edit: ['**']\n---\nTidy up.\n";
    assert_eq!(edited("chores/upkeep.md", task), ["it is a task, and defines work that runs later"]);
    assert_eq!(edited("docs/upkeep.md", "---\ntitle: Upkeep\n---\nTidy up.\n"), [""; 0]);
    let batch = "defaults: { allow_edit: ['**'] }\ntasks: [chores/upkeep.md]\n";
    assert_eq!(edited("chores/all.yaml", batch), ["it is a batch of tasks, and defines work that runs later"]);
    assert_eq!(edited("play/all.yaml", "hosts: all\ntasks: [a.md]\n"), [""; 0]);
}

#[test]
fn scripts_that_only_ci_or_a_git_hook_runs_are_protected() {
    let files = [
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: ./ci/run.sh --fast\n      - run: |\n          bash scripts/lint.sh\n",
        ),
        (".gitlab-ci.yml", "test:\n  script:\n    - sh tools/check.sh\n"),
        (
            ".pre-commit-config.yaml",
            "repos:\n- repo: local\n  hooks:\n  - id: a\n    entry: ./hack/format.sh README.md\n    files: ^(NEWS.txt|README.md)$\n",
        ),
        (".husky/pre-commit", "./scripts/hook.sh\n"),
        ("lefthook.yml", "pre-push:\n  commands:\n    a: { run: python3 -m qa.hook }\n"),
        (
            ".pre-commit-config.yml",
            "repos: [{ repo: local, hooks: [{ id: l, entry: qa/lint.py, args: [-c, src/set.py], language: script }] }]\nexclude: |\n  (?x)^(\n    src/gen.py|\n  )\n",
        ),
        ("web/.husky/pre-push", "node web/hook.mjs\n"),
        ("README.md", ""),
        ("NEWS.txt", ""),
        ("qa/hook.py", ""),
        ("qa/lint.py", ""),
        ("src/set.py", ""),
        ("src/gen.py", ""),
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
    assert_eq!(free, ["README.md", "NEWS.txt", "src/set.py", "src/gen.py", "scripts/release.sh"]);
}

#[test]
fn files_of_hook_managers_and_what_they_run_are_protected() {
    let files = [
        ("lefthook.yml", "source_dir: tools/hooks\nextends:\n  - conf/more.yml\n"),
        (".overcommit.yml", "plugin_directory: ov\nPreCommit:\n  Mine: { command: ['sh', 'dev/over.sh'] }\n"),
        (
            "package.json",
            r#"{"gitHooks":{"pre-commit":"node dev/node.js"},"config":{"ghooks":{"pre-push":"sh dev/g.sh"}},"main":"dev/free.js"}"#,
        ),
        (
            "prek.toml",
            "[[repos]]\nrepo = \"local\"\nfiles = \"src/app.sh\"\nhooks = [{ id = \"f\", entry = \"dev/fmt.sh\" }]\n",
        ),
        ("captainhook.json", "{\"pre-push\": {\"actions\": [{\"action\": \"dev/captain.sh\"}]}}"),
        (".rusty-hook.toml", "[hooks]\npre-commit = \"cd dev && ./rusty.sh\"\n"),
        (".husky/pre-push", "cd \"$(git rev-parse --show-toplevel)/dev\"\nsh husky.sh\n"),
        ("tools/hooks/pre-push/audit.sh", "sh dev/audit.sh\n"),
        ("conf/more.yml", "pre-push:\n  commands:\n    a: { run: sh dev/more.sh }\n"),
        ("ov/pre_commit/mine.rb", ""),
        ("dev/over.sh", ""),
        ("dev/node.js", ""),
        ("dev/g.sh", ""),
        ("dev/fmt.sh", ""),
        ("dev/captain.sh", ""),
        ("dev/rusty.sh", ""),
        ("dev/husky.sh", ""),
        ("dev/audit.sh", ""),
        ("dev/more.sh", ""),
        ("dev/free.js", ""),
        ("dev/free.sh", ""),
        ("src/app.sh", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    let free: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_none()).collect();
    assert_eq!(free, ["package.json", "dev/free.js", "dev/free.sh", "src/app.sh"]);
    for path in ["tools/hooks/pre-commit/new.sh", "ov/post_commit/new.rb", "husky.config.js", ".pre-commit-hooks.yaml"]
    {
        assert_eq!(policy.rule(path).map(|rule| rule.why.as_str()), Some(ecosystems::HOOKS), "{path}");
    }
}

#[test]
fn scripts_behind_a_target_that_only_ci_makes_are_protected() {
    let files = [
        (
            ".github/workflows/ci.yml",
            "jobs:\n  a:\n    steps:\n      - run: apt-get install -y make gcc; make --version; command -v make; echo now make it\n      \
             - run: CC=gcc make -j 2 ci\n      - run: make -C sub\n      - run: cd web && make more\n      - run: make none\n",
        ),
        (
            "Makefile",
            "include mk/ci.mk\nRUN = ci\nall: release\nci: lint\n\t$(RUN)/run.sh\n\tpython3 qa/all.py && python3 app.py\n\t$(MAKE) unit\n\
             release:\n\tsh scripts/release.sh\nunit:\n\t@sh ./scripts/unit.sh\n",
        ),
        ("mk/ci.mk", "lint:\n\tsh \"$(CURDIR)/scripts/lint.sh\"\n"),
        ("sub/Makefile", "first:\n\tsh own.sh\nother:\n\tsh other.sh\n"),
        ("web/GNUmakefile", "more:\n\t. $$PWD/scripts/web.sh\n"),
        ("web/Makefile", "more:\n\tsh scripts/old.sh\n"),
        ("app.py", ""),
        ("scripts/release.sh", ""),
        ("sub/other.sh", ""),
        ("web/scripts/old.sh", ""),
        ("ci/run.sh", ""),
        ("qa/all.py", "import unittest\n"),
        ("scripts/lint.sh", ""),
        ("scripts/unit.sh", ""),
        ("sub/own.sh", ""),
        ("web/scripts/web.sh", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    for (path, _) in &files[6..10] {
        assert_eq!(policy.rule(path), None, "{path}");
    }
    for (path, _) in &files[10..] {
        assert!(policy.rule(path).is_some_and(|rule| rule.why == ci::RUNS), "{path}");
    }
}

#[test]
fn scripts_that_ci_scripts_run_are_protected_and_the_product_they_run_is_not() {
    let files = [
        (".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: ci/run.sh\n      - run: make unit\n"),
        (
            "ci/run.sh",
            "set -e\n. lib/total.sh\nsh dev/lint.sh\npython3 qa/all.py\nnode dist/index.js --selftest\n\
             ./build/app --selftest\npython3 -m app\nsh hack/none.sh\nsh install.sh\n",
        ),
        ("Makefile", "unit:\n\tsh dev/unit.sh\n"),
        ("dist/index.js", "import assert from 'assert';\n"),
        ("build/app", ""),
        ("app/__main__.py", ""),
        ("src/add.py", ""),
        ("dev/lint.sh", "bash tools/deep.sh\npython3 src/add.py 1 2\n"),
        ("tools/deep.sh", "./tools/last.sh\n"),
        ("tools/last.sh", ""),
        ("dev/unit.sh", "./dev/units/first.sh\n"),
        ("dev/units/first.sh", ""),
        ("qa/all.py", "import unittest\n"),
        ("lib/total.sh", ""),
        ("install.sh", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    for (path, _) in &files[3..7] {
        assert_eq!(policy.rule(path), None, "{path}");
        assert_eq!(policy.notes(&[change(path, PathChangeKind::Modified)]), [""; 0], "{path}");
    }
    for (path, _) in &files[7..13] {
        assert!(policy.rule(path).is_some_and(|rule| rule.why == ci::RUNS), "{path}");
    }
    for (path, _) in &files[13..] {
        assert_eq!(policy.rule(path), None, "{path}");
        let notes = policy.notes(&[change(path, PathChangeKind::Modified)]);
        assert_eq!(notes, [format!("{path} changed: the continuous integration runs it")]);
    }
}

#[test]
fn scripts_of_the_gate_are_followed_however_deep_they_are() {
    let files = [
        ("check.sh", "sh dev/a.sh\n"),
        ("dev/a.sh", "sh dev/b.sh\n. lib/total.sh\n"),
        ("dev/b.sh", "sh dev/a.sh; ./dev/c.sh; ./src/app.sh --version\n"),
        ("src/app.sh", ""),
        ("dev/c.sh", ""),
        ("lib/total.sh", "sh dev/free.sh\n"),
        ("dev/free.sh", ""),
    ];
    let lane = crate::lane::parse("verify", "verify.yaml", "steps: [{ run: sh check.sh }]\n").unwrap();
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[lane], &[], &[], &mut read).unwrap();
    let free: Vec<&str> = files.map(|(path, _)| path).into_iter().filter(|path| policy.rule(path).is_none()).collect();
    assert_eq!(free, ["src/app.sh", "lib/total.sh", "dev/free.sh"]);
}

#[test]
fn a_check_that_a_script_names_by_its_own_folder_is_protected() {
    let run = "#!/bin/sh\n\"$(dirname \"$0\")/a.sh\"\nhere=$(cd \"$(dirname \"$0\")\" && pwd)\n\"$here/b.sh\"\n\
         sh \"$here/c.sh\"\nroot=$here/..\n\"$root/bin/app\" --selftest\nsh \"$root/deploy.sh\" --dry\n";
    let files = [
        ("ci/run.sh", run),
        ("ci/a.sh", ""),
        ("ci/b.sh", "\"${0%/*}/../tools/d.sh\"\n"),
        ("ci/c.sh", ""),
        ("tools/d.sh", ""),
        ("bin/app", "#!/bin/sh\n"),
        ("deploy.sh", ""),
    ];
    let workflow = "on: [push]\njobs:\n  t:\n    steps:\n      - run: ci/run.sh\n";
    let lane = crate::lane::parse("verify", "verify.yaml", "steps: [{ run: ci/run.sh }]\n").unwrap();
    for (lanes, workflow) in [(vec![lane], "on: [push]\n"), (vec![], workflow)] {
        let all = [&files[..], &[(".github/workflows/ci.yml", workflow)]].concat();
        let mut read = |path: &str| all.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
        let policy =
            Policy::freeze(all.iter().map(|(path, _)| (*path).to_owned()), &lanes, &[], &[], &mut read).unwrap();
        let free: Vec<&str> = files.iter().map(|(path, _)| *path).filter(|path| policy.rule(path).is_none()).collect();
        assert_eq!(free, ["bin/app", "deploy.sh"], "{workflow}");
    }
}

#[test]
fn a_source_among_tests_that_a_step_runs_is_a_check_if_it_asserts_something() {
    let files = [
        ("calc.py", "def add(a, b):\n    return a + b\n"),
        ("unit/one.py", "import calc\nassert calc.add(1, 1) == 2\n"),
        ("unit/two.py", "import calc\nprint(calc.add(1, 1))\n"),
    ];
    let step = "steps: [{ run: python3 unit/one.py && python3 unit/two.py }]\n";
    let lane = crate::lane::parse("verify", "verify.yaml", step).unwrap();
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[lane], &[], &[], &mut read).unwrap();
    assert_eq!(files.map(|(path, _)| policy.rule(path).is_some()), [false, true, false]);
}

#[test]
fn a_library_that_shell_tests_read_is_the_work_with_a_note() {
    let files = [
        ("t/up.t", "#!/bin/bash\nDIR=$(cd \"$(dirname \"$0\")/..\" && pwd)\n. \"$DIR/functions.bash\"\necho 1..1\n"),
        ("functions.bash", ""),
        ("other.bash", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    let notes = policy.notes(&["functions.bash", "other.bash"].map(|path| change(path, PathChangeKind::Modified)));
    assert_eq!(notes, ["functions.bash changed: tests of the base name it"]);
}

#[test]
fn a_lone_make_is_a_command_in_a_script_and_a_package_in_another_list() {
    let files = |list: &str| {
        let ci = format!("test:\n  stage: test\n  {list}:\n    - make\n    - echo done\n");
        [(".gitlab-ci.yml", ci), ("Makefile", "all:\n\tsh dev/all.sh\n".into()), ("dev/all.sh", String::new())]
    };
    for (list, is_run) in [("script", true), ("before_script", true), ("packages", false)] {
        let files = files(list);
        let find = |path: &str| files.iter().find(|(own, _)| *own == path);
        let mut read = |path: &str| find(path).map(|(_, text)| text.as_bytes().to_vec());
        let paths = files.iter().map(|(path, _)| (*path).to_owned());
        let policy = Policy::freeze(paths, &[], &[], &[], &mut read).unwrap();
        assert_eq!(policy.rule("dev/all.sh").is_some(), is_run, "{list}");
    }
}

#[test]
fn files_that_only_ci_names_are_notes() {
    let files = [
        (
            ".github/workflows/ci.yml",
            "defaults: { run: { working-directory: deep } }\njobs:\n  a:\n    steps:\n      - uses: ./actions/foo\n      - run: |\n          \
             npm ci && node web/ci.mjs\n          python qa/verify.py && python3 qa/all.py\n          cd qa\n          sh in.sh\n          docker build -f Dockerfile.ci .\n      - run: ./d.sh\n      - run: ./t.ps1\n        shell: pwsh\n        \
             working-directory: sub/w\n",
        ),
        (".gitlab-ci.yml", "include: [{ local: /infra/pipe.yml }]\nt: { script: [\"node web/more.mjs\"] }\n"),
        ("infra/pipe.yml", "t:\n  script:\n    - python3 web/deep.py\n"),
        ("actions/foo/action.yml", "runs:\n  using: node20\n  main: dist/index.js\n  post: ./post.js\n"),
        ("actions/foo/dist/index.js", ""),
        ("actions/foo/post.js", ""),
        ("Dockerfile.ci", ""),
        ("web/more.mjs", ""),
        ("web/deep.py", ""),
        ("web/app.mjs", ""),
        ("web/ci.mjs", ""),
        ("qa/verify.py", ""),
        ("qa/all.py", "import unittest\n"),
        ("qa/in.sh", ""),
        ("deep/d.sh", ""),
        ("sub/w/t.ps1", ""),
    ];
    let mut read = |path: &str| files.iter().find(|(own, _)| *own == path).map(|(_, text)| text.as_bytes().to_vec());
    let policy = Policy::freeze(files.map(|(path, _)| path.to_owned()), &[], &[], &[], &mut read).unwrap();
    for path in ["deep/d.sh", "sub/w/t.ps1", "web/ci.mjs", "qa/verify.py", "qa/all.py", "qa/in.sh"] {
        assert!(policy.rule(path).is_some_and(|rule| rule.why == ci::RUNS), "{path}");
    }
    for (path, _) in &files[2..9] {
        assert_eq!(policy.rule(path), None, "{path}");
        let notes = policy.notes(&[change(path, PathChangeKind::Modified)]);
        assert_eq!(notes, [format!("{path} changed: the continuous integration runs it")], "{path}");
    }
    assert_eq!(policy.notes(&[change("web/app.mjs", PathChangeKind::Modified)]), [""; 0]);
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
        "web/.vscode/settings.json",
        "AGENTS.override.md",
        "sub/QWEN.md",
        ".qwen/settings.json",
        ".kilocode/rules/a.md",
        ".rules",
        "mcp.json",
        ".aider.conf.yml",
        "docs/a.prompt.md",
        ".opencode/agent/a.md",
        "opencode.json",
        ".run/all.run.xml",
        "app.sublime-project",
        ".gdbinit",
    ] {
        assert_eq!(POLICY.findings(&[change(path, PathChangeKind::Added)], |_, _| None), [], "{path}");
        assert_eq!(POLICY.notes(&[change(path, PathChangeKind::Added)]).len(), 1, "{path}");
    }
    assert_eq!(POLICY.notes(&[change("docs/AGENTS.txt", PathChangeKind::Added)]), [""; 0]);
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
