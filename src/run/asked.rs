//! Whether a task asks for a change of a file: it names the file in a sentence that says what to do with it. Pure.

/// Words of a sentence that asks for a change.
const DOES: &str = "add adapt adjust append bump change configure create declare delete drop edit enable disable extend format insert \
introduce move put reformat remove rename replace reorder rewrite set sort split update write";
/// Words of a sentence that names a file for another reason: the file must pass, or must stay.
const STAYS: &str = "pass passes passing green fail fails failing keep leave never not don't without";
/// Bytes of the shortest name that is looked for without its folder: a shorter one is a word like others.
const SHORTEST: usize = 5;

/// Returns whether the text asks for a change of the file at this path.
pub(super) fn asks_to_change(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    sentences(text).any(|sentence| {
        let words: Vec<&str> =
            sentence.split(|c: char| c.is_whitespace() || "`\"'()[],;".contains(c)).map(trim).collect();
        let has = |list: &str| words.iter().any(|word| list.split_whitespace().any(|it| word.eq_ignore_ascii_case(it)));
        let is_named = words.iter().any(|word| *word == path || (*word == name && name.len() >= SHORTEST));
        is_named && has(DOES) && !has(STAYS)
    })
}

/// A word without the signs of its sentence; the dot that a file name begins with stays.
fn trim(word: &str) -> &str {
    word.trim_start_matches("./").trim_end_matches(['.', ':', '!', '?'])
}

/// Lines of a list and paragraphs are sentences, too.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n")
        .flat_map(|part| part.split("\n-").flat_map(|part| part.split("\n*")))
        .flat_map(|part| part.split(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_to_be_changed_is_told_from_one_that_is_only_named() {
        for (text, path, asks) in [
            ("Add a target `fmt` to the Makefile", "Makefile", true),
            ("Rename `test_zero` in tests/test_calc.py to `test_nothing`.", "tests/test_calc.py", true),
            ("Fix the parser.\n\n- Set the edition in Cargo.toml to 2024\n- Run the checks", "Cargo.toml", true),
            ("Update `./web/package.json`: it lacks a licence.", "web/package.json", true),
            ("Make the tests in tests/test_calc.py pass", "tests/test_calc.py", false),
            ("Change the parser so that tests/test_calc.py passes", "tests/test_calc.py", false),
            ("Add a cache. tests/test_calc.py shows how it is used.", "tests/test_calc.py", false),
            ("Do not change tests/test_calc.py", "tests/test_calc.py", false),
            ("Add a flag to the library", "web/lib", false),
            ("Add a flag to calc.py", "tests/test_calc.py", false),
        ] {
            assert_eq!(asks_to_change(text, path), asks, "{text}");
        }
    }
}
