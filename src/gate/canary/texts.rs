//! The texts of planted tests. Each is made like a test of the base beside it, with that test's
//! imports, base class and assertions: code that silences these silences the planted test, too, and
//! so shows itself. Pure.

use crate::gate::names::name_of;
use toml::Spanned;
use toml::de::DeTable;

/// Placeholders for the test's name, the name with a capital letter, and the word that only the
/// test's failure prints.
const NAME: &str = "{name}";
const CAPITAL: &str = "{Name}";
const MARK: &str = "{mark}";

/// A planted test, before its word is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Form {
    /// The text taken from the base.
    head: String,
    /// The failing test.
    tail: String,
}

impl Form {
    fn new(head: impl Into<String>, tail: impl Into<String>) -> Self {
        Self { head: head.into(), tail: tail.into() }
    }

    /// Returns the file's content, with the test's name and the word of its failure.
    pub(super) fn text(&self, name: &str, mark: &str) -> String {
        let tail = self.tail.replace(NAME, name).replace(CAPITAL, &capital(name)).replace(MARK, mark);
        if self.head.is_empty() { tail } else { format!("{}\n\n{tail}", self.head.trim_end()) }
    }
}

/// Returns a function, and a method of a test class where the base's test is one.
pub(super) fn pytest(like: &str) -> Vec<Form> {
    const ENDS: [&str; 5] = ["def ", "async def ", "class ", "@", "if __name__"];
    let head = until(like, &ENDS);
    let mut forms = vec![Form::new(&*head, "def test_{name}():\n    assert \"{mark}\" == \"\"\n")];
    let bases = like.lines().filter_map(|line| line.strip_prefix("class ")?.split_once('(')?.1.split_once(')'));
    let base = bases.map(|(base, _)| base.trim()).find(|base| base.contains("TestCase"));
    if let Some(base) = base {
        // The planted file has no class that the base's file defines among its tests.
        let is_defined_here = like.contains(&format!("class {base}("));
        let (import, base) = if is_defined_here { ("import unittest\n\n\n", "unittest.TestCase") } else { ("", base) };
        let tail = format!(
            "{import}class {CAPITAL}Test({base}):\n    def test_{NAME}(self):\n        self.assertEqual(\"{MARK}\", \"\")\n"
        );
        forms.push(Form::new(head, tail));
    }
    forms
}

/// A test that throws, and one that asserts by `node:assert`.
pub(super) fn node(path: &str, like: &str) -> Vec<Form> {
    let head = script_head(like);
    let is_module = match path.rsplit('.').next() {
        Some("mjs" | "mts") => true,
        Some("cjs" | "cts") => false,
        _ => head.lines().any(|line| line.starts_with("import ")),
    };
    // The file may use these names already, so the imports get others.
    let imports = if is_module {
        "import { test as test_{name} } from \"node:test\";\nimport assert_{name} from \"node:assert\";\n"
    } else {
        "const { test: test_{name} } = require(\"node:test\");\nconst assert_{name} = require(\"node:assert\");\n"
    };
    ["throw new Error(\"{mark}\")", "assert_{name}.strictEqual(\"{mark}\", \"\")"]
        .map(|body| Form::new(&*head, format!("{imports}\ntest_{NAME}(\"{NAME}\", () => {{\n  {body};\n}});\n")))
        .into()
}

/// A test that throws, and one that asserts where the base's test uses `expect`.
pub(super) fn jest(like: &str) -> Vec<Form> {
    let head = script_head(like);
    let calls = |name: &str| like.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")));
    let test = if calls("it") && !calls("test") { "it" } else { "test" };
    let body = |body: &str| format!("{test}(\"{NAME}\", () => {{\n  {body};\n}});\n");
    let mut forms = vec![Form::new(&*head, body("throw new Error(\"{mark}\")"))];
    if like.contains("expect(") {
        forms.push(Form::new(head, body("expect(\"{mark}\").toBe(\"\")")));
    }
    forms
}

/// Returns a test whose program links the package's library; `library` is empty for a package
/// without one.
pub(super) fn cargo(library: &str) -> Form {
    let head = if library.is_empty() { String::new() } else { format!("extern crate {library} as _;") };
    Form::new(head, "#[test]\nfn {name}() {\n    panic!(\"{mark}\");\n}\n")
}

/// A test of a Go package.
pub(super) fn go(package: &str) -> Form {
    let head = format!("package {package}\n\nimport \"testing\"");
    Form::new(head, "func Test{Name}(t *testing.T) {\n\tt.Fatal(\"{mark}\")\n}\n")
}

/// A test class in the package of the base's test, for the same version of JUnit or for TestNG.
pub(super) fn junit(like: &str) -> Form {
    let package = like.lines().find(|line| line.starts_with("package ")).unwrap_or_default();
    let (annotation, assertion) = if like.contains("org.junit.jupiter") {
        ("@org.junit.jupiter.api.Test", "org.junit.jupiter.api.Assertions.assertEquals")
    } else if like.contains("org.testng") {
        ("@org.testng.annotations.Test", "org.testng.Assert.assertEquals")
    } else if like.contains("junit.framework") {
        ("", "assertEquals")
    } else {
        ("@org.junit.Test", "org.junit.Assert.assertEquals")
    };
    let (base, name) = if annotation.is_empty() { (" extends junit.framework.TestCase", "test") } else { ("", "") };
    let tail = format!(
        "public class {CAPITAL}Test{base} {{\n    {annotation}\n    public void {name}{NAME}() {{\n        {assertion}(\"{MARK}\", \"\");\n    }}\n}}\n"
    );
    Form::new(package, tail)
}

/// The base's file with one more test, by the macros of its framework: a build names the files that
/// it compiles, so a new file would not be one of them. `None` where the framework is not known.
pub(super) fn cpp(like: &str) -> Option<Form> {
    let includes =
        |name: &str| like.lines().any(|line| line.trim_start().starts_with("#include") && line.contains(name));
    let tail = if includes("gtest") {
        "TEST({Name}, {name}) {\n    EXPECT_EQ(1, 2) << \"{mark}\";\n}\n"
    } else if includes("catch") || includes("doctest") {
        "TEST_CASE(\"{name}\") {\n    REQUIRE(\"{mark}\"[0] == 0);\n}\n"
    } else {
        return None;
    };
    let is_closed = like.matches("#if").count() == like.matches("#endif").count();
    is_closed.then(|| Form::new(like, tail))
}

/// The name of the package's library in Rust, from its `Cargo.toml`; empty where it has none.
pub(super) fn library(manifest: &str, has_file: bool) -> String {
    let table = DeTable::parse(manifest).map(Spanned::into_inner).unwrap_or_default();
    let name_in = |key: &str| table.get(key)?.get_ref().get("name")?.get_ref().as_str().map(str::to_owned);
    if !has_file && !table.contains_key("lib") {
        return String::new();
    }
    name_in("lib").or_else(|| name_in("package")).unwrap_or_default().replace('-', "_")
}

/// The package of a Go file.
pub(super) fn package_of(source: &str) -> Option<&str> {
    source.lines().find_map(|line| line.strip_prefix("package "))?.split_whitespace().next()
}

/// The file name of a script of tests that is like another.
pub(super) fn script_name(like: &str, name: &str) -> String {
    let like = name_of(like);
    let (stem, ending) = like.rsplit_once('.').unwrap_or((like, "js"));
    let kind = if stem.ends_with(".spec") { "spec" } else { "test" };
    format!("{name}.{kind}.{ending}")
}

fn script_head(like: &str) -> String {
    #[rustfmt::skip]
    const ENDS: [&str; 15] = [
        "describe", "test", "it(", "it.", "suite", "before", "after", "function", "class ", "async ", "for ", "if ", "export ", "await ", "(",
    ];
    until(like, &ENDS)
}

/// A word with a capital letter.
pub(super) fn capital(word: &str) -> String {
    [&word[..1].to_uppercase(), &word[1..]].concat()
}

/// The first lines of a text, up to one that begins with one of these.
fn until(text: &str, ends: &[&str]) -> String {
    let head: Vec<&str> = text.lines().take_while(|line| !ends.iter().any(|end| line.starts_with(end))).collect();
    head.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(forms: &[Form]) -> Vec<String> {
        forms.iter().map(|form| form.text("fimo", "tula")).collect()
    }

    #[test]
    fn a_python_test_has_the_imports_and_the_base_class_of_the_one_beside_it() {
        let like = "import sys\nsys.path.insert(0, '..')\nfrom calc import (\n    add,\n)\n\nclass AddTest(TestCase):\n    def test(self):\n        pass\n";
        let head = "import sys\nsys.path.insert(0, '..')\nfrom calc import (\n    add,\n)\n\n";
        let function = "def test_fimo():\n    assert \"tula\" == \"\"\n";
        let method = "class FimoTest(TestCase):\n    def test_fimo(self):\n        self.assertEqual(\"tula\", \"\")\n";
        assert_eq!(texts(&pytest(like)), [format!("{head}{function}"), format!("{head}{method}")]);
        assert_eq!(texts(&pytest("")), [function]);
        let own = "class Own(TestCase):\n    pass\nclass AddTest(Own, TestCase):\n    pass\n";
        assert!(texts(&pytest(own))[1].contains("class FimoTest(TestCase)"), "{:?}", pytest(own));
        let own = "class OwnTestCase(unittest.TestCase):\n    pass\n\nclass AddTest(OwnTestCase):\n    pass\n";
        assert!(texts(&pytest(own))[1].contains("class FimoTest(unittest.TestCase)"));
    }

    #[test]
    fn a_script_has_the_imports_of_the_one_beside_it_and_throws_and_asserts() {
        let module = "import { add } from './calc.js';\n\ndescribe('calc', () => {\n  it('adds', () => { expect(add(1, 1)).toBe(2) })\n})\n";
        let told = texts(&jest(module));
        assert_eq!(
            told[0],
            "import { add } from './calc.js';\n\nit(\"fimo\", () => {\n  throw new Error(\"tula\");\n});\n"
        );
        assert!(told[1].ends_with("  expect(\"tula\").toBe(\"\");\n});\n"), "{}", told[1]);
        assert_eq!(texts(&jest("test('x', () => {})")).len(), 1);
        let told = texts(&node("a.test.js", "const { add } = require('./calc');\ntest('x', () => {});\n"));
        assert!(told[1].starts_with("const { add } = require('./calc');\n\nconst { test: test_fimo }"), "{}", told[1]);
        assert!(told[1].contains("assert_fimo.strictEqual(\"tula\", \"\")"));
        assert!(texts(&node("a.test.mjs", ""))[0].starts_with("import { test as test_fimo }"));
        for (like, name) in
            [("a/sum.spec.tsx", "fimo.spec.tsx"), ("test.cjs", "fimo.test.cjs"), ("x_test.mts", "fimo.test.mts")]
        {
            assert_eq!(script_name(like, "fimo"), name);
        }
    }

    #[test]
    fn a_rust_test_links_the_library_of_its_package() {
        for (manifest, has_file, name) in [
            ("[package]\nname = \"my-lib\"\n", true, "my_lib"),
            ("[package]\nname = \"my-lib\"\n", false, ""),
            ("[package]\nname = \"my-lib\"\n[lib]\nname = \"own\"\npath = \"x.rs\"\n", false, "own"),
            ("no manifest", true, ""),
        ] {
            assert_eq!(library(manifest, has_file), name, "{manifest}");
        }
        let test = "#[test]\nfn fimo() {\n    panic!(\"tula\");\n}\n";
        assert_eq!(cargo("").text("fimo", "tula"), test);
        assert_eq!(cargo("own").text("fimo", "tula"), format!("extern crate own as _;\n\n{test}"));
    }

    #[test]
    fn a_java_test_is_for_the_version_of_junit_that_the_one_beside_it_uses() {
        for (like, said) in [
            (
                "package a.b;\nimport org.junit.jupiter.api.Test;\n",
                "package a.b;\n\npublic class FimoTest {\n    @org.junit.jupiter.api.Test\n    public void fimo() {\n        org.junit.jupiter.api.Assertions.assertEquals(\"tula\", \"\");",
            ),
            (
                "import org.junit.Test;\n",
                "public class FimoTest {\n    @org.junit.Test\n    public void fimo() {\n        org.junit.Assert.assertEquals",
            ),
            (
                "import junit.framework.TestCase;\n",
                "public class FimoTest extends junit.framework.TestCase {\n    \n    public void testfimo() {\n        assertEquals",
            ),
            ("import org.testng.annotations.Test;\n", "public class FimoTest {\n    @org.testng.annotations.Test"),
        ] {
            assert!(junit(like).text("fimo", "tula").starts_with(said), "{}", junit(like).text("fimo", "tula"));
        }
    }

    #[test]
    fn a_file_of_cpp_gets_one_more_test_by_its_own_macros() {
        let told = |like: &str| cpp(like).map(|form| form.text("fimo", "tula"));
        let gtest = told("#include <gtest/gtest.h>\nTEST(A, b) {}\n").unwrap();
        assert_eq!(
            gtest,
            "#include <gtest/gtest.h>\nTEST(A, b) {}\n\nTEST(Fimo, fimo) {\n    EXPECT_EQ(1, 2) << \"tula\";\n}\n"
        );
        for include in ["\"catch.hpp\"", "<catch2/catch_test_macros.hpp>", "\"doctest/doctest.h\""] {
            assert!(
                told(&format!("#include {include}\n"))
                    .unwrap()
                    .contains("TEST_CASE(\"fimo\") {\n    REQUIRE(\"tula\"[0] == 0);")
            );
        }
        assert_eq!(told("#include <assert.h>\n"), None);
        assert_eq!(told("#include <gtest/gtest.h>\n#if 0\n"), None, "what stands behind may not be compiled");
    }
}
