//! Tests of the shipped example: it works repeatedly and leaves no trace in the checkout.

use std::path::Path;
use std::process::Command;

#[test]
fn the_example_is_verified_twice_in_a_row_and_the_checkout_stays_as_it_was() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let example = root.join("examples/fix-bug");
    let before = listing(&example);
    for _ in 0..2 {
        let state = crate::support::temp_dir();
        let run = Command::new("sh")
            .arg(example.join("run.sh"))
            .args(["--report", state.path().join("report.json").to_str().unwrap()])
            .current_dir(state.path())
            .env("FLEDGE", env!("CARGO_BIN_EXE_fledge"))
            .env("FLEDGE_STATE_DIR", state.path())
            .env_remove("CARGO_TARGET_DIR")
            .output()
            .unwrap();
        let said = format!("{}\n{}", String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
        assert!(run.status.success(), "{said}");
        let report = std::fs::read_to_string(state.path().join("report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["reason"], "verified");
        assert_eq!(report["attempts"].as_array().unwrap().len(), 2, "it is sent back once");
        assert!(said.contains("src/lib.rs"), "{said}");
    }
    assert_eq!(listing(&example), before);
}

/// Returns each file with its content.
fn listing(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false => files.push((path.display().to_string(), std::fs::read(&path).unwrap())),
            }
        }
    }
    files.sort();
    files
}
