//! `CMakeLists.txt` as JSON: its tests, the properties that decide whether they pass, and the
//! macros that disable assertions, such as `NDEBUG`.

use crate::gate::policy::cmake::{TESTS, commands, plain};
use serde_json::{Map, Value};

/// Properties that decide whether a test runs and what counts as a pass.
const DECIDING: &[&str] = &[
    "DISABLED",
    "FAIL_REGULAR_EXPRESSION",
    "PASS_REGULAR_EXPRESSION",
    "SKIP_REGULAR_EXPRESSION",
    "SKIP_RETURN_CODE",
    "WILL_FAIL",
];
/// Words of `set_property` before the names of tests.
const SCOPES: &[&str] = &["TEST", "APPEND", "APPEND_STRING"];
/// Parts of arguments that disable the assertions of C and of test frameworks.
const SILENCING: &[&str] = &["CATCH_CONFIG_DISABLE", "DOCTEST_CONFIG_DISABLE", "NDEBUG"];
/// Commands that open a block, each with the command that closes it.
const BLOCKS: &[(&str, &str)] = &[
    ("if", "endif"),
    ("foreach", "endforeach"),
    ("while", "endwhile"),
    ("function", "endfunction"),
    ("macro", "endmacro"),
    ("block", "endblock"),
];

/// Parses CMake text into a JSON object of the form section → kind → name → value, with these
/// sections:
///
/// - `tests`, by command and name (`project` for `enable_testing`)
/// - `properties`, by property and test
/// - `silencing`: arguments that disable assertions, by command and argument
/// - `blocks`: functions and macros with the name of a test command
/// - `returns`, by the command `return` and the blocks around it (`top-level` without a block)
///
/// A value is the blocks around the command and its arguments; values of equal keys are joined with
/// `; `. The blocks are included because a test in another block is another test.
pub(super) fn parse(text: &str) -> Value {
    let (mut object, mut open) = (Value::Object(Map::new()), Vec::<String>::new());
    let mut add = |[section, kind, name]: [&str; 3], text: &str| {
        let value = &mut object[section][kind][name];
        *value = value.as_str().map_or_else(|| text.to_owned(), |before| format!("{before}; {text}")).into();
    };
    for (command, words) in commands(&plain(text)) {
        let arguments = words.join(" ");
        let around = open.join(" ");
        let whole = format!("{around}: {arguments}");
        let command = command.as_str();
        if TESTS.contains(&command) {
            let name = words.iter().find(|word| **word != "NAME").copied().unwrap_or_default();
            add(["tests", command, name], &whole);
        } else if command == "enable_testing" || (command == "include" && words.first() == Some(&"CTest")) {
            add(["tests", command, "project"], &whole);
        } else if ["set_tests_properties", "set_property"].contains(&command) {
            let mut parts = words.split(|word| word.starts_with("PROPERT"));
            let tests = parts.next().unwrap_or_default().iter().filter(|word| !SCOPES.contains(word));
            let tests: Vec<&str> = tests.copied().collect();
            for property in words.iter().filter(|word| DECIDING.contains(word)) {
                tests.iter().for_each(|test| add(["properties", property, test], &whole));
            }
        } else if ["function", "macro"].contains(&command) {
            let name = words.first().copied().unwrap_or_default().to_lowercase();
            if TESTS.contains(&name.as_str()) || ["set_tests_properties", "enable_testing"].contains(&name.as_str()) {
                add(["blocks", command, &name], &whole);
            }
        } else if command == "return" {
            add(["returns", command, if around.is_empty() { "top-level" } else { &around }], "present");
        }
        for word in words.iter().filter(|word| SILENCING.iter().any(|part| word.contains(part))) {
            add(["silencing", command, word], &whole);
        }
        if command.starts_with("else") {
            // The other branch is a different block.
            if let Some(last) = open.last_mut() {
                *last = format!("{last} {command}({arguments})");
            }
        } else if BLOCKS.iter().any(|(begin, _)| *begin == command) {
            open.push(format!("{command}({arguments})"));
        } else if BLOCKS.iter().any(|(_, end)| *end == command) {
            open.pop();
        }
    }
    object
}
