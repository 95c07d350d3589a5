//! Search words of any text, in the syntax of full-text queries, quoted so that nothing in them has
//! a special meaning.

/// The maximum number of words of a text that are searched: its first ones.
const MOST: usize = 32;
/// The longest word that is searched, in bytes.
const LONGEST: usize = 64;
/// Words that occur in nearly every English text, or in nearly every memory of a run, and say
/// nothing about it.
const EMPTY: &[&str] = &[
    "all", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "change", "changed", "changes", "do",
    "does", "done", "file", "files", "for", "from", "has", "have", "how", "if", "in", "into", "is", "it", "its",
    "make", "must", "no", "not", "of", "on", "or", "outcome", "should", "so", "task", "tasks", "that", "the", "then",
    "there", "these", "this", "to", "use", "was", "we", "what", "when", "where", "which", "will", "with", "you",
    "your",
];

/// Returns the different words of a text in their order, each as a separate query: letters and
/// digits in quotes.
pub(super) fn queries(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    // A text may repeat one word over and over, and words far behind its start say little about it.
    for word in text.split(|c: char| !c.is_alphanumeric()).take(100 * MOST) {
        let word = word.to_lowercase();
        let says_something = word.len() > 1 && word.len() <= LONGEST && EMPTY.binary_search(&word.as_str()).is_err();
        if says_something && !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MOST {
            break;
        }
    }
    words.into_iter().map(|word| format!("\"{word}\"")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_once_in_their_order_and_without_syntax() {
        let text = "Fix NEAR(parser, 2) -- the \"parse_date\"* AND col:x OR (fix)^ {été} 🦀\0";
        let words = ["fix", "near", "parser", "parse", "date", "col", "été"].map(|word| format!("\"{word}\""));
        assert_eq!(queries(text), words);
        assert_eq!(queries("the and of 🦀 \" * a"), Vec::<String>::new());
    }

    #[test]
    fn however_long_a_text_is_few_words_are_looked_for() {
        let text: String = (0..20_000).map(|number| format!("w{number} ")).collect();
        assert_eq!(queries(&text).len(), MOST);
        assert_eq!(queries(&"x".repeat(200_000)), Vec::<String>::new());
    }

    #[test]
    fn words_that_say_nothing_are_sorted() {
        assert!(EMPTY.is_sorted());
    }
}
