//! Checks that cannot pass because something in their environment is missing.

use crate::support::{Fledge, Model, say, shell};
use serde_json::json;

#[test]
fn checks_that_cannot_pass_on_the_base_end_the_run_with_what_mends_them() {
    long_test!();
    let model = Model::new([shell("touch done"), say("Done.")]);
    let lane = "steps: [{ name: lint, run: 'true && no-such-linter .' }]";
    let ended = Fledge::simple(&model).lane("verify", lane).run();
    let report = ended.must_be(5, "gate_errored");
    let said = "step `lint` of lane `verify` cannot run: there is no program `no-such-linter`; install it";
    assert!(report["message"].as_str().unwrap().contains(said), "{}", ended.story());
    // No attempt is counted, and the model does not hear of the failure.
    assert_eq!(report["attempts"], json!([]), "{}", ended.story());
    assert!(model.asked().iter().all(|asked| !asked.newest().contains("no-such-linter: ")), "{}", ended.story());
    // `fledge fix` calls no model at all.
    let model = Model::new([say("never asked")]);
    let ended = Fledge::new().anthropic(&model).lane("verify", lane).args(&["fix"]).run();
    ended.must_be(5, "gate_errored");
    assert_eq!(model.asked().len(), 0, "{}", ended.story());
}
