//! Signs that a text has tests, for the common runners. Pure.

use super::names::has_name;

/// Signs of a test program in C or C++.
pub(super) const OF_C: &[&str] = &["TEST(", "TEST_F(", "TEST_P(", "TEST_CASE(", "BOOST_AUTO_TEST", "int main("];
/// Signs of a file that Python's unittest finds.
pub(super) const OF_PYTHON: &[&str] = &["unittest", "pytest", "def test", "doctest"];
/// Signs before or at the name of one test.
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
/// Signs of one test in the source that the runner reports as several.
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
    "macro_rules!",
];
/// Signs of tests that do not run.
const OF_SKIPPED: &[&str] =
    &["skip", "Skip", "#[ignore", "xit(", "xtest(", "xdescribe(", "@Disabled", "@Ignore", ".todo(", "DISABLED_"];

/// Returns whether a text has one of these signs.
pub(super) fn has(text: &str, signs: &[&str]) -> bool {
    signs.iter().any(|sign| text.contains(sign))
}

/// Returns whether a text has tests.
pub(super) fn has_tests(text: &str) -> bool {
    count(text, OF_ONE) > 0
}

/// Returns the maximum number of tests that a text may have lost: those that are missing and those
/// that are skipped now. Where the runner reports one test of the source as several, each removed
/// value counts.
pub(super) fn lost(was: &str, is: &str) -> u64 {
    let less = |signs| count(was, signs).saturating_sub(count(is, signs));
    let tests = less(OF_ONE) + count(is, OF_SKIPPED).saturating_sub(count(was, OF_SKIPPED));
    let values = |text: &str| text.matches([',', '\n']).count() as u64;
    if count(was, OF_SEVERAL) > 0 { tests.max(values(was).saturating_sub(values(is))) } else { tests }
}

/// Returns how many more tests a text has than before.
pub(super) fn gained(was: &str, is: &str) -> u64 {
    count(is, OF_ONE).saturating_sub(count(was, OF_ONE))
}

/// Returns the maximum number of tests that a text may have gained. Where the runner reports one
/// test of the source as several, each new value counts. Each new example in documentation counts
/// too.
pub(super) fn gained_at_most(was: &str, is: &str) -> u64 {
    let number = |text: &str, signs: &[char]| text.matches(signs).count() as u64;
    let examples = |text: &str| (text.matches(">>>").count() + text.matches("```").count()) as u64;
    let values =
        if count(is, OF_SEVERAL) > 0 { number(is, &[',', '\n']).saturating_sub(number(was, &[',', '\n'])) } else { 0 };
    gained(was, is).max(values) + examples(is).saturating_sub(examples(was))
}

/// Returns whether a text has a test of this name. Ignores the suite that reports put before the
/// name, and the parameters after it.
pub(super) fn has_test(text: &str, name: &str) -> bool {
    let plain = plain(name);
    text.contains(plain) || has_name(text, last(plain))
}

/// Returns whether a test of a text is gone or no longer runs: a part of its name is gone, or more
/// tests are skipped.
pub(super) fn has_lost(was: &str, is: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut parts = plain(name).split(|c| !is_part(c)).filter(|part| !part.is_empty());
    let is_gone = parts.any(|part| was.contains(part) && !is.contains(part));
    let is_of_several = plain(name) != name && count(was, OF_SEVERAL) > 0 && was != is;
    has_test(was, name) && (is_gone || is_of_several || count(is, OF_SKIPPED) > count(was, OF_SKIPPED))
}

/// Returns whether two tests have the same name, regardless of their suites and parameters.
pub(super) fn is_called_alike(one: &str, other: &str) -> bool {
    last(plain(one)) == last(plain(other))
}

/// Returns the name of a test without its parameters; the whole name if it begins with them.
pub(super) fn plain(name: &str) -> &str {
    name.split(['[', '(']).next().map(str::trim_end).filter(|plain| !plain.is_empty()).unwrap_or(name)
}

fn last(plain: &str) -> &str {
    plain.rsplit([' ', ':', '.', '/']).next().unwrap_or(plain)
}

/// Counts these signs in a text, each at the beginning of a word.
fn count(text: &str, signs: &[&str]) -> u64 {
    // `regex.test(` is not a test, but `pytest.mark.skip` skips one.
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
