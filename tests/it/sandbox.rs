//! The sandbox as its users meet it: which one stood is said, and what it costs to do without.

use super::support::{Fledge, Model, say, shell};
use serde_json::json;

fn model() -> Model {
    Model::new([shell("test -e $HOME/diary && echo it was seen; echo x > done"), say("Done.")])
}

/// What the model was told last.
fn told(model: &Model) -> String {
    model.asked().last().unwrap().newest()
}

fn scene(model: &Model) -> Fledge {
    Fledge::simple(model).file("../home/diary", "secret")
}

#[test]
fn the_sandbox_that_stood_is_in_the_report_and_in_the_summary() {
    let model = model();
    let ended = scene(&model).run();
    let report = ended.must_be(0, "verified");
    assert!([json!("bubblewrap"), json!("landlock")].contains(&report["sandbox"]), "{}", ended.story());
    assert!(report["network"].is_null() && ended.stderr.contains("  sandbox  "), "{}", ended.story());
    assert!(!told(&model).contains("was seen\\n"), "{}", told(&model));
}

#[test]
fn without_a_sandbox_and_with_the_network_it_is_said() {
    let (bare, open) = (model(), model());
    let ended = scene(&bare).arg("--sandbox=off").run();
    assert_eq!(ended.must_be(0, "verified")["sandbox"], "off");
    assert!(told(&bare).contains("was seen\\n"), "{}", told(&bare));
    let ended = scene(&open).arg("--network=allow").run();
    assert_eq!(ended.must_be(0, "verified")["network"], true);
    assert!(ended.stderr.contains(", with the network"), "{}", ended.story());
}
