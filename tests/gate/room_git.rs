//! Git in a clean room: a repository like the user's, with the judged tree as its newest commit. It
//! holds nothing that is not reachable from the base.

use crate::support::{Ended, Fledge, Model, git, say, shell};
use std::fs;

/// All kinds of sandbox that a test can choose.
const SANDBOXES: [&str; 2] = ["--sandbox=auto", "--sandbox=off"];

/// A workspace whose lane `verify` is the script `check.sh`.
fn scene(script: &str) -> Fledge {
    let lane = "steps: [{ name: test, run: sh -eu check.sh }]\n";
    let scene = Fledge::new().lane("verify", lane).file("check.sh", script).file("src/a", "1\n");
    scene.args(&["lanes", "run", "verify", "--clean"])
}

/// Commits everything.
fn commit(scene: Fledge, message: &str) -> Fledge {
    scene.git(&["add", "-A"]).git(&["commit", "-q", "--allow-empty", "-m", message])
}

/// Three commits on `main`: the first with an annotated tag, the second with a lightweight one.
fn tagged(scene: Fledge) -> Fledge {
    let scene = scene.committed().git(&["tag", "-a", "v1.0", "-m", "first release"]);
    let scene = commit(scene.file("src/b", "2\n"), "second").git(&["tag", "v1.1-light"]);
    commit(scene.file("src/c", "3\n"), "third")
}

/// Judges the scene in each sandbox and returns the last result.
#[track_caller]
fn must_pass(scene: Fledge) -> Ended {
    let ended = scene.arg(SANDBOXES[0]).run();
    ended.must_exit(0);
    let ended = ended.again(&["lanes", "run", "verify", "--clean", SANDBOXES[1]]);
    let ended = ended.run();
    ended.must_exit(0);
    ended
}

/// Returns a script that prints only the checks that fail.
fn expecting(checks: &[(&str, &str)]) -> String {
    let check = |(command, expected): &(&str, &str)| {
        format!(
            "is=$({command})\n[ \"$is\" = '{expected}' ] || {{ echo \"{}: $is\"; exit 1; }}\n",
            command.replace('"', "")
        )
    };
    checks.iter().map(check).collect()
}

#[test]
fn describe_names_the_base_as_it_does_by_hand_and_nothing_differs_from_the_head() {
    long_test!();
    let scene = tagged(scene(""));
    let place = scene.workspace();
    let by_hand = |args: &[&str]| git(&place, args);
    let script = expecting(&[
        ("git describe", &by_hand(&["describe"])),
        ("git describe --tags --long", &by_hand(&["describe", "--tags", "--long"])),
        ("git describe --tags --dirty", &by_hand(&["describe", "--tags"])),
        ("git rev-parse HEAD", &by_hand(&["rev-parse", "HEAD"])),
        ("git symbolic-ref HEAD", "refs/heads/main"),
        ("git rev-list --count HEAD", "3"),
        ("git cat-file -t v1.0", "tag"),
        ("git show HEAD~1:src/b", "2"),
        ("git status --porcelain", ""),
        ("git ls-files src", "src/a\nsrc/b\nsrc/c"),
        ("git rev-parse --is-inside-work-tree", "true"),
        ("git fsck 2>&1", ""),
    ]);
    must_pass(scene.file("check.sh", script + "git diff --exit-code\ngit diff --cached --exit-code\n"));
}

#[test]
fn the_judged_tree_is_one_commit_on_top_of_the_base() {
    long_test!();
    let script = "git describe --tags | grep -q '^v1.1-light-2-g' && git diff --exit-code && test -z \"$(git status --porcelain)\" && \
        test \"$(git diff --name-only HEAD~1)\" = done && test \"$(git rev-parse HEAD~1)\" = \"$BASE\"";
    let lane = format!("steps: [{{ name: test, run: '{}' }}]\n", script.replace('\'', "''"));
    for sandbox in SANDBOXES {
        let model = Model::new([shell("echo x >done"), say("Done."), say("Done.")]);
        let scene = tagged(Fledge::simple(&model).lane("verify", &lane));
        let base = git(&scene.workspace(), &["rev-parse", "HEAD"]);
        let ended = scene.env("BASE", &base).arg(sandbox).arg("--max-retries=0").run();
        ended.must_be(0, "verified");
    }
}

#[test]
fn a_step_commits_branches_and_stashes_and_nothing_of_that_stays() {
    let script = "echo more >>src/a\ngit stash\ngit stash pop\ngit checkout -q -b topic\ngit commit -qam 'From a step'\ngit tag v9\ngit gc -q\n\
        git describe --tags | grep -qx v9\ngit log -1 --format=%an | grep -q .\ngit checkout -q main\n";
    let ended = must_pass(tagged(scene(script)));
    assert_eq!(ended.git(&["tag"]), "v1.0\nv1.1-light");
    assert_eq!(ended.git(&["branch", "--format=%(refname)"]), "refs/heads/main");
}

#[test]
fn a_detached_head_stays_detached() {
    let scene = tagged(scene(&expecting(&[
        ("git rev-parse --abbrev-ref HEAD", "HEAD"),
        ("git describe --tags", "v1.1-light"),
        ("git status --porcelain", ""),
    ])));
    must_pass(scene.git(&["checkout", "-q", "--detach", "v1.1-light"]));
}

#[test]
fn a_branch_without_a_commit_gets_its_first_one() {
    let script = expecting(&[
        ("git rev-list --count HEAD", "1"),
        ("git symbolic-ref HEAD", "refs/heads/trunk"),
        ("git status --porcelain", ""),
        ("git tag", ""),
    ]);
    must_pass(scene(&script).git(&["init", "-q", "-b", "trunk"]));
}

#[test]
fn a_workspace_without_a_repository_has_none_in_its_rooms() {
    must_pass(scene("test ! -e .git"));
}

#[test]
fn rooms_of_a_subfolder_and_of_a_linked_worktree_have_the_git_history() {
    long_test!();
    let script = expecting(&[
        ("git describe --tags", "v2"),
        ("git ls-files --error-unmatch src/a", "src/a"),
        ("git status --porcelain", ""),
    ]);
    let below = scene(&script);
    let top = below.workspace();
    let top = top.parent().unwrap();
    fs::write(top.join(".gitignore"), "home\nstate\nlinked\n").unwrap();
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "first"], &["tag", "v2"]] {
        git(top, args);
    }
    must_pass(below);

    let linked = scene(&script);
    let (place, main) = (linked.workspace(), linked.workspace().with_file_name("main"));
    fs::rename(&place, &main).unwrap();
    for args in [&["init", "-q", "-b", "main"][..], &["add", "-A"], &["commit", "-qm", "first"], &["tag", "v2"]] {
        git(&main, args);
    }
    git(&main, &["worktree", "add", "-q", "-b", "side", place.to_str().unwrap()]);
    must_pass(linked);
}

#[test]
fn what_is_not_committed_is_in_the_head_and_the_name_of_the_base_stays() {
    let scene = tagged(scene(""));
    let described = git(&scene.workspace(), &["describe", "--tags"]);
    let script = expecting(&[
        ("git describe --tags --dirty", &described),
        ("git status --porcelain", ""),
        ("git show HEAD:src/new", "new"),
        ("git show HEAD:src/a", "changed"),
        ("git log --format=%s -1 HEAD", "third"),
    ]);
    must_pass(scene.file("src/new", "new\n").file("src/a", "changed\n").file("check.sh", script));
}

#[test]
fn shallow_clones_and_borrowed_objects_are_described_as_by_hand() {
    long_test!();
    let source = tagged(scene(""));
    let from = source.workspace();
    for kind in [&["--depth=2"][..], &["--shared"], &["--depth=1"]] {
        let clone = scene("");
        let place = clone.workspace();
        fs::remove_dir_all(&place).unwrap();
        let url = format!("file://{}", from.display());
        let url = if kind == ["--shared"] { from.to_str().unwrap() } else { &url };
        git(from.parent().unwrap(), &[&["clone", "-q"], kind, &[url, place.to_str().unwrap()]].concat());
        let script = expecting(&[
            ("git describe --tags --always", &git(&place, &["describe", "--tags", "--always"])),
            ("git rev-list --count HEAD", &git(&place, &["rev-list", "--count", "HEAD"])),
            ("git rev-parse --is-shallow-repository", &git(&place, &["rev-parse", "--is-shallow-repository"])),
            ("git rev-parse --abbrev-ref @{u}", "origin/main"),
            ("git status --porcelain", ""),
        ]);
        must_pass(clone.file("check.sh", script));
    }
}

#[test]
fn a_repository_of_sha256_objects_works() {
    let script = expecting(&[
        ("git rev-parse --show-object-format", "sha256"),
        ("git describe --tags", "v1"),
        ("git status --porcelain", ""),
    ]);
    let scene = scene(&script).git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    must_pass(commit(scene, "first").git(&["tag", "v1"]));
}

#[test]
fn the_remote_leads_nowhere_and_no_setting_of_the_user_comes_along() {
    let scene = tagged(scene("").file(".gitattributes", "*.txt filter=evil\n").file("a.txt", "a\r\n"));
    let base = git(&scene.workspace(), &["rev-parse", "HEAD"]);
    let script = expecting(&[
        ("git remote get-url origin", "https://invalid.invalid/owner/name.git"),
        ("git config --get alias.mine || true", ""),
        ("git config --get core.hooksPath || true", ""),
        ("git config --get filter.evil.clean || true", ""),
        ("ls .git/hooks", ""),
        ("git rev-parse --verify -q origin/main", &base),
    ]);
    let scene = scene.git(&["remote", "add", "origin", "https://me:secret@example.org/owner/name"]);
    let scene = scene.git(&["update-ref", "refs/remotes/origin/main", &base]).git(&["config", "alias.mine", "log"]);
    let scene = scene.git(&["config", "core.hooksPath", "/tmp/hooks"]).git(&["config", "filter.evil.clean", "false"]);
    must_pass(scene.file("check.sh", script));
}

#[test]
fn nothing_of_other_branches_is_in_a_room() {
    let scene = tagged(scene(""));
    let scene = commit(scene.git(&["checkout", "-q", "-b", "other"]).file("secret", "s3cret\n"), "secret")
        .git(&["tag", "of-other"]);
    let scene = scene.git(&["update-ref", "refs/fledge/kept", "other"]);
    let hidden = git(&scene.workspace(), &["rev-parse", "other:secret", "other", "other^{tree}"]);
    let scene = scene.git(&["checkout", "-q", "main"]);
    let mut script = expecting(&[(
        "git for-each-ref --format=\"%(refname)\"",
        "refs/heads/main\nrefs/tags/v1.0\nrefs/tags/v1.1-light",
    )]);
    for object in hidden.lines() {
        script += &format!("if git cat-file -e {object} 2>/dev/null; then echo {object} is there; exit 1; fi\n");
    }
    must_pass(commit(scene.file("check.sh", script), "check"));
}

#[test]
fn what_an_earlier_base_had_beside_its_commits_is_not_in_the_rooms_of_a_later_one() {
    // The brackets keep the search from finding the script itself.
    let finds = |text: &str| format!("git cat-file --batch-all-objects --batch | grep -aq '{text}'");
    let scene = tagged(scene(&finds("s3cr[e]t in the tree"))).file("draft", "s3cret in the tree\n");
    let first = scene.run();
    first.must_exit(0);
    fs::remove_file(first.path("draft")).unwrap();
    let later = first.again(&["lanes", "run", "verify", "--clean"]);
    let (history, draft) = (finds("first rel[e]ase"), finds("s3cr[e]t in the tree"));
    let script = format!("{history}\nif {draft}; then exit 1; fi\ngit describe --tags\n");
    commit(later.file("check.sh", script), "fourth").run().must_exit(0);
}

#[test]
fn a_lane_that_writes_is_settled_whatever_it_did_to_the_repository_of_its_room() {
    long_test!();
    let poison = "git config core.fsmonitor 'touch PWNED; false'; git config core.worktree /; echo '* filter=evil' >.git/info/attributes; \
        git config filter.evil.clean 'touch PWNED; cat'; mkdir -p .git/hooks; printf '#!/bin/sh\\ntouch PWNED\\n' >.git/hooks/post-index-change; \
        chmod +x .git/hooks/*; echo formatted >src/a";
    for poison in [
        poison,
        "rm -rf .git; echo formatted >src/a",
        "rm -rf .git; echo gitdir: /nowhere >.git; echo formatted >src/a",
    ] {
        let model = Model::new([shell("echo x >done"), say("Done."), say("Done.")]);
        let lane = format!(
            "writes: true\nsteps: [{{ name: format, run: \"{}\" }}]\n",
            poison.replace('\\', "\\\\").replace('"', "\\\"")
        );
        let scene = tagged(Fledge::simple(&model).lane("verify", &lane).file("src/a", "1\n"));
        let ended = scene.arg("--max-retries=0").run();
        ended.must_be(0, "verified");
        assert_eq!(ended.file("src/a").as_deref(), Some("formatted\n"), "{}", ended.story());
        assert!(!ended.path("PWNED").exists() && ended.path(".git/HEAD").is_file());
    }
}

#[test]
fn what_a_step_writes_to_the_repository_of_its_room_is_nothing_protected() {
    let script = "git config user.name x\nmkdir -p .git/lanes\ntouch .git/lanes/verify.yaml .git/conftest.py .git/new\ngit status\n";
    must_pass(tagged(scene(script).file("fledge.yaml", "protect: ['**']\n")));
}

#[test]
fn the_room_of_a_planted_failure_is_as_clean_as_any_other() {
    long_test!();
    let lane = "canary: { file: cases/planted, text: '{mark}', run: test }\nsteps:\n  - { name: clean, run: 'git status --porcelain >status; git diff --exit-code HEAD' }\n  \
        - { name: test, run: 'test \"$(git status --porcelain)\" = \"?? status\" && ! cat cases/planted 2>&1 && test -f done' }\n";
    let model = Model::new([shell("echo x >done"), say("Done."), say("Done.")]);
    let scene = tagged(Fledge::simple(&model).lane("verify", lane).file("cases/one", "1\n"));
    let report = scene.arg("--max-retries=0").run().must_be(0, "verified");
    assert_eq!(report["attempts"][0]["verdict"]["proof"]["canaries"], 1, "{report}");
}

#[test]
fn a_damaged_repository_gives_the_judged_tree_alone() {
    let scene = tagged(scene(&expecting(&[
        ("git rev-list --count HEAD", "1"),
        ("git status --porcelain", ""),
        ("git symbolic-ref HEAD", "refs/heads/main"),
    ])));
    let objects = git(&scene.workspace(), &["rev-parse", "HEAD~1", "HEAD~2"]);
    for object in objects.lines() {
        let (folder, name) = object.split_at(2);
        fs::remove_file(scene.workspace().join(".git/objects").join(folder).join(name)).unwrap();
    }
    must_pass(scene);
}

#[test]
fn hold_outs_are_not_among_the_objects_of_a_room() {
    long_test!();
    let finds = "git cat-file --batch-all-objects --batch | grep -aq s3cr[e]t-check";
    let lane = format!("steps: [{{ name: test, run: 'if {finds}; then exit 1; fi; test -f done' }}]\n");
    let model = Model::new([shell("echo x >done"), say("Done."), say("Done.")]);
    let scene = tagged(Fledge::simple(&model).lane("verify", &lane));
    let held = scene.workspace().with_file_name("held");
    fs::create_dir(&held).unwrap();
    let hidden = "steps: [{ name: hidden, run: 'git describe --tags && test -f done # s3cret-check' }]\n";
    fs::write(held.join("hidden.yaml"), hidden).unwrap();
    let scene = scene.arg("--max-retries=0").arg("--holdout").arg(held.to_str().unwrap());
    scene.run().must_be(0, "verified");
}
