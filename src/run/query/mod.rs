//! Notices an answer that ends by asking, in prose, for what reading could have given: a file, or variables of the environment. Only the
//! last sentence counts, and it must say that the speaker wants to see exactly one named thing, so that a finished answer is never mistaken.

mod first;

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// What the model asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Query {
    /// The text of a file.
    File {
        /// Its path, as the model wrote it.
        path: String,
    },
    /// A variable of the environment.
    Env {
        /// Its name; `None`: which ones are set.
        name: Option<String>,
    },
}

/// Bytes of the last sentence; a longer one asks for nothing.
const SENTENCE: usize = 400;

/// The query that a text ends with, if it does, as an edition of the rules sees it.
pub(super) fn detect(text: &str, edition: u32) -> Option<Query> {
    if edition == 0 {
        return first::detect(text);
    }
    let line = text.trim().lines().next_back()?.replace('\u{2019}', "'");
    let sentence = last_sentence(line.trim().trim_start_matches(['-', '*', '>', ' ']));
    if sentence.len() > SENTENCE {
        return None;
    }
    file(sentence).or_else(|| variable(sentence))
}

/// What comes after the last full stop or colon within the line.
fn last_sentence(line: &str) -> &str {
    let body = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    let begin = [". ", "! ", "? ", ": ", "; "].iter().filter_map(|end| body.rfind(end).map(|at| at + end.len())).max();
    line[begin.unwrap_or(0)..].trim_start_matches(['*', '_', ' '])
}

/// What may stand before the wish.
const LEAD: &str = r"(?:(?:ok|okay|now|first|next|then|so|also|and|but|before that|to [^,]{1,80}|in order to [^,]{1,80}|for (?:this|that)),? )*";
/// To want to see something.
const WISH: &str = r"(?:i (?:(?:first|now|next|also|still) )?(?:need to|have to|must|want to|would like to|am going to|will need to|would need to|would have to|will have to|will) |i'll (?:(?:first|now|next|also) )?(?:need to |have to )?|i'd (?:like to|need to|have to) |i'm going to |let me (?:(?:first|now|next|also|quickly) )?|(?:can|could|may) i (?:please )?)(?:(?:first|now|next|also) )?(?:read|see|look at|look into|check|view|inspect|open|examine|consult|(?:have|take) a look at) ";
/// To ask somebody for something.
const PLEASE: &str = r"(?:(?:(?:can|could|would|will) you (?:please )?|please )(?:show|share|provide|give|paste|send|print|tell)|show|tell)(?: me| us)?(?: with)? ";
/// What may stand before a path.
const ARTICLES: &str = r"(?:(?:the|a|this|that|what is in|what's in|full|whole|entire|current|actual|exact|file|files|contents?|text|source|code|of|in|at|named|called|inside) )*";
/// What may follow a path: why, and in which order.
const TAIL: &str = r"(?: file)?(?:,? (?:first|now|next|again|too|please|before|to|so|in order|for|and|because|since|as|in full)(?:[ ,].*)?)?";
/// The name of a variable.
const NAME: &str = r#"["'`*]*\$?\{?([a-z_][a-z0-9_]*)\}?["'`*]*"#;

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("^{LEAD}{text}[ .?!:\u{2026}]*$")).expect("a pattern that is tested")
}

fn file(sentence: &str) -> Option<Query> {
    static ASKS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let path = r#"["'`*]*([^ "'`*?!,;…]+)["'`*]*"#;
        [
            pattern(&format!("(?:{WISH}|{PLEASE}){ARTICLES}{path}({TAIL})")),
            pattern(&format!(
                "(?:what(?:'s| is| are) (?:inside|in|the (?:contents?|text|source|code) of)) {ARTICLES}{path}()"
            )),
            pattern(&format!("(?:what does|how does) {ARTICLES}{path}(?: file)? (?:contain|look like|look|say)()")),
        ]
    });
    let lower = sentence.to_ascii_lowercase(); // of the same length
    let found = ASKS.iter().find_map(|asks| asks.captures(&lower))?;
    let path = sentence[found.get(1)?.range()].trim_end_matches(['.', ':']);
    let mut others = found.get(2)?.as_str().split([' ', ',', '`', '"']);
    let is_alone = !others.any(|word| is_path(word.trim_end_matches(['.', '?', '!', ':', '\u{2026}'])));
    (is_path(path) && is_alone).then(|| Query::File { path: path.to_owned() })
}

fn variable(sentence: &str) -> Option<Query> {
    static LISTS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let where_ = r"(?: (?:here|now|to me|in (?:the|this|my) (?:environment|shell|sandbox|session|container)))?";
        let vars = r"(?:environment|env) (?:variables|vars)";
        [
            pattern(&format!(
                r"(?:which|what) (?:of the )?(?:{vars} (?:are|do i have)|(?:variables|vars) are)(?: currently| already)?(?: set| exported| available| defined| present| there)?{where_}[ ]*[?]"
            )),
            pattern(&format!(
                r"{WISH}(?:which|what) {vars} (?:are|is) (?:set|available|defined|exported|present|there){where_}"
            )),
            pattern(&format!(
                r"(?:{WISH}|{PLEASE}|what(?:'s| is| are) )(?:(?:all|the|my|your|current|list|values|of|full) )*{vars}{where_}"
            )),
        ]
    });
    static ONE: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let value = r"(?:the )?(?:current )?(?:value|content|setting)s? of ";
        let kind = r"(?:the )?(?:(?:environment|env) )?(?:variable )?";
        let after = r"(?: (?:environment |env )?variable)?";
        let know = WISH.replace("(?:read|", "(?:know|read|");
        [
            pattern(&format!(r"(?:{know}|{PLEASE}|what(?:'s| is) )(?:{value})?{kind}{NAME}{after}")),
            pattern(&format!(r"what(?:'s| is) {kind}{NAME}{after} set to[ ]*[?]")),
            pattern(&format!(
                r"is {kind}{NAME}{after} (?:set|defined|exported)(?: (?:here|now|in (?:the|this|my) [a-z]+))?[ ]*[?]"
            )),
        ]
    });
    let lower = sentence.to_ascii_lowercase(); // of the same length
    if LISTS.iter().any(|lists| lists.is_match(&lower)) {
        return Some(Query::Env { name: None });
    }
    let found = ONE.iter().find_map(|one| one.captures(&lower))?;
    let name = &sentence[found.get(1)?.range()];
    let says_so = sentence.contains('$') || sentence.contains("value of") || lower.contains("variable");
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let asks = says_so || sentence.ends_with("set?") || sentence.ends_with("set to?");
    (is_name && asks).then(|| Query::Env { name: Some(name.to_owned()) })
}

/// One word with a dot or a slash in it, made of what paths are made of.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-/+@".contains(c);
    let has_mark = text.contains('/') || text.trim_start_matches('.').contains('.');
    !text.is_empty() && text.len() <= 200 && text.chars().all(plain) && has_mark && !text.contains("..")
}

#[cfg(test)]
mod tests;
