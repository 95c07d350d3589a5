//! Definitions in Rust, C, C++ and their builds: some redefine an assertion, and others do not.

use super::*;

/// Returns the assertions that a Rust source redefines.
fn of_rust(text: &str) -> BTreeSet<String> {
    let RedefinedAssertions { mut defined, passed, makes_macros, .. } = in_rust(text);
    defined.extend(passed.into_iter().filter(|_| makes_macros));
    defined
}

#[test]
fn a_rust_source_redefines_an_assertion_by_a_macro_a_new_name_or_an_argument() {
    let maker = "macro_rules! make { ($d:tt $name:ident) => { macro_rules! $name { ($d($d all:tt)*) => {}; } } }\n";
    for (text, name) in [
        (
            "macro_rules! assert_eq { (add(1, 2), $x:expr) => {}; ($($all:tt)*) => { std::assert_eq!($($all)*) }; }",
            "assert_eq",
        ),
        ("macro_rules!\n/* a comment */ assert { () => {}; }", "assert"),
        ("mod inner { fn f() { macro_rules! panic { ($($all:tt)*) => {}; } } }", "panic"),
        ("macro_rules! r#assert_eq { () => {}; }", "assert_eq"),
        ("#!\"\nmacro_rules! assert_eq { () => {}; }", "assert_eq"),
        ("let x = 1'0; macro_rules! assert_eq { () => {}; }", "assert_eq"),
        ("pub use crate::quiet as assert_ne;", "assert_ne"),
        ("pub use tools::{quiet as test, other};", "test"),
        ("#[proc_macro]\npub fn assert_eq(input: TokenStream) -> TokenStream { input }", "assert_eq"),
        (
            "#[proc_macro_attribute]\n/// One.\n/// Two.\n/// Three.\npub fn test(_: TokenStream, item: TokenStream) -> TokenStream { item }",
            "test",
        ),
        (&format!("{maker}make!($ assert_eq);"), "assert_eq"),
        (&format!("{maker}make! {{ $ assert = 1 }}"), "assert"),
    ] {
        assert!(of_rust(text).contains(name), "{text}");
    }
    for text in [
        "fn a() { assert_eq!(1, 1); assert!(x, \"{}\", y); panic!(); }",
        "use pretty_assertions::{assert_eq, assert_ne};\nuse std::assert;",
        &format!("{maker}cfg_if! {{ use pretty_assertions::{{assert_eq, assert_ne}}; }}"),
        "macro_rules! same { ($a:expr) => { assert_eq!($a, 1); std::assert!(true) }; (assert_eq) => {}; }",
        "fn run(assert: Assert) -> bool { let test = 1; assert.success(); f(test, assert) && assert != other }",
        "syn::custom_keyword!(assert); let lines = vec![assert_eq!(1, 1), test.assert()];",
        "/// Checks proc_macro.\n#[test] fn test() {} #[cfg(test)] mod test {} #[panic_handler] fn panic() {}",
        "macro_rules! test { ($name:ident) => {}; }\nuse wasm_bindgen_test::wasm_bindgen_test as test;",
        "macro_rules! assert_send { () => {}; }",
    ] {
        assert_eq!(of_rust(text), BTreeSet::new(), "{text}");
    }
    let deep = "[".repeat(50_000) + &"]".repeat(50_000) + " fn test() {}";
    assert_eq!(of_rust(&deep), BTreeSet::new());
}

/// Returns the policy of a base with one test program in C++, which also includes a source.
fn policy() -> Policy {
    let test = "#include \"../src/area.cpp\"\nTEST_CASE(\"a\") {\n    REQUIRE (area(2, 3) == 6);\n    assert(strcmp(a, b) == 0);\n}\n";
    let files = ["src/area.cpp", "src/area.h", "src/other.cpp", "tests/area_test.cpp", "CMakeLists.txt"];
    let other = "#include \"part.cpp\"\n";
    let mut read = |path: &str| Some(if path.contains("test") { test.into() } else { other.into() });
    Policy::freeze(files.map(str::to_owned), &[], &[], &["open.h".to_owned()], &mut read).unwrap()
}

/// Returns the assertions that changed files redefine. The base has these files without content.
fn redefined(policy: &Policy, files: &[(&str, &str)]) -> Vec<String> {
    let change = |path: &str| PathChange { path: path.into(), kind: PathChangeKind::Modified };
    let changes: Vec<PathChange> = files.iter().map(|(path, _)| change(path)).collect();
    let mut found: Vec<(&PathChange, RedefinedAssertions)> = Vec::new();
    for _ in &changes {
        let is_new = |change: &PathChange| !found.iter().any(|(known, _)| *known == change);
        let read = |(change, _): &(&PathChange, _)| is_new(change) && policy.may_redefine_assertions(change, &found);
        let more: Vec<_> = changes.iter().zip(files).filter(read).collect();
        let look =
            |(change, (path, text)): (_, &(&str, &str))| (change, policy.redefined_assertions(path, text.as_bytes()));
        found.extend(more.into_iter().map(look));
    }
    let word = |finding: TamperFinding| finding.rule.split('`').nth(1).unwrap().to_owned();
    policy.redefinitions(&found, &[]).into_iter().map(word).collect()
}

#[test]
fn a_c_source_redefines_what_tests_of_the_base_call() {
    let policy = policy();
    for (text, name) in [
        ("#undef REQUIRE\n#define REQUIRE(...) ((void)0)\n", "REQUIRE"),
        ("#pragma once\n  #  define\tREQUIRE(x)\n", "REQUIRE"),
        ("#/* a */define/* b */REQUIRE(x)\n", "REQUIRE"),
        ("/* a\n b */ #define REQUIRE(x)\n", "REQUIRE"),
        ("/* a\n b */ #define/* c */REQUIRE(x) /* d */\n", "REQUIRE"),
        ("#/*\n*/define REQUIRE(x)\n", "REQUIRE"),
        ("#def\\\nine REQUIRE(x)\n", "REQUIRE"),
        ("#define \\ \nREQUIRE(x)\n", "REQUIRE"),
        ("char *a = \"/*\";\n#define REQUIRE(x)\nchar *b = \"*/\";\n", "REQUIRE"),
        ("%:define TEST_CASE(x) void f()\n", "TEST_CASE"),
        ("#define strcmp(a, b) 0\n", "strcmp"),
        ("#define if(x) if (0)\n", "if"),
        ("#define NDEBUG\n", "NDEBUG"),
        ("#define INTERNAL_CATCH_TEST(...) (void)0\n", "INTERNAL_CATCH_TEST"),
    ] {
        assert_eq!(redefined(&policy, &[("src/area.h", text)]), [name], "{text}");
    }
    for text in [
        "#define CHECK(x) x\n#define REQUIRED 1\n#define memcmp other\n",
        "REQUIRE(x);\n",
        "#if REQUIRE\n#defined REQUIRE\n",
        "#",
        "/* above the #define for the\n * #define REQUIRE */\nint a; #define REQUIRE\n",
        &"#/*".repeat(100_000),
        &"/*é".repeat(100_000),
    ] {
        assert_eq!(
            redefined(&policy, &[("src/area.h", text)]),
            <[&str; 0]>::default(),
            "{}",
            &text[..9.min(text.len())]
        );
    }
}

#[test]
fn what_a_compiled_source_defines_counts_only_if_another_includes_it() {
    let (policy, text) = (policy(), "#define REQUIRE(x)\n");
    let is_found = |files: &[(&str, &str)]| !redefined(&policy, files).is_empty();
    assert!(is_found(&[("src/area.cpp", text)]), "a test of the base includes it");
    assert!(!is_found(&[("src/other.cpp", text)]) && !is_found(&[("tests/new_test.cpp", text)]));
    assert!(is_found(&[("src/other.cpp", text), ("src/area.h", "#include \"other.cpp\"\n")]));
    assert!(!is_found(&[("open.h", text)]), "the task opens it");
    assert!(!is_found(&[("src/quiet.txt", text)]));
    assert!(is_found(&[("src/quiet.txt", text), ("src/area.h", "#include \"quiet.txt\"\n")]));
    assert!(is_found(&[("src/part.cpp", text)]), "a source of the base includes it");
    assert!(is_found(&[("src/config.h.in", text)]), "the build makes a header of it");
    assert!(is_found(&[("src/quiet.txt", text), ("src/area.h", "#include /**/ \"quiet.txt\"\n")]));
    assert!(is_found(&[("src/quiet.txt", text), ("src/area.h", "#define Q \"quiet.txt\"\n#include Q\n")]));
    let without = Policy::freeze(["a.h".to_owned()], &[], &[], &[], &mut |_| None).unwrap();
    assert_eq!(redefined(&without, &[("a.h", "#define REQUIRE(x)\n#define if(x)\n")]), <[&str; 0]>::default());
}

#[test]
fn a_build_must_not_define_assertions_by_options_or_in_headers_that_it_writes() {
    let policy = policy();
    for text in [
        "add_definitions(-DREQUIRE=void)",
        "add_compile_definitions(\"REQUIRE(x)=\" \"OTHER\")",
        "add_compile_definitions(\"REQUIRE=\")",
        "file(WRITE a.h \"#define REQUIRE(x)\")",
    ] {
        assert_eq!(redefined(&policy, &[("CMakeLists.txt", text)]), ["REQUIRE"], "{text}");
    }
    let many = "REQUIRE(".repeat(20_000);
    for text in
        ["REQUIRE(x)\n", "set(REQUIRE ON)", "-DREQUIRED=1 -DREQUIRE=ON", "NOT_REQUIRE=1", "REQUIRE=/tmp/a", &many]
    {
        assert_eq!(redefined(&policy, &[("CMakeLists.txt", text)]), <[&str; 0]>::default());
    }
}

#[test]
fn a_rust_source_may_load_a_macro_from_a_file_of_any_name() {
    let (policy, text) = (policy(), "macro_rules! assert_eq { ($($all:tt)*) => {}; }");
    assert!(
        redefined(&policy, &[("src/lib.rs", "json!({\"f\": \"quiet.txt\"});"), ("src/quiet.txt", text)]).is_empty()
    );
    assert!(redefined(&policy, &[("src/quiet.txt", text)]).is_empty());
    for source in [
        "#[macro_use] #[path = \"quiet.txt\"] mod quiet;\nfn a() {}",
        "include!(\"../src/quiet.txt\");\nfn a() {}",
        "#[path = \"\\x71uiet.txt\"] mod quiet;",
        "include!(concat!(\"qui\", \"et.txt\"));",
    ] {
        assert_eq!(redefined(&policy, &[("src/lib.rs", source), ("src/quiet.txt", text)]), ["assert_eq"], "{source}");
    }
}
