//! Tests of missing requirements: fledge refuses the run with a specific message and exit code
//! before it asks a model.

use crate::support::{Fledge, Model, Need, needs, say, write};

/// A missing requirement.
struct Lack {
    name: &'static str,
    /// A shell script that removes the requirement and then runs its remaining arguments.
    by: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
    code: i32,
    says: &'static [&'static str],
}

const LACKS: &[Lack] = &[
    Lack {
        name: "bubblewrap",
        by: "unshare --user --map-root-user --mount sh -c 'mount --bind /dev/null \"$(command -v bwrap)\" && exec \"$0\" \"$@\"' \"$@\"",
        args: &["--sandbox=required"],
        env: &[],
        code: 5,
        says: &["bubblewrap (`bwrap`) is not installed", "install bubblewrap"],
    },
    Lack {
        name: "user namespaces",
        by: "unshare --user --map-root-user sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && \
             exec setpriv --inh-caps=-all --bounding-set=-all \"$0\" \"$@\"' \"$@\"",
        args: &["--sandbox=required"],
        env: &[],
        code: 5,
        says: &["bubblewrap does not work here", "max_user_namespaces"],
    },
    Lack {
        name: "the helper",
        by: "cp \"$1\" ../gone; exec 9<../gone; rm ../gone; shift; exec /proc/self/fd/9 \"$@\"",
        args: &[],
        env: &[],
        code: 5,
        says: &["cannot build a sandbox without the fledge program"],
    },
    Lack { name: "the lane", by: PLAIN, args: &["--lane=gone"], env: &[], code: 2, says: &["no lane `gone`"] },
    Lack {
        name: "git",
        by: PLAIN,
        args: &["--sandbox=off"],
        env: &[("PATH", "/nowhere")],
        code: 5,
        says: &["cannot run git", "install git"],
    },
    Lack {
        name: "a git that works",
        by: "mkdir ../bin; printf '#!/bin/sh\nexit 3\n' >../bin/git; chmod +x ../bin/git; PATH=$PWD/../bin:$PATH exec \"$@\"",
        args: &[],
        env: &[],
        code: 5,
        says: &["git"],
    },
    Lack {
        name: "a state that can be written",
        by: "mkdir -p \"$FLEDGE_STATE_DIR\"; unshare --user --map-root-user --mount sh -c 'mount --bind \"$FLEDGE_STATE_DIR\" \"$FLEDGE_STATE_DIR\" && \
             mount -o remount,ro,bind \"$FLEDGE_STATE_DIR\" && exec \"$0\" \"$@\"' \"$@\"",
        args: &[],
        env: &[],
        code: 8,
        says: &["Read-only file system"],
    },
    Lack {
        name: "a state folder",
        by: PLAIN,
        args: &[],
        env: &[("FLEDGE_STATE_DIR", "/dev/null/state")],
        code: 8,
        says: &["/dev/null/state"],
    },
    Lack {
        name: "the hold-out folder",
        by: PLAIN,
        args: &["--holdout=../gone"],
        env: &[],
        code: 2,
        says: &["there is no hold-out folder", "gone"],
    },
    Lack {
        name: "the secret of the hold-out",
        by: PLAIN,
        args: &["--holdout=lanes"],
        env: &[],
        code: 2,
        says: &["the hold-out folder", "workspace"],
    },
];

const PLAIN: &str = "exec \"$@\"";

#[test]
fn what_is_missing_ends_a_run_with_its_own_code_and_words_before_a_model_is_asked() {
    long_test!();
    let can_unshare =
        std::process::Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    let can_unshare = can_unshare.is_ok_and(|status| status.success());
    for lack in LACKS {
        if lack.by.contains("unshare") && !can_unshare {
            Need::Sandbox.lacks(&format!("{}: no namespaces can be made", lack.name));
            continue;
        }
        let model = Model::new([say("Done.").always()]);
        let fledge = Fledge::new().lane("verify", &needs("done")).file("done", "").task("Do it.").anthropic(&model);
        let fledge = lack.args.iter().fold(fledge, |fledge, arg| fledge.arg(arg));
        let fledge = lack.env.iter().fold(fledge, |fledge, (name, value)| fledge.env(name, value));
        let ended = fledge.under(&["/bin/sh", "-c", lack.by, "sh"]).run();
        assert_eq!(ended.code, Some(lack.code), "without {}\n{}", lack.name, ended.story());
        for says in lack.says {
            assert!(ended.stderr.contains(says), "without {}: no {says:?} in\n{}", lack.name, ended.stderr);
        }
        assert_eq!(model.count(), 0, "without {}", lack.name);
    }
}

#[test]
fn a_search_path_with_few_programs_does_not_prevent_a_sandbox() {
    if !Need::has_program("bwrap") {
        return;
    }
    let model = Model::new([write("done", ""), say("Done.")]);
    let fledge = Fledge::simple(&model);
    let folder = fledge.workspace().join("../bin");
    std::fs::create_dir(&folder).unwrap();
    for name in ["git", "sh"] {
        let path = std::env::var_os("PATH").unwrap();
        let program = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(program, folder.join(name)).unwrap();
    }
    let path = folder.canonicalize().unwrap().display().to_string();
    fledge.env("PATH", &path).arg("--sandbox=required").run().must_be(0, "verified");
}
