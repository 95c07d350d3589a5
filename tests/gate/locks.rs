//! Lock files that the work changes: fledge restores moved entries and notes other changes.

use crate::support::{Fledge, Model, say, shell};

const LOCK: &str = r#"version = 4

[[package]]
name = "half"
version = "1.0.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "aa"
"#;

#[test]
fn a_moved_entry_is_put_back_and_named_with_the_flag_that_allows_it() {
    long_test!();
    let attack = "sed -i 's,rust-lang/crates,evil/crates,; /checksum/d' Cargo.lock; echo x > done";
    let place = |model: &Model| Fledge::simple(model).file("Cargo.lock", LOCK);
    let model = Model::new([shell(attack), say("Done."), say("Done.")]);
    let ended = place(&model).run();
    let report = ended.must_be(0, "verified");
    assert_eq!(ended.file("Cargo.lock").as_deref(), Some(LOCK));
    let what = "`half 1.0.0`: it came from crates.io and now comes from github.com/evil/crates.io-index";
    assert!(report["protected"].to_string().contains(what), "{report}");
    assert!(model.asked()[2].newest().contains(what), "{}", model.asked()[2].newest());
    assert!(ended.stderr.contains("--allow-edit Cargo.lock"), "{}", ended.story());
    // The flag allows this change.
    let model = Model::new([shell(attack), say("Done.")]);
    let ended = place(&model).arg("--allow-edit=Cargo.lock").run();
    let report = ended.must_be(0, "verified");
    assert!(ended.file("Cargo.lock").unwrap().contains("evil"), "{}", ended.story());
    assert!(report["warnings"].to_string().contains("allow_edit: Cargo.lock changed"), "{report}");
}

#[test]
fn a_changed_lock_file_and_a_setup_with_network_are_noted() {
    long_test!();
    let lane = "setup: [{ run: 'true' }]\nsteps: [{ name: check, run: test -e done }]";
    let model = Model::new([shell("sed -i 's/1.0.0/1.0.1/; s/aa/bb/' Cargo.lock; echo x > done"), say("Done.")]);
    let ended = Fledge::simple(&model).lane("verify", lane).file("Cargo.lock", LOCK).run();
    let warnings = ended.must_be(0, "verified")["warnings"].to_string();
    for note in ["Cargo.lock: 1 updated (half 1.0.0 → 1.0.1)", "the setup of lane `verify` ran with network"] {
        assert!(warnings.contains(note) && ended.stderr.contains(note), "{note}: {}", ended.story());
    }
}
