//! Tests of the programs that fledge starts outside of the sandbox: the agent cannot have written
//! them.

use crate::support::{Fledge, Model, say, shell};

#[test]
fn a_program_that_the_agent_puts_in_the_search_path_is_not_started_for_fledge() {
    long_test!();
    // In an activated virtual environment the search path begins in the workspace, in a folder that
    // git ignores.
    let forged = "#!/bin/sh\n: > ../out\nPATH=/usr/local/bin:/usr/bin:/bin\nexec \"${0##*/}\" \"$@\"\n";
    let put = format!(
        "for name in git cp bwrap; do printf '%s' '{forged}' > .venv/bin/$name; chmod +x .venv/bin/$name; done; echo 1 > done"
    );
    for path in ["{}/.venv/bin", "", ".venv/bin"] {
        let model = Model::new([shell(&put), say("Done.")]);
        let fledge = Fledge::simple(&model).file(".gitignore", ".venv/\n").file(".venv/bin/python", "");
        let path = path.replace("{}", &fledge.workspace().to_string_lossy());
        let path = format!("{path}:{}", std::env::var("PATH").unwrap());
        let ended = fledge.env("PATH", &path).args(&["run", "task.md"]).run();
        ended.must_be(0, "verified");
        assert!(!ended.path("../out").exists(), "{}", ended.story());
    }
}
