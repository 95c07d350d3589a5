//! Detection of an answer that ends with a request in prose for a file or for environment
//! variables. Only the last sentence counts, and it must ask for exactly one named thing. So a
//! finished answer is not mistaken for a request.

use regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// A request of the model in prose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelQuery {
    /// The text of a file.
    File {
        /// The path, as the model wrote it.
        path: String,
    },
    /// Environment variables.
    Env {
        /// The name of one variable; `None` asks which variables are set.
        name: Option<String>,
    },
}

/// The longest sentence that counts as a request, in bytes.
const SENTENCE: usize = 400;

/// Returns the request that a text ends with, if there is one. One sentence may follow the request:
/// a plea to send the file, or the purpose of the request.
pub(super) fn detect(text: &str) -> Option<ModelQuery> {
    static AFTER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:(?:(?:can|could|would) you )?(?:please )?(?:provide|share|paste|show|send|post)(?: me)? (?:it|that|this|the file|the contents?|its contents?)(?: here)?(?: please)?|(?:then|once|after|with|this|that|it) [^?]{1,200}|thanks?(?: you)?)",
        )
    });
    let line = text.trim().lines().next_back()?.replace('\u{2019}', "'");
    let line = line.trim().trim_start_matches(['-', '*', '>', ' ']);
    let (before, sentence) = last_sentence(line);
    let asks =
        |sentence: &str| (sentence.len() <= SENTENCE).then(|| file(sentence).or_else(|| variable(sentence))).flatten();
    let is_after = || sentence.len() <= SENTENCE && AFTER.is_match(&sentence.to_ascii_lowercase());
    asks(sentence).or_else(|| if is_after() { asks(last_sentence(before).1) } else { None })
}

/// Splits a line before its last sentence.
fn last_sentence(line: &str) -> (&str, &str) {
    let body = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    let begin = [". ", "! ", "? ", ": ", "; "].iter().filter_map(|end| body.rfind(end).map(|at| at + end.len())).max();
    let (before, sentence) = line.split_at(begin.unwrap_or(0));
    (before.trim_end(), sentence.trim_start_matches(['*', '_', ' ']))
}

/// Words before the request.
const LEAD: &str = r"(?:(?:ok|okay|alright|sure|well|great|yes|right|now|first|next|then|so|also|and|but|before that|before (?:i|we) [^,]{1,80}|to [^,]{1,80}|in order to [^,]{1,80}|for (?:this|that)),? )*";
/// Phrases that announce a wish, before the verb.
const WANTS: &str = r"(?:(?:i|we) (?:(?:first|now|next|also|still|just|really|then) )?(?:need to|have to|must|should|want to|would like to|am going to|are going to|will need to|would need to|will have to|would have to|might need to|will|shall) |(?:i'll|we'll) (?:(?:first|now|next|also|just|then) )?(?:need to |have to )?|(?:i'd|we'd) (?:like to|need to|have to|love to) |(?:i'm|we're) going to |(?:let me|let's|let us) (?:(?:first|now|next|also|quickly|just) )?|(?:can|could|may|shall|should) (?:i|we) (?:please )?|it (?:would|will) (?:help|be helpful|be useful) (?:me )?(?:if i could |to ))(?:please )?(?:(?:first|now|next|also|just|go ahead and|quickly|carefully) )*";
/// Verbs of reading.
const READS: &str = r"(?:(?:read|re-read|reread|see|look at|look into|look inside|look through|check|check out|view|review|inspect|open|examine|consult|study|analyze|(?:have|take) (?:a |another )?(?:closer |quick )?look at|see what(?:'s| is) in|check what(?:'s| is) in|find out what(?:'s| is) in|know what(?:'s| is) in|get|obtain|fetch|retrieve) |(?:start|begin) (?:by|with) (?:reading|looking at|checking|viewing|reviewing|inspecting|opening|examining|studying) )";
/// Phrases that ask the reader for something.
const PLEASE: &str = r"(?:(?:(?:can|could|would|will) you (?:please |kindly )?|please |i (?:will )?need you to |i'll need you to |i (?:would )?ask you to )(?:show|share|provide|give|paste|send|tell|upload)|show|tell|give)(?: me| us)?(?: with)? ";
/// Phrases that ask the reader to add something to the chat.
const ADD: &str = r"(?:(?:(?:can|could|would|will) you (?:please )?|please |i (?:will )?need you to |i'll need you to )(?:add|include|attach)) ";
/// Words before a path.
const ARTICLES: &str = r"(?:(?:the|a|this|that|your|my|our|its|what is in|what's in|full|whole|entire|complete|current|actual|exact|file|files|contents?|text|source|code|of|in|at|named|called|inside) )*";
/// Words after a path: a reason or an order.
const TAIL: &str = r"(?: file)?(?:,? (?:first|now|next|again|too|please|here|before|to|so|in order|for|and|because|since|as|in full|in detail|closely|more closely|if (?:that is|that's|it is|it's) (?:okay|ok|possible))(?:[ ,].*)?)?";
/// The name of a variable.
const NAME: &str = r#"["'`*]*\$?\{?([a-z_][a-z0-9_]*)\}?["'`*]*"#;
/// File names without a dot or a folder.
const BARE: [&str; 24] = [
    "BUILD",
    "CHANGELOG",
    "CODEOWNERS",
    "CONTRIBUTING",
    "COPYING",
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "LICENSE",
    "Makefile",
    "NOTICE",
    "Pipfile",
    "Podfile",
    "Procfile",
    "README",
    "Rakefile",
    "Vagrantfile",
    "VERSION",
    "WORKSPACE",
    "justfile",
    "makefile",
];

fn pattern(text: &str) -> Regex {
    Regex::new(&format!("^{LEAD}(?:{text})[ .?!:\u{2026}]*$")).expect("a pattern that is tested")
}

fn file(sentence: &str) -> Option<ModelQuery> {
    static ASKS: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        let path = r#"["'`*]*([^ "'`*?!,;…]+)["'`*]*"#;
        [
            pattern(&format!("(?:{WANTS}{READS}|{PLEASE}){ARTICLES}{path}({TAIL})")),
            pattern(&format!(
                "{ADD}{ARTICLES}{path}((?: file)? to (?:the|this|our) (?:chat|conversation|context)(?: first| please)?)"
            )),
            pattern(&format!(
                "(?:what(?:'s| is| are) (?:inside|in|the (?:contents?|text|source|code) of)) {ARTICLES}{path}()"
            )),
            pattern(&format!("(?:what does|how does) {ARTICLES}{path}(?: file)? (?:contain|look like|look|say)()")),
        ]
    });
    let lower = sentence.to_ascii_lowercase(); // same length as `sentence`
    let found = ASKS.iter().find_map(|asks| asks.captures(&lower))?;
    let path = sentence[found.get(1)?.range()].trim_end_matches(['.', ':']);
    let mut others = found.get(2)?.as_str().split([' ', ',', '`', '"']);
    let is_alone = !others.any(|word| is_path(word.trim_end_matches(['.', '?', '!', ':', '\u{2026}'])));
    (is_path(path) && is_alone).then(|| ModelQuery::File { path: path.to_owned() })
}

fn variable(sentence: &str) -> Option<ModelQuery> {
    static LISTS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let where_ = r"(?: (?:here|now|to me|in (?:the|this|my) (?:environment|shell|sandbox|session|container)))?";
        let vars = r"(?:environment|env)(?: (?:variables|vars))?";
        let named = r"(?:environment|env) (?:variables|vars)";
        [
            pattern(&format!(
                r"(?:which|what) (?:of the )?(?:{named} (?:are|do i have)|(?:variables|vars) are)(?: currently| already)?(?: set| exported| available| defined| present| there)?{where_}[ ]*[?]"
            )),
            pattern(&format!(
                r"{WANTS}(?:{READS}|know |list |find out )(?:which|what) {named} (?:are|is) (?:set|available|defined|exported|present|there){where_}"
            )),
            pattern(&format!(
                r"(?:{WANTS}(?:{READS}|know |list |print |dump )|{PLEASE}|what(?:'s| is| are) (?:in(?:side)? )?)(?:(?:all|the|my|your|this|current|contents?|list|values|of|full|what(?:'s| is) in) )*{vars}{where_}(?: first| now| next| again| please)?"
            )),
        ]
    });
    static ONE: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let value = r"(?:the )?(?:current )?(?:value|content|setting)s? of ";
        let kind = r"(?:the )?(?:(?:environment|env) )?(?:variable )?";
        let after = r"(?: (?:environment |env )?variable)?";
        [
            pattern(&format!(
                r"(?:{WANTS}(?:{READS}|know )|{PLEASE}|what(?:'s| is) (?:in )?)(?:{value})?{kind}{NAME}{after}"
            )),
            pattern(&format!(r"what(?:'s| is) {kind}{NAME}{after} set to[ ]*[?]")),
            pattern(&format!(
                r"is {kind}{NAME}{after} (?:set|defined|exported)(?: (?:here|now|in (?:the|this|my) [a-z]+))?[ ]*[?]"
            )),
        ]
    });
    let lower = sentence.to_ascii_lowercase(); // same length as `sentence`
    if LISTS.iter().any(|lists| lists.is_match(&lower)) {
        return Some(ModelQuery::Env { name: None });
    }
    let found = ONE.iter().find_map(|one| one.captures(&lower))?;
    let name = &sentence[found.get(1)?.range()];
    let says_so = sentence.contains('$') || sentence.contains("value of") || lower.contains("variable");
    let is_name = name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let asks = says_so || sentence.ends_with("set?") || sentence.ends_with("set to?");
    (is_name && asks).then(|| ModelQuery::Env { name: Some(name.to_owned()) })
}

/// Returns true if the text is a path: one word of path characters that contains a dot or a slash,
/// or is in `BARE`.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-/+@".contains(c);
    let is_hidden = || text.strip_prefix('.').is_some_and(|name| name.len() > 1 && !name.starts_with('.'));
    let has_mark = text.contains('/') || text.trim_start_matches('.').contains('.') || is_hidden();
    let has_name = text.chars().any(char::is_alphanumeric);
    let is_file = has_mark || BARE.contains(&text);
    has_name && text.len() <= 200 && text.chars().all(plain) && is_file && !text.contains("..")
}

#[cfg(test)]
mod tests;
