//! A search for the text that a failed edit probably meant. Models quote from memory, and seeing
//! the actual text corrects them.

use super::bound;
use similar::TextDiff;
use std::collections::HashSet;
use std::time::Duration;

/// The number of places compared letter by letter. A comparison by words selects them.
const COMPARED: usize = 4;
/// The maximum size of each side in a comparison by letters, in bytes.
const MAX_COMPARED: usize = 2000;
/// The time limit of one comparison, after which its current result is used.
const COMPARE_TIME: Duration = Duration::from_millis(50);
/// The maximum number of lines shown.
const SHOWN: usize = 12;
/// The lowest likeness at which the nearest text is a useful hint.
const MIN_LIKENESS: f32 = 0.5;

/// Describes the part of `text` most similar to `old`. The result continues a message which says
/// that `old` was not found. It is empty if nothing is similar.
pub(super) fn nearest(text: &str, old: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let height = old.lines().count().clamp(1, lines.len().max(1));
    let best = likeliest(&lines, old, height)
        .into_iter()
        .map(|first| (likeness(&lines[first..first + height].join("\n"), old.trim_end_matches('\n')), first))
        .max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let Some((likeness, first)) = best.filter(|(likeness, _)| *likeness >= MIN_LIKENESS) else {
        return String::new();
    };
    let found = &lines[first..first + height];
    let unspaced = |text: &str| text.split_whitespace().collect::<String>();
    let how = match unspaced(&found.concat()) == unspaced(old) {
        true => "it differs only in white space".to_owned(),
        false => format!("{:.0} % alike", likeness * 100.0),
    };
    let mut message = format!("; the nearest text is in lines {}-{} ({how}):", first + 1, first + height);
    for (offset, line) in found.iter().take(SHOWN).enumerate() {
        message.push_str(&format!("\n{:>6}\t{}", first + offset + 1, bound::line(line, 300)));
    }
    message
}

/// Returns the first lines of the places that share the maximum number of words with `old`, in one
/// pass over the file.
fn likeliest(lines: &[&str], old: &str, height: usize) -> Vec<usize> {
    let wanted: HashSet<&str> = words(old).collect();
    let shared = |line: &&str| words(line).filter(|word| wanted.contains(word)).map(str::len).sum::<usize>();
    let weights: Vec<usize> = lines.iter().map(shared).collect();
    let mut weight: usize = weights.iter().take(height).sum();
    let mut places = Vec::new();
    for first in 0..(lines.len() + 1).saturating_sub(height) {
        places.push((weight, first));
        weight -= weights[first];
        weight += weights.get(first + height).copied().unwrap_or(0);
    }
    places.sort_by_key(|(weight, first)| (std::cmp::Reverse(*weight), *first));
    places.into_iter().take(COMPARED).map(|(_, first)| first).collect()
}

fn likeness(a: &str, b: &str) -> f32 {
    let (a, b) = (bound::head(a, MAX_COMPARED), bound::head(b, MAX_COMPARED));
    TextDiff::configure().timeout(COMPARE_TIME).diff_chars(a, b).ratio()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "fn one() {\n    1\n}\n\nfn two(x: u32) -> u32 {\n    x + 2\n}\n";

    #[test]
    fn the_nearest_text_is_shown_with_its_line_numbers() {
        assert_eq!(
            nearest(FILE, "fn two(x: u64) -> u64 {\n    x + 2\n"),
            "; the nearest text is in lines 5-6 (88 % alike):\n     5\tfn two(x: u32) -> u32 {\n     6\t    x + 2"
        );
    }

    #[test]
    fn a_difference_in_white_space_alone_is_called_one() {
        assert_eq!(
            nearest(FILE, "fn one() {\n\t1\n}"),
            "; the nearest text is in lines 1-3 (it differs only in white space):\n     1\tfn one() {\n     2\t    1\n     3\t}"
        );
    }

    #[test]
    fn what_is_like_nothing_gets_no_hint() {
        assert_eq!(nearest(FILE, "SELECT * FROM users WHERE name = ?"), "");
        assert_eq!(nearest("", "anything"), "");
    }

    #[test]
    fn a_large_file_is_searched_in_bounded_time() {
        let text = format!("{}let answer = 42;\n", "let other = 1;\n".repeat(200_000));
        assert!(nearest(&text, "let answer = 43;").starts_with("; the nearest text is in lines 200001-200001"));
    }
}
