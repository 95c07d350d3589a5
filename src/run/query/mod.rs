//! Detection of an answer that ends with a request in prose for a file or for environment
//! variables. Only the last sentence counts, and it must ask for exactly one named thing. So a
//! finished answer is not mistaken for a request.

use regex::bytes::{Regex, RegexBuilder};
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
    static PLEA: LazyLock<Regex> = LazyLock::new(|| pattern(SEND_IT));
    static AFTER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r"(?:{SEND_IT}|(?:then|once|after|with|this|that|it|i'll|i will|let me do) [^?]{{1,200}}|thanks?(?: you)?)"
        ))
    });
    static QUOTES: LazyLock<Regex> =
        LazyLock::new(|| bytes(r"(?:asks|says|prints|shows|reads|question|prompt|message):$"));
    let line = last_line(text)?.replace('\u{2019}', "'").replace('\u{2026}', "...");
    let line = line.trim().trim_start_matches(['-', '*', '>', ' ']);
    let (before, sentence) = last_sentence(line);
    if before.ends_with([':', ';']) && QUOTES.is_match(before.to_ascii_lowercase().as_bytes()) {
        return None;
    }
    let is_short = |sentence: &&str| sentence.len() <= SENTENCE;
    let asks = |sentence: &str| Some(sentence).filter(is_short).and_then(|one| file(one).or_else(|| variable(one)));
    let is_last = |pattern: &Regex| is_short(&sentence) && pattern.is_match(sentence.to_ascii_lowercase().as_bytes());
    let earlier = || Some(last_sentence(before).1).filter(is_short);
    asks(sentence)
        .or_else(|| earlier().and_then(asks).filter(|_| is_last(&AFTER)))
        .or_else(|| earlier().and_then(lacked_file).filter(|_| is_last(&PLEA)))
}

/// Returns the last line of a text, without a block of code behind it. A line that ends with a
/// colon is joined with a path behind it.
fn last_line(text: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.trim().lines().map(str::trim).collect();
    if lines.last().is_some_and(|last| last.starts_with("```")) {
        lines.pop();
        let open = lines.iter().rposition(|line| line.starts_with("```"))?;
        lines.truncate(open);
    }
    lines.retain(|line| !line.is_empty());
    let last = lines.pop()?;
    let is_only_path = is_path(last.trim_matches(['`', '"', '*', '-', ' ']));
    match lines.last().and_then(|before| before.strip_suffix(':')) {
        Some(before) if is_only_path => Some(format!("{before} {last}")),
        _ => Some(last.to_owned()),
    }
}

/// Splits a line before its last sentence.
fn last_sentence(line: &str) -> (&str, &str) {
    let body = line.trim_end_matches(|c: char| !c.is_alphanumeric());
    let begin = [". ", "! ", "? ", ": ", "; "].iter().filter_map(|end| body.rfind(end).map(|at| at + end.len())).max();
    let (before, sentence) = line.split_at(begin.unwrap_or(0));
    (before.trim_end(), sentence.trim_start_matches(['*', '_', ' ']))
}

/// A sentence that asks for what the sentence before it names.
const SEND_IT: &str = r"(?:(?:can|could|would) you )?(?:please )?(?:provide|share|paste|show|send|post)(?: me)? (?:it|that|this|them|the file|the (?:file )?contents?(?: of the file)?|its contents?)(?: here| with me)?(?: please)?";
/// Words before the request.
const LEAD: &str = r"(?:(?:ok|okay|alright|sure|well|great|yes|right|now|first|next|then|so|also|and|but|before that|before (?:i|we|making|doing|changing|editing|going) [^,]{1,80}|i think|i believe|to [^,]{1,80}|in order to [^,]{1,80}|for (?:this|that)),? )*";
/// Phrases that announce a wish, before the verb.
const WANTS: &str = r"(?:(?:i|we) (?:(?:first|now|next|also|still|just|really|then|probably) )?(?:need to|have to|must|should|want to|would like to|am going to|are going to|will need to|would need to|will have to|would have to|might need to|will|shall) |(?:i'll|we'll) (?:(?:first|now|next|also|just|then) )?(?:need to |have to )?|(?:i'd|we'd) (?:like to|need to|have to|love to) |(?:i'm|we're) going to |(?:let me|let's|let us) (?:(?:first|now|next|also|quickly|just) )?|(?:can|could|may|shall|should) (?:i|we) (?:please )?|it(?: would| will|'d|'ll) (?:help|be helpful|be useful) (?:me )?(?:if i could |to )|please let me |(?:the|my) (?:next|first) step is to )(?:please )?(?:(?:first|now|next|also|just|probably|go ahead and|quickly|carefully) )*";
/// Verbs of reading.
const READS: &str = r"(?:(?:read|re-read|reread|read through|see|look at|look into|look inside|look through|check|check out|double-check|double check|view|open up|go through|review|inspect|open|examine|consult|study|analyze|(?:have|take) (?:a |another )?(?:closer |quick )?look (?:at|inside|into)|(?:read|view|see|check) lines? [0-9]+(?: ?(?:-|to|through) ?[0-9]+)? (?:of|in)|see what(?:'s| is) in|check what(?:'s| is) in|find out what(?:'s| is) in|know what(?:'s| is) in|get|obtain|fetch|retrieve) |(?:start|begin) (?:by|with) (?:reading|looking at|checking|viewing|reviewing|inspecting|opening|examining|studying) )";
/// Phrases that ask the reader for something.
const PLEASE: &str = r"(?:(?:(?:can|could|would|will) you (?:please |kindly )?|please |kindly |i (?:will )?need you to |i'll need you to |i (?:would )?ask you to |i(?: would|'d) like you to )(?:show|share|provide|give|paste|send|tell|upload)|would you mind (?:showing|sharing|providing|giving|pasting|sending)|show|tell|give)(?: me| us)?(?: with)? ";
/// Phrases that ask the reader to add something to the chat.
const ADD: &str = r"(?:(?:(?:can|could|would|will) you (?:please )?|please |i (?:will )?need you to |i'll need you to )(?:add|include|attach)) ";
/// Words before a path.
const ARTICLES: &str = r"(?:(?:the|a|this|that|your|my|our|its|what is in|what's in|full|whole|entire|complete|current|actual|exact|file|files|contents?|text|source|code|test|config|configuration|main|header|existing|original|relevant|implementation|rest|of|in|at|named|called|inside) )*";
/// Words after a path: a reason or an order.
const TAIL: &str = r"(?: file)?(?:,? (?:first|now|next|again|too|please|here|to|so|in order|for|and|because|since|as|in full|in detail|in more detail|further|closely|more closely|carefully|if (?:that is|that's|it is|it's) (?:okay|ok|possible))(?:[ ,].*)?|,? before(?: (?:i|we|that|any|anything|[a-z]+ing)\b.*)?)?";
/// A path, with its quotes.
const PATH: &str = r#"["'`*]*([^ "'`*?!,;]+)["'`*]*"#;
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
    bytes(&format!("^{LEAD}(?:{text})[ .?!:]*$"))
}

/// Returns a pattern without Unicode, which compiles in a fraction of the time.
fn bytes(pattern: &str) -> Regex {
    RegexBuilder::new(pattern).unicode(false).build().expect("a pattern that is tested")
}

/// Returns the file that a sentence says is missing: `I can't see src/a.rs`.
fn lacked_file(sentence: &str) -> Option<ModelQuery> {
    static LACKS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            "(?:i|we) (?:can't|cannot|can not|couldn't|could not|don't|do not|am not able to|are not able to|am unable to) (?:(?:currently|directly) )?(?:see|view|access|read|open|have access to|have) {ARTICLES}{PATH}(?: file)?(?: yet| here| directly)?"
        ))
    });
    if !names_a_path(sentence) {
        return None;
    }
    let found = LACKS.captures(sentence.to_ascii_lowercase().as_bytes())?.get(1)?.range();
    let path = sentence[found].trim_end_matches(['.', ':']);
    is_path(path).then(|| ModelQuery::File { path: path.to_owned() })
}

fn file(sentence: &str) -> Option<ModelQuery> {
    static HANDS_OVER: LazyLock<Regex> = LazyLock::new(|| pattern(&format!("{PLEASE}.*")));
    static RECIPIENT: LazyLock<Regex> = LazyLock::new(|| {
        bytes(r"^ to (?:(?:the|a|an|your|our|his|her|their|all|every|any) |(?:them|him|her|everyone|users|people)\b)")
    });
    static ASKS: LazyLock<[Regex; 8]> = LazyLock::new(|| {
        let (path, text) = (PATH, r"(?:contents?|text|source|code|source code)");
        [
            pattern(&format!("(?:{WANTS}{READS}|{PLEASE}){ARTICLES}{path}({TAIL})")),
            pattern(&format!(
                "{ADD}{ARTICLES}{path}((?: file)? to (?:the|this|our) (?:chat|conversation|context)(?: first| please)?)"
            )),
            pattern(&format!(
                "(?:what(?:'s| is| are) (?:inside|in|the (?:contents?|text|source|code) of)) {ARTICLES}{path}(?: file)?()"
            )),
            pattern(&format!(
                "(?:(?:i|we)(?:'ll| will|'d| would)? (?:still |also |first )?need|(?:can|could|may) (?:i|we) (?:please )?have) (?:the )?(?:full |whole |entire |current )?(?:file )?{text} of {ARTICLES}{path}({TAIL})"
            )),
            pattern(&format!("(?:i|we) (?:still |also |first )?need (?:access to )?(?:the file )?{path}(?: file)?()")),
            pattern(&format!("{WANTS}start with {path}({TAIL})")),
            pattern(&format!(
                "{WANTS}(?:see|check|know|find out) what {ARTICLES}{path}(?: file)? (?:contains|has in it|looks like|says|does|defines|declares|exports|imports|provides|returns)({TAIL})"
            )),
            pattern(&format!("(?:what does|how does) {ARTICLES}{path}(?: file)? (?:contain|look like|look|say)()")),
        ]
    });
    if !names_a_path(sentence) {
        return None;
    }
    let lower = sentence.to_ascii_lowercase(); // same length as `sentence`
    let found = ASKS.iter().find_map(|asks| asks.captures(lower.as_bytes()))?;
    let path = sentence[found.get(1)?.range()].trim_end_matches(['.', ':']);
    let tail = &lower[found.get(2)?.range()];
    let is_here = ["chat", "conversation", "context"].iter().any(|word| tail.contains(word));
    if HANDS_OVER.is_match(lower.as_bytes()) && RECIPIENT.is_match(tail.as_bytes()) && !is_here {
        return None;
    }
    if tail.contains(", but ") {
        return None; // the sentence continues with the opposite
    }
    let mut others = tail.split([' ', ',', '`', '"']);
    let is_alone = !others.any(|word| is_path(word.trim_end_matches(['.', '?', '!', ':'])));
    (is_path(path) && is_alone).then(|| ModelQuery::File { path: path.to_owned() })
}

fn variable(sentence: &str) -> Option<ModelQuery> {
    static LISTS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        let where_ = r"(?: (?:here|now|to me|in (?:the|this|my) (?:environment|shell|sandbox|session|container)))?";
        let vars = r"(?:environment|env)(?: (?:variables|vars))?";
        let named = r"(?:environment|env) (?:variables|vars)";
        let shows =
            r"(?:(?:(?:can|could|would|will) you (?:please |kindly )?|please |kindly )(?:list|print|dump|display))";
        let end = r"(?: first| now| next| again| please)?(?:,? (?:to|before|so|because|since) .*)?";
        [
            pattern(&format!(
                r"(?:which|what) (?:of the )?(?:{named} (?:are|do i have)|(?:variables|vars) are)(?: currently| already)?(?: set| exported| available| defined| present| there)?{where_}[ ]*[?]"
            )),
            pattern(&format!(
                r"{WANTS}(?:{READS}|know |list |find out )(?:which|what) {named} (?:are|is) (?:set|available|defined|exported|present|there){where_}"
            )),
            pattern(&format!(
                r"(?:{WANTS}(?:{READS}|know |list |print |dump )|{PLEASE}|{shows} (?:me )?|what(?:'s| is| are) (?:in(?:side)? )?)(?:(?:all|the|my|your|this|current|contents?|list|values|of|full|what(?:'s| is) in) )*{vars}{where_}{end}"
            )),
        ]
    });
    static ONE: LazyLock<[Regex; 5]> = LazyLock::new(|| {
        let value = r"(?:the )?(?:current )?(?:value|content|setting)s? of ";
        let kind = r"(?:the )?(?:(?:environment|env) )?(?:variable )?";
        let after = r"(?: (?:environment |env )?variable)?";
        let shows =
            r"(?:(?:(?:can|could|would|will) you (?:please |kindly )?|please |kindly )(?:print|echo|display)) (?:me )?";
        [
            pattern(&format!(
                r"(?:{WANTS}(?:{READS}|know |print )|{PLEASE}|{shows}|what(?:'s| is) (?:in )?)(?:{value})?{kind}{NAME}{after}"
            )),
            pattern(&format!(r"what(?:'s| is) (?:my|your|the current|my current|your current) {NAME}{after}")),
            pattern(&format!(r"{WANTS}(?:know|see|check|find out) what {kind}{NAME}{after} is(?: set to)?")),
            pattern(&format!(r"what(?:'s| is) {kind}{NAME}{after} set to[ ]*[?]")),
            pattern(&format!(
                r"is {kind}{NAME}{after} (?:set|defined|exported)(?: (?:here|now|in (?:the|this|my) [a-z]+))?[ ]*[?]"
            )),
        ]
    });
    let lower = sentence.to_ascii_lowercase(); // same length as `sentence`
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    if says(&["env", "variables are", "vars are"]) && LISTS.iter().any(|lists| lists.is_match(lower.as_bytes())) {
        return Some(ModelQuery::Env { name: None });
    }
    let is_name =
        |name: &str| name.len() > 1 && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    let says_so =
        sentence.contains('$') || says(&["value of", "variable", "'s my", "is my", "'s your", "is your", " current "]);
    let asks = says_so || ["set?", "set to?", "defined?", "exported?"].iter().any(|end| sentence.ends_with(end));
    if !asks || !sentence.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(is_name) {
        return None;
    }
    let found = ONE.iter().find_map(|one| one.captures(lower.as_bytes()))?;
    Some(&sentence[found.get(1)?.range()])
        .filter(|name| is_name(name))
        .map(|name| ModelQuery::Env { name: Some(name.to_owned()) })
}

/// Returns true if a word of the sentence is a path. The patterns take many times longer to compile
/// than to match, and most answers name no path.
fn names_a_path(sentence: &str) -> bool {
    let between = [' ', '"', '\'', '`', '*', '?', '!', ',', ';'];
    sentence.split(between).any(|word| is_path(word.trim_end_matches(['.', ':'])))
}

/// Returns true if the text is a path: one word of path characters that contains a dot or a slash,
/// or is in `BARE`.
fn is_path(text: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "._-/+@".contains(c);
    let is_hidden = || text.strip_prefix('.').is_some_and(|name| name.len() > 1 && !name.starts_with('.'));
    let has_mark = text.contains('/') || text.trim_start_matches('.').contains('.') || is_hidden();
    let has_name = text.chars().any(char::is_alphanumeric);
    let is_version = text.trim_start_matches('v').chars().all(|c| c.is_ascii_digit() || c == '.');
    let is_file = (has_mark && !is_version) || BARE.contains(&text);
    has_name && text.len() <= 200 && text.chars().all(plain) && is_file && !text.contains("..")
}

#[cfg(test)]
mod tests;
