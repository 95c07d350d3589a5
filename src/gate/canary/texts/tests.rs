//! Tests of the texts of planted tests.

use super::*;

/// Returns the whole text of a planted file.
fn whole(draft: &PlantDraft) -> String {
    let groups = draft.groups.iter().map(|group| {
        let tests: Vec<&str> = group.tests.iter().map(|(_, text)| text.as_str()).collect();
        format!("{}{}{}", group.open, tests.join("\n"), group.close)
    });
    let text = [draft.head.clone(), groups.collect::<Vec<_>>().join("\n"), draft.tail.clone()].join("\n");
    filled(&text, "kadu", "fimo", "tula")
}

fn forms(draft: &PlantDraft) -> Vec<String> {
    let of =
        |group: &PlantGroup| group.tests.iter().map(|(form, _)| format!("{}: {form}", group.label)).collect::<Vec<_>>();
    draft.groups.iter().flat_map(of).collect()
}

#[test]
fn a_planted_python_test_uses_the_imports_class_and_assertions_of_its_neighbours() {
    let like = "import pytest\nfrom calc import (\n    add,\n)\nfrom support import Base\n\nclass Own(Base):\n    pass\n\nclass AddTest(Own):\n    def test(self):\n        self.assertTrue(add)\n        self.check_it()\n        with pytest.raises(ValueError):\n            pass\n";
    let other = "import unittest\n\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertIn(1, [])\n        self.assertTrue(1)\n";
    let drafts = pytest("tests/", &[("tests/test_a.py", like), ("tests/test_b.py", other)]);
    assert_eq!(whole(&drafts[0]).trim(), "def test_fimo():\n    assert \"tula\" == \"\"");
    assert_eq!(
        forms(&drafts[1]),
        [
            "function: assert",
            "function: pytest.raises",
            "method of Base: assertTrue",
            "method of unittest.TestCase: assertTrue"
        ]
    );
    let text = whole(&drafts[1]);
    for part in [
        "from calc import (\n    add,\n)\n",
        "    with pytest.raises(ValueError, match=\"tula\"): pass\n",
        "class Kadu1Test(Base):\n    def test_fimo(self):\n        self.assertTrue(\"\", \"tula\")\n",
        "import unittest\n",
        "class Kadu2Test(unittest.TestCase):\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(forms(&drafts[2]), ["method of unittest.TestCase: assertIn"], "each form once for a folder");
}

#[test]
fn a_planted_python_test_falls_back_to_the_assertions_of_unittest() {
    let own = "class Own(TestCase):\n    pass\n\nclass AddTest(Own):\n    def test(self):\n        self.check()\n";
    let drafts = pytest("", &[("test_a.py", own)]);
    assert_eq!(forms(&drafts[1]), ["method of unittest.TestCase: assertEqual"], "the head does not have `TestCase`");
    let head = "from x import run\nSOURCE = \"\"\"\nclass A:\n\"\"\"\n\ndef test_a():\n    assert run(SOURCE)\n";
    let text = whole(&pytest("", &[("test_a.py", head)])[1]);
    assert!(text.starts_with("from x import run\n") && !text.contains("SOURCE"), "half a string is cut: {text}");
}

#[test]
fn a_script_has_the_imports_the_runner_and_each_assertion_of_the_one_beside_it() {
    for (head, used, forms_of_it) in [
        (
            "const test = require('node:test');\nconst assert = require('node:assert/strict');",
            "assert.deepStrictEqual(add(1), 2);\n  assert(add);\n  t.assert.equal(1, 1)",
            &["test: throw", "test: assert", "test: assert.deepStrictEqual", "test: t.assert.equal"][..],
        ),
        (
            "import { it as test } from \"node:test\";\nimport { deepStrictEqual as same, ok } from \"node:assert\";\nimport { equal } from './own.js';",
            "same(add(1), 2); ok(1); equal(1, 2); other.ok(1);",
            &["test: throw", "test: ok", "test: same"],
        ),
    ] {
        let like = format!("{head}\n\ntest('adds', () => {{\n  {used}\n}});\n");
        let draft = node("js/", "js/a.test.js", &like);
        assert_eq!(forms(&draft)[2..], *forms_of_it, "{like}");
        let text = whole(&draft);
        assert!(text.starts_with(head), "{text}");
    }
    let like = "const test = require('node:test');\nconst assert = require('node:assert/strict');\ntest('x', () => { assert.deepStrictEqual(1, 1); });\n";
    let text = whole(&node("", "a.test.js", like));
    assert!(
        text.contains("test(\"fimo\", async () => {\n  await assert.deepStrictEqual(\"tula\", \"\");\n});"),
        "{text}"
    );
    assert!(text.contains("const { test: test_kadu } = require(\"node:test\")"), "{text}");
    assert!(whole(&node("", "a.mjs", "")).trim_start().starts_with("import { test as test_kadu } from"));
    let comment = "/*\n * a\nfor b\n test\n */\nimport { it } from 'node:test';\n";
    let text = whole(&node("", "a.test.js", &format!("{comment}\nit('x', () => 1);\n")));
    assert!(text.starts_with(comment) && text.contains("it(\"fimo\""), "a comment line does not end the test: {text}");
    for (like, path) in [
        ("a/sum.spec.tsx", "a/{file}.spec.tsx"),
        ("a/test.cjs", "a/{file}.test.cjs"),
        ("a/x_test.mts", "a/{file}_test.mts"),
        ("a/x-test.js", "a/{file}-test.js"),
        ("a/test-x.js", "a/test-{file}.js"),
        ("a/x.js", "a/{file}.test.js"),
    ] {
        assert_eq!(node("a/", like, "").path, path);
    }
}

#[test]
fn a_script_has_each_matcher_that_the_one_beside_it_expects() {
    let module = "import { add } from './calc.js';\n\ndescribe('calc', () => {\n  it('adds', async () => {\n    expect(add(1, 1)).toBe(2);\n    expect(add).not.toThrow();\n    await expect(add(1)).resolves.toEqual(2);\n    expect(add).toHaveOwnMatcher();\n  })\n})\n";
    let draft = jest("", "a.test.js", module);
    assert_eq!(forms(&draft), ["it: throw", "it: .not.toThrow", "it: .resolves.toEqual", "it: .toBe"]);
    let text = whole(&draft);
    for part in [
        "import { add } from './calc.js';\n",
        "it(\"fimo\", async () => {\n  throw new Error(\"tula\");\n});\n",
        "  expect(\"\").toBe(\"tula\");\n",
        "  expect(() => { throw new Error(\"tula\"); }).not.toThrow();\n",
        "  await expect(Promise.resolve(\"\")).resolves.toEqual(\"tula\");\n",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(forms(&jest("", "a.test.js", "test('x', () => {})")), ["test: throw"]);
    assert!(text.contains(";\n});\n\n\n\n\n\n"), "the lines around a failure show no other: {text}");
}

#[test]
fn a_planted_rust_test_links_the_library_of_its_package() {
    for (manifest, has_file, name) in [
        ("[package]\nname = \"my-lib\"\n", true, "my_lib"),
        ("[package]\nname = \"my-lib\"\n", false, ""),
        ("[package]\nname = \"my-lib\"\n[lib]\nname = \"own\"\npath = \"x.rs\"\n", false, "own"),
        ("no manifest", true, ""),
    ] {
        assert_eq!(library(manifest, has_file), name, "{manifest}");
    }
    let test = "#[test]\nfn fimo() {\n    ::std::panic!(\"tula\");\n}\n";
    assert!(whole(&integration("", "", &[])).contains(test));
    let plain = whole(&integration("a/", "own", &[("a/tests/x.rs", "use own::add;\nassert_eq!(1, 1);")]));
    assert!(plain.contains("extern crate own as _;") && !plain.contains("assert_eq!"), "{plain}");
    let glob = integration("", "own", &[("tests/x.rs", "use own::*;\n#[test]\nfn a() { assert_eq!(1, 1); }\n")]);
    assert_eq!(forms(&glob), ["test: panic", "with names of the library: assert_eq!"]);
    assert!(whole(&glob).contains("mod kadu {\n    use own::*;\n\n"), "{}", whole(&glob));
    let macros = integration("", "own", &[("tests/x.rs", "#[macro_use]\nextern crate own;\nassert!(1);")]);
    assert!(whole(&macros).contains("#[macro_use]\nextern crate own;"), "{}", whole(&macros));
}

#[test]
fn a_rust_test_is_planted_among_those_inside_of_a_source_file() {
    let product = "pub fn add() {}\n\n#[cfg(test)]\nmod tests {\n    use super::*;\n\n    #[test]\n    #[should_panic]\n    fn a() {\n        assert_eq!(1, 1);\n    }\n";
    let draft = unit("src/lib.rs", &format!("{product}}}\n")).unwrap();
    assert_eq!(forms(&draft), ["unit: panic", "unit: assert_eq!", "unit: should_panic"]);
    assert_eq!((draft.head.as_str(), draft.tail.as_str()), (product, "}\n"), "inside of the module");
    let text = whole(&draft);
    assert!(
        text.contains("    fn fimo() {\n        assert_eq!(\"tula\", \"\");\n    }\n") && !text.contains("mod kadu"),
        "{text}"
    );
    let middle = format!("{product}}}\n\npub fn sub() {{}}\n");
    let text = whole(&unit("src/lib.rs", &middle).unwrap());
    assert!(
        text.starts_with(&middle) && text.contains("#[allow(warnings, unused)]\nmod kadu {\n    use super::*;\n"),
        "{text}"
    );
    let module = "use super::*;\n\n#[test]\nfn a() {\n    assert!(true);\n}\n";
    let text = whole(&unit("src/tests.rs", module).unwrap());
    assert!(text.starts_with(module) && !text.contains("mod kadu") && text.contains("assert!(\"tula\""), "{text}");
    assert_eq!(unit("src/lib.rs", "pub fn add() {}\n"), None);
}

#[test]
fn a_go_test_fails_in_each_way_that_those_of_its_package_do() {
    let own = "package calc\n\nimport (\n\t\"testing\"\n\n\t\"github.com/stretchr/testify/require\"\n)\n\nfunc TestA(t *testing.T) {\n\tt.Errorf(\"x\")\n\trequire.NoError(t, nil)\n\trequire.Own(t)\n}\n";
    let drafts = go("calc/", &[("calc/a_test.go", own), ("calc/b_test.go", "package calc_test\n")]).unwrap();
    assert_eq!(forms(&drafts[0]), ["test: t.Fatal", "test: t.Errorf", "test: require.NoError"]);
    let head =
        "package calc\n\nimport \"errors\"\nimport \"github.com/stretchr/testify/require\"\nimport \"testing\"\n";
    let text = whole(&drafts[0]);
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("func TestFimo(t *testing.T) {\n\trequire.NoError(t, errors.New(\"tula\"))\n}\n"), "{text}");
    assert!(whole(&drafts[1]).starts_with("package calc_test\n\nimport \"testing\"\n"));
    assert_eq!(go("", &[("a_test.go", "// nothing")]), None);
}

#[test]
fn a_planted_java_test_uses_the_junit_version_and_assertions_of_its_neighbours() {
    for (like, message) in [
        (
            "package a.b;\nimport org.junit.jupiter.api.Test;\n",
            "package a.b;\npublic class KaduTest {\n    @org.junit.jupiter.api.Test\n    public void fimo() throws Exception {\n        org.junit.jupiter.api.Assertions.assertEquals(\"tula\", \"\");",
        ),
        (
            "import org.junit.Test;\nassertTrue(x); assertThat(a, is(b));",
            "\npublic class KaduTest {\n    @org.junit.Test\n    public void fimo() throws Exception {\n        org.junit.Assert.assertTrue",
        ),
        (
            "import junit.framework.TestCase;\n",
            "\npublic class KaduTest extends junit.framework.TestCase {\n    \n    public void testfimo() throws Exception {\n        assertEquals",
        ),
        ("import org.testng.annotations.Test;\n", "\npublic class KaduTest {\n    @org.testng.annotations.Test"),
    ] {
        let text = whole(&junit("", &[("ATest.java", like)]));
        assert!(text.starts_with(message), "{text}");
    }
    let others = "import org.junit.jupiter.api.Test;\nimport static org.assertj.core.api.Assertions.*;\nimport org.hamcrest.*;\nassertThat(a).isTrue(); Assertions.assertNull(b);";
    let draft = junit("", &[("ATest.java", others)]);
    assert_eq!(forms(&draft), ["class: assertNull", "class: isTrue", "class: assertThat"]);
}

#[test]
fn a_test_class_gets_tests_behind_its_own_with_the_assertions_as_it_calls_them() {
    let before = "package a;\n/* class ATest { */\nimport org.junit.jupiter.api.Test;\nimport static org.junit.jupiter.api.Assertions.*;\n\n@ExtendWith({Own.class})\nclass ATest<T> extends Base {\n    char a = '}'; String b = \"\\\"}\", c = \"\"\"\n    }\n    \"\"\"; // }\n    @Test void a() { assertTrue(a); Assertions.assertNull(b); Own.assertFalse(c); Own.assertSame(c); }\n    void assertSame(Own own) { }\n";
    let draft = in_class("src/a/ATest.java", &format!("{before}}}\n\nclass Other {{ }}\n")).unwrap();
    assert_eq!((draft.head.as_str(), draft.tail.as_str()), (before, "}\n\nclass Other { }\n"));
    assert_eq!(forms(&draft), ["its class: throw", "its class: assertTrue", "its class: assertNull"]);
    let text = whole(&draft);
    let test = "    @org.junit.jupiter.api.Test\n    public void fimo() throws Exception {\n        Assertions.assertNull(\"tula\");\n    }\n";
    assert!(text.contains(test), "{text}");
    let old = "import junit.framework.TestCase;\nimport org.hamcrest.*;\npublic class ATest extends TestCase {\n    public void testA() { assertEquals(1, 1); }\n}";
    let draft = in_class("ATest.java", old).unwrap();
    assert_eq!(forms(&draft), ["its class: throw", "its class: assertEquals", "its class: assertThat"]);
    assert!(
        whole(&draft).contains("    public void testfimo() throws Exception {\n        assertEquals(\"tula\", \"\");")
    );
}

#[test]
fn only_a_class_that_can_have_tests_gets_some() {
    for text in [
        "public class ATest { @Test void a() {} }",
        "import org.junit.Test;\npublic abstract class ATest { }",
        "import org.junit.Test;\npublic interface ATest { }",
        "import org.junit.Test;\nclass BTest { class ATest { } }",
        "import org.junit.Test;\n// class ATest { }",
        "import org.junit.Test;\nclass ATest { ",
        "import org.junit.Test;\n}",
    ] {
        assert_eq!(in_class("ATest.java", text), None, "{text}");
    }
}

#[test]
fn a_file_of_cpp_gets_a_test_for_each_of_its_macros_behind_its_last_test() {
    let before = "#include <gtest/gtest.h>\nnamespace {\nclass F : public testing::Test {};\nTEST_F(F, b) {\n    ASSERT_EQ(1, 1);\n}\n";
    let draft = cpp("tests/a.cpp", &format!("{before}}}\n")).unwrap();
    assert_eq!((draft.head.as_str(), draft.tail.as_str()), (before, "}\n"), "where the fixture is known");
    assert_eq!(forms(&draft), ["F: ADD_FAILURE", "F: ASSERT_EQ", "TEST: ADD_FAILURE"]);
    assert!(whole(&draft).contains("TEST_F(F, fimo) {\n    ASSERT_EQ(1, 2) << \"tula\";\n}\n"), "{}", whole(&draft));
    let plain = cpp("a.cpp", "#include <gtest/gtest.h>\nTEST(A, b) { EXPECT_TRUE(1); }\n").unwrap();
    assert!(
        whole(&plain).contains("TEST(Kadu, fimo) {\n    EXPECT_TRUE(false) << \"tula\";\n}\n"),
        "{}",
        whole(&plain)
    );
    for include in ["\"catch.hpp\"", "<catch2/catch_test_macros.hpp>", "\"doctest/doctest.h\""] {
        let like = format!("#include {include}\nTEST_CASE(\"a\") {{\n    CHECK_FALSE(0);\n}}\n");
        let draft = cpp("a.cpp", &like).unwrap();
        assert_eq!(forms(&draft), ["TEST_CASE: FAIL", "TEST_CASE: CHECK_FALSE"]);
        assert!(
            whole(&draft)
                .contains("TEST_CASE(\"fimo\") {\n    INFO(\"tula\");\n    CHECK_FALSE(\"tula\"[0] != 0);\n}\n")
        );
    }
    let open = "#include <gtest/gtest.h>\nTEST(A, a) {\n}\n";
    let part = cpp("a.cpp", &format!("{open}#if defined(ALL)\nTEST(A, b) {{\n}}\n#endif\n")).unwrap();
    assert_eq!(part.head, open, "code after it may not be compiled");
    assert_eq!(cpp("a.cpp", "#include <assert.h>\n"), None);
    assert_eq!(cpp("a.cpp", "#include <gtest/gtest.h>\n#if 0\n"), None, "what stands behind may not be compiled");
}
