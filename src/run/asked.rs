//! Detects whether a task asks for a change of a given file. A sentence must ask for a change and
//! name the file, its folder or all tests. Pure.

/// Verbs that ask for a change.
const DOES: &str = "add adapt adjust append bump change configure convert create declare define delete drop edit enable disable exclude \
extend format include increase insert introduce lower make migrate move pin put raise reformat relax remove rename replace reorder require rewrite \
set sort split switch turn update upgrade write";
/// Verbs that also ask for a change of other files, with a test as the reason.
const DOES_FOR_TESTS: &str = "allow correct fix let mend repair use";
/// Verbs that ask to format files.
const FORMATS: &str = "format reformat";
/// Verbs that ask to run a program. `FORMATTERS` are the names of formatters, and words for them.
const RUNS: &str = "apply run use";
const FORMATTERS: &str = "formatter formatters prettier black rustfmt gofmt eslint ruff";
/// Verbs that ask to change many tests at once.
const CHANGES: &str = "adapt adjust change convert edit migrate move rename rewrite split update";
const ALL: &str = "all every each";
const TESTS: &str = "tests testcases specs";
/// Words that may come between a verb or a formatter and the tests.
const BETWEEN: &str =
    "a the of our these existing unit integration on over to for in across code sources and all every each";
/// Words that begin a new statement within a sentence.
const TURNS: &str = "that see ensure check run make if until while because where when which so add";
/// Words of a sentence that names a file for another reason: the file must pass, or must not
/// change.
const STAYS: &str = "pass passes passing green fail fails failing keep leave never not don't without";
/// The length of the shortest file name, in bytes, that counts without its folder. A shorter name
/// may be an ordinary word.
const SHORTEST: usize = 5;

/// Returns true if the text asks for a change of the file at this path.
pub(super) fn asks_to_change(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    sentences(text).any(|sentence| {
        let words: Vec<&str> =
            sentence.split(|c: char| c.is_whitespace() || "`\"'()[],".contains(c)).map(trim).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let has = |list: &str| words.iter().any(|word| is_of(list, word));
        let is_folder = |word: &str| word.strip_suffix('/').is_some_and(|_| path.starts_with(word));
        let is_name = |word: &str| word.eq_ignore_ascii_case(name) && name.len() >= SHORTEST;
        let is_it = |word: &str| word.eq_ignore_ascii_case(path) || is_name(word) || is_folder(word);
        let is_named = words.iter().any(|word| is_it(word));
        let formats = has(FORMATS) || (has(RUNS) && has(FORMATTERS));
        let is_of_tests = || is_test(path) && (formats_tests(&words) || changes_all_tests(&words));
        let does = has(DOES) || (has(DOES_FOR_TESTS) && !is_test(path));
        ((is_named && (does || formats)) || is_of_tests()) && !has(STAYS)
    })
}

fn is_of(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|it| word.eq_ignore_ascii_case(it))
}

/// Returns true if the sentence asks to format tests. Only the words of `BETWEEN` may come between
/// the verb and the tests.
fn formats_tests(words: &[&str]) -> bool {
    (0..words.len()).any(|at| {
        let is_verb = is_of(FORMATS, words[at]);
        let runs = || words[..at].iter().rev().find(|word| !is_of(BETWEEN, word)).is_some_and(|word| is_of(RUNS, word));
        let is_program = || is_of(FORMATTERS, words[at]) && runs();
        (is_verb || is_program()) && {
            let rest = &words[at + 1..];
            let next = rest.iter().position(|word| !is_of(BETWEEN, word));
            next.is_some_and(|next| are_tests(&rest[next..], rest[..next].last().copied().unwrap_or_default()))
        }
    })
}

/// Returns true if a verb of `CHANGES` is followed by `all tests`, with no other statement between
/// them.
fn changes_all_tests(words: &[&str]) -> bool {
    let verbs = (0..words.len()).filter(|at| is_of(CHANGES, words[*at]));
    verbs.into_iter().any(|verb| {
        let rest = &words[verb + 1..];
        let end = rest.iter().position(|word| is_of(TURNS, word)).unwrap_or(rest.len());
        let rest = &rest[..end];
        (0..rest.len()).filter(|at| is_of(ALL, rest[*at])).any(|all| {
            let behind = &rest[all + 1..];
            let next = behind.iter().position(|word| !is_of("the of our these existing unit integration", word));
            next.is_some_and(|next| are_tests(&behind[next..], rest[all]))
        })
    })
}

/// Returns true if the words begin with tests as a whole: `tests`, `test files`, or `test` after
/// `every`. `test` does not count if it only describes the next word.
fn are_tests(words: &[&str], before: &str) -> bool {
    let next = words.get(1).copied().unwrap_or_default();
    let first = words.first().copied().unwrap_or_default();
    let is_one = || is_of("every each", before) && (next.is_empty() || is_of("to for in of with by and from", next));
    is_of(TESTS, first) || (is_of("test", first) && (is_of("files sources modules suites", next) || is_one()))
}

/// Returns true if the path has the name of a test file, or is in a folder of tests.
fn is_test(path: &str) -> bool {
    path.split(['/', '_', '-', '.']).any(|word| matches!(word, "test" | "tests" | "spec" | "__tests__"))
}

/// Removes punctuation from the end of a word and `./` from its beginning. Keeps the leading dot of
/// a file name.
fn trim(word: &str) -> &str {
    word.trim_start_matches("./").trim_end_matches(['.', ':', '!', '?'])
}

/// Splits a text into sentences. Paragraphs and list items count as sentences too.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n")
        .flat_map(|part| part.split("\n-").flat_map(|part| part.split("\n*")))
        .flat_map(|part| part.split(". ").flat_map(|part| part.split(';')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_to_be_changed_is_told_from_one_that_is_only_named() {
        for (text, path, asks) in [
            ("Add a target `fmt` to the Makefile", "Makefile", true),
            ("Add a target `fmt` to the makefile", "Makefile", true),
            ("Rename `test_zero` in tests/test_calc.py to `test_nothing`.", "tests/test_calc.py", true),
            ("Fix the parser.\n\n- Set the edition in Cargo.toml to 2024\n- Run the checks", "Cargo.toml", true),
            ("Update `./web/package.json`: it lacks a licence.", "web/package.json", true),
            ("Use LTO in Cargo.toml", "Cargo.toml", true),
            ("Use tests/test_calc.py as the specification", "tests/test_calc.py", false),
            ("Fix calc.py; tests/test_calc.py fails", "tests/test_calc.py", false),
            ("Make tsconfig.json strict and give `born` a type.", "tsconfig.json", true),
            ("Make the tests in tests/test_calc.py pass", "tests/test_calc.py", false),
            ("Change the parser so that tests/test_calc.py passes", "tests/test_calc.py", false),
            ("Add a cache. tests/test_calc.py shows how it is used.", "tests/test_calc.py", false),
            ("Do not change tests/test_calc.py", "tests/test_calc.py", false),
            ("Mend calc.py. Then run the formatter over all tests.", "tests/test_calc.py", true),
            ("Reformat the tests", "web/cart.test.ts", true),
            ("Rename the fixtures in tests/unit/", "tests/unit/test_calc.py", true),
            ("Update all tests to the new names", "tests/test_calc.py", true),
            ("Run all tests", "tests/test_calc.py", false),
            ("Format calc.py so that all tests pass", "tests/test_calc.py", false),
            ("Add tests for the formatter", "tests/test_calc.py", false),
            ("Update the parser, and add tests", "tests/test_calc.py", false),
            ("Adapt all the tests, and every test in web/, to it", "tests/test_calc.py", true),
            ("Rename `a` to `b` in every test", "tests/test_calc.py", true),
            ("Format the code and all tests with black", "tests/test_calc.py", true),
            ("Convert all strings in a.py to bytes and run the tests", "tests/test_calc.py", false),
            ("Use black names in a.py; tests cover it", "tests/test_calc.py", false),
            ("Adapt a.py to all needs of the test server", "tests/test_calc.py", false),
            ("Rename x in every module, and see that each test still imports it.", "tests/test_calc.py", false),
            ("Format the output of a.py as the tests want it", "tests/test_calc.py", false),
            ("Add a flag to the library", "web/lib", false),
            ("Add a flag to calc.py", "tests/test_calc.py", false),
        ] {
            assert_eq!(asks_to_change(text, path), asks, "{text}");
        }
    }
}
