//! The table of modules that must not be shadowed, compared with the imports of the installed
//! runners.

use crate::support::Need;
use std::process::Command;

/// Modules of single codecs, of sound and images that old libraries use, and of Python's own tests.
#[rustfmt::skip]
const APART: [&str; 14] = [
    "_codecs_cn", "_codecs_hk", "_codecs_iso2022", "_codecs_jp", "_codecs_kr", "_codecs_tw", "_ctypes_test", "_testbuffer", "_testcapi", "aifc", "audioop",
    "chunk", "imghdr", "sndhdr",
];
/// Modules that Python always loads from itself, regardless of the files beside it.
const INSIDE: [&str; 3] = ["_frozen_importlib", "_frozen_importlib_external", "uu"];

#[test]
fn every_module_that_a_runner_of_python_tries_to_import_is_in_the_table() {
    long_test!();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gate/imports.py");
    let told = Command::new("python3").arg(script).output();
    let Some(told) = told.ok().filter(|told| told.status.success()) else {
        return Need::Python.lacks("no `python3` of 3.10 or later");
    };
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/specs/generated/protected.md")).unwrap();
    let names = String::from_utf8(told.stdout).unwrap();
    let is_known = |name: &&str| page.contains(&format!("`{name}`")) || APART.contains(name) || INSIDE.contains(name);
    let missing: Vec<&str> = names.lines().filter(|name| !is_known(name)).collect();
    assert!(names.lines().count() > 100 && missing.is_empty(), "not in src/gate/policy/shadows.rs: {missing:?}");
}
