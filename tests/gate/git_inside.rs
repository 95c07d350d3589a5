//! Commands that git would run later outside the sandbox: the agent cannot configure them in any
//! repository of the workspace.

use crate::support::{Fledge, Model, say, shell};

/// A workspace with an ignored inner repository, and one whose git directory is inside the outer
/// one.
fn scene(model: &Model) -> Fledge {
    let scene = Fledge::simple(model).file(".gitignore", "vendor/\n").committed();
    let scene = scene.git(&["init", "-q", "vendor/x"]);
    scene.git(&["init", "-q", "--separate-git-dir=.git/lib", "lib"])
}

const SWAP: &str = "(cd vendor/x; git config core.fsmonitor 'touch PWNED; false'); \
    (cd lib; rm -f .git; git init -q; git config core.fsmonitor 'touch PWNED; false'); echo x >done";

#[test]
fn what_git_runs_in_a_repository_inside_is_not_the_agents_to_say() {
    long_test!();
    for sandbox in ["--sandbox=auto", "--sandbox=off"] {
        let model = Model::new([shell(SWAP), say("Done."), say("Done.")]);
        let scene = scene(&model).arg(sandbox);
        let led = std::fs::read_to_string(scene.workspace().join("lib/.git")).unwrap();
        let ended = scene.run();
        let report = ended.must_be(0, "verified");
        assert_eq!(ended.file("lib/.git"), Some(led), "{sandbox}: {}", ended.story());
        for config in ["vendor/x/.git/config", ".git/lib/config", ".git/config"] {
            assert!(!ended.file(config).unwrap().contains("fsmonitor"), "{sandbox}: {config}: {}", ended.story());
        }
        let findings = report["attempts"][0]["verdict"]["findings"].to_string();
        if sandbox == "--sandbox=off" {
            let told = ["\"vendor/x/.git/config\"", "\"lib/.git\"", "\"lib/.git/config\""];
            assert!(told.iter().all(|path| findings.contains(path)), "{findings}");
        }
    }
}

#[test]
fn what_git_runs_is_put_back_and_told_when_a_run_ends_that_nobody_judges() {
    let model = Model::new([
        shell("git config core.fsmonitor 'touch PWNED; false'; echo x >.git/hooks/pre-commit"),
        say("Done."),
    ]);
    let ended = scene(&model).arg("--no-verify").arg("--sandbox=off").run();
    ended.must_be(0, "skipped");
    for told in [".git/config (changed)", ".git/hooks/pre-commit (added)"] {
        assert!(ended.stderr.contains(told), "{told}: {}", ended.story());
    }
    assert!(!ended.file(".git/config").unwrap().contains("fsmonitor"), "{}", ended.story());
    assert_eq!(ended.file(".git/hooks/pre-commit"), None);
}

#[test]
fn what_was_moved_in_a_repository_that_no_wall_keeps_is_told_and_stays() {
    long_test!();
    let work = "git config user.name a; git config user.email a@localhost; git branch side; git tag v1; echo x >staged; git add staged; echo x >done";
    for sandbox in ["--sandbox=off", "--sandbox=auto"] {
        let model = Model::new([shell(work), say("Done."), say("Done.")]);
        let ended = Fledge::simple(&model).committed().arg(sandbox).run();
        let report = ended.must_be(0, "verified");
        let warnings = report["warnings"].to_string();
        let told = ["refs/heads/side was created", "refs/tags/v1 was created", "the index was changed"];
        let is_kept = report["sandbox"] == "bubblewrap";
        assert!(told.iter().all(|told| warnings.contains(told) != is_kept), "{sandbox}: {warnings}");
        assert_eq!(ended.git(&["tag"]).is_empty(), is_kept, "{sandbox}");
    }
}
