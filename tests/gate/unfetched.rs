//! A dependency that the work adds and that no room has: in one line, with what to do, before what its tool says of it.

use crate::support::{Fledge, Model, say, shell};
use serde_json::json;

#[test]
fn a_dependency_that_no_room_has_is_told_to_the_model_and_in_the_report() {
    let manifest = "[package]\nname = \"sums\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n";
    let lane = "steps: [{ name: resolve, run: cargo metadata --offline --format-version 1 >/dev/null }]";
    let add = "printf 'zz-left-pad = \"1\"\\n' >>Cargo.toml; echo x >done";
    let undo = "sed -i '/zz-left-pad/d' Cargo.toml";
    let model = Model::new([shell(add), say("Done."), shell(undo), say("Done.")]);
    // The toolchain that builds this; what `rustup` would choose stands in a home that the program does not have here.
    let tools = std::path::Path::new(env!("CARGO")).parent().unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let place = Fledge::simple(&model).env("PATH", &path);
    let ended = place.lane("verify", lane).file("Cargo.toml", manifest).file("src/lib.rs", "").run();
    let report = ended.must_be(0, "verified");
    let line = "not in the room of the checks, which fetches nothing: `zz-left-pad` (new in Cargo.toml); do without, or somebody adds it \
                to the project and installs it before the run";
    let heard = model.asked()[2].newest();
    assert!(heard.contains(line), "{heard}");
    let verdict = report["attempts"][0]["verdict"].to_string();
    assert!(verdict.contains(line), "{verdict}");
}

#[test]
fn checks_that_cannot_pass_on_the_base_end_the_run_with_what_mends_them() {
    let model = Model::new([shell("touch done"), say("Done.")]);
    let lane = "steps: [{ name: lint, run: 'true && no-such-linter .' }]";
    let ended = Fledge::simple(&model).lane("verify", lane).run();
    let report = ended.must_be(5, "gate_errored");
    let said = "step `lint` of lane `verify` cannot run there: there is no program `no-such-linter`; install it";
    assert!(report["message"].as_str().unwrap().contains(said), "{}", ended.story());
    // No attempt is counted, and the model is not told of it.
    assert_eq!(report["attempts"], json!([]), "{}", ended.story());
    assert!(model.asked().iter().all(|asked| !asked.newest().contains("no-such-linter: ")), "{}", ended.story());
    // `fledge fix` asks no model at all.
    let model = Model::new([say("never asked")]);
    let ended = Fledge::new().anthropic(&model).lane("verify", lane).args(&["fix"]).run();
    ended.must_be(5, "gate_errored");
    assert_eq!(model.asked().len(), 0, "{}", ended.story());
}
