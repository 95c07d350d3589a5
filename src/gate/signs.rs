//! Signs by which a text has tests, for the common runners. Pure.

use super::names::has_name;

/// Of a test program in C or C++.
pub(super) const OF_C: &[&str] = &["TEST(", "TEST_F(", "TEST_P(", "TEST_CASE(", "BOOST_AUTO_TEST", "int main("];
/// Of a file that Python's unittest finds.
pub(super) const OF_PYTHON: &[&str] = &["unittest", "pytest", "def test", "doctest"];
/// Before or at the name of one test.
const OF_ONE: &[&str] = &[
    "#[test]",
    "#[tokio::test",
    "#[rstest",
    "#[test_case",
    "def test",
    "func Test",
    "test(",
    "it(",
    "test.each",
    "it.each",
    "test.skip(",
    "it.skip(",
    "it.only(",
    "test.only(",
    "specify(",
    "@Test",
    "@ParameterizedTest",
    "TEST(",
    "TEST_F(",
    "TEST_P(",
    "TEST_CASE(",
    "BOOST_AUTO_TEST",
    "[Fact",
    "[Theory",
    "subtest ",
];
/// Where one test in the source is several of the runner.
const OF_SEVERAL: &[&str] = &[
    "parametrize",
    ".each",
    "@ParameterizedTest",
    "#[case",
    "#[rstest",
    "#[test_case",
    "TEST_P(",
    "subTest(",
    "t.Run(",
    "[InlineData",
    "[Theory",
    "forEach(",
];
/// Of tests that are there and do not run.
const OF_SKIPPED: &[&str] =
    &["skip", "Skip", "#[ignore", "xit(", "xtest(", "xdescribe(", "@Disabled", "@Ignore", ".todo(", "DISABLED_"];

/// Whether a text has one of these signs.
pub(super) fn has(text: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| text.contains(sign))
}

/// Whether a text has tests.
pub(super) fn has_tests(text: &str) -> bool {
    count(text, OF_ONE) > 0
}

/// The number of tests that a text has lost, at most: those that it has no more, and those that are skipped now. Where one test in the
/// source is several of the runner, each value that was removed counts.
pub(super) fn lost(was: &str, is: &str) -> u64 {
    let less = |signs| count(was, signs).saturating_sub(count(is, signs));
    let tests = less(OF_ONE) + count(is, OF_SKIPPED).saturating_sub(count(was, OF_SKIPPED));
    let values = |text: &str| text.matches([',', '\n']).count() as u64;
    if count(was, OF_SEVERAL) > 0 { tests.max(values(was).saturating_sub(values(is))) } else { tests }
}

/// The number of tests that a text has more than before.
pub(super) fn gained(was: &str, is: &str) -> u64 {
    count(is, OF_ONE).saturating_sub(count(was, OF_ONE))
}

/// The number of tests that a text has gained, at most: where one test in the source is several of the runner, each new value counts; and so
/// does each new example in documentation.
pub(super) fn gained_at_most(was: &str, is: &str) -> u64 {
    let number = |text: &str, signs: &[char]| text.matches(signs).count() as u64;
    let examples = |text: &str| (text.matches(">>>").count() + text.matches("```").count()) as u64;
    let values =
        if count(is, OF_SEVERAL) > 0 { number(is, &[',', '\n']).saturating_sub(number(was, &[',', '\n'])) } else { 0 };
    gained(was, is).max(values) + examples(is).saturating_sub(examples(was))
}

/// Whether a test of this name is in a text, behind the suite that reports put before it and without the parameters behind it.
pub(super) fn has_test(text: &str, name: &str) -> bool {
    let plain = plain(name);
    text.contains(plain) || has_name(text, last(plain))
}

/// Whether a test that was in a text is in it no more, or does not run any more: a part of its name is gone, or more is skipped.
pub(super) fn has_lost(was: &str, is: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut parts = plain(name).split(|c| !is_part(c)).filter(|part| !part.is_empty());
    let is_gone = parts.any(|part| was.contains(part) && !is.contains(part));
    let is_of_several = plain(name) != name && count(was, OF_SEVERAL) > 0 && was != is;
    has_test(was, name) && (is_gone || is_of_several || count(is, OF_SKIPPED) > count(was, OF_SKIPPED))
}

/// Whether two tests have the same name, whatever their suites and parameters are.
pub(super) fn is_called_alike(one: &str, other: &str) -> bool {
    last(plain(one)) == last(plain(other))
}

fn plain(name: &str) -> &str {
    name.split(['[', '(']).next().unwrap_or(name).trim_end()
}

fn last(plain: &str) -> &str {
    plain.rsplit([' ', ':', '.', '/']).next().unwrap_or(plain)
}

/// How often these signs are in a text, each at the beginning of a word.
fn count(text: &str, signs: &[&str]) -> u64 {
    // `regex.test(` is no test, and `pytest.mark.skip` skips one.
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || (c == '.' && signs == OF_ONE);
    let begins =
        |at: usize, sign: &str| !(sign.starts_with(|c: char| c.is_alphanumeric()) && text[..at].ends_with(is_part));
    let each = signs.iter().map(|sign| text.match_indices(sign).filter(|(at, sign)| begins(*at, sign)).count());
    each.sum::<usize>() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_lost_as_often_as_a_text_has_less_of_them_or_skips_them() {
        let two = "def test_a():\n    emit(1)\n\ndef test_b():\n    submit(2)\n";
        for (was, is, number) in [
            (two, "", 2),
            (two, "def test_a():\n    pass\n", 1),
            (two, two, 0),
            (two, "import pytest\n@pytest.mark.skip\ndef test_a():\n    emit(1)\n\ndef test_b():\n    submit(2)\n", 1),
            ("it('adds', f); it.each([1, 2, 3])('halves', g);", "it('adds', f);", 3),
            ("it('adds', f); it('halves', g);", "it('adds', f); it.skip('halves', g);", 1),
            ("#[test]\nfn a() {}", "#[test]\n#[ignore]\nfn a() {}", 1),
        ] {
            assert_eq!(lost(was, is), number, "{was} / {is}");
        }
        assert_eq!((gained("", two), gained(two, "")), (2, 0));
        assert!(has_tests(two) && !has_tests("regex.test(x); emit(1)"));
    }

    #[test]
    fn a_test_is_lost_by_its_name_or_the_name_of_its_suite() {
        let was = "class TestSums:\n    def test_a(self): pass\n    def test_b(self): pass\n";
        assert!(has_lost(was, "class TestSums:\n    def test_b(self): pass\n", "tests.sums.TestSums test_a"));
        assert!(has_lost(was, &was.replace("TestSums", "TestAll"), "tests.sums.TestSums test_a"));
        assert!(!has_lost(was, &was.replace("pass", "return"), "tests.sums.TestSums test_a"));
        assert!(!has_lost(was, "", "tests.other test_c"));
        let several = "@pytest.mark.parametrize('n', [1, 2])\ndef test_n(n): pass\n";
        assert!(has_lost(several, &several.replace(", 2", ""), "tests.n test_n[2]"));
        assert!(!has_lost(several, several, "tests.n test_n[2]"));
    }
}
