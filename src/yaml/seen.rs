//! Lines of a file, shown below a problem. Long lines are shortened; of private files, possible
//! secrets are masked.

/// The number of characters kept on each side of a problem.
const AROUND: usize = 60;
/// The replacement for a hidden character.
const BLOT: char = '•';

/// A line that contains a problem.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProblemLine {
    /// The line, or the part of it around the problem; `…` marks omitted text.
    pub text: String,
    /// The position of the problem in the text, in characters, from 0. At most the length of the
    /// text.
    pub column: usize,
}

impl ProblemLine {
    /// Extracts the part of a line around a problem at this column, from 1.
    pub(super) fn at(line: &str, column: usize) -> Self {
        let (line, at) = (line.trim_end(), column.saturating_sub(1));
        let length = line.chars().count();
        let (from, to) = (at.min(length).saturating_sub(AROUND), at.saturating_add(AROUND).min(length));
        let (from, to) = (if from < 4 { 0 } else { from }, if length - to < 4 { length } else { to });
        let mut text: String = if from > 0 { "…".into() } else { String::new() };
        text.extend(line.chars().skip(from).take(to - from));
        if to < length {
            text.push('…');
        }
        let column = at.min(length) - from + usize::from(from > 0);
        Self { text, column }
    }
}

/// Keys of a configuration whose values are never secret.
const OPEN_KEYS: [&str; 23] = [
    "baseline",
    "base_url",
    "commit",
    "compact_at",
    "default_model",
    "isolation",
    "jobs",
    "lane",
    "loop_threshold",
    "max_context_tokens",
    "max_output_tokens",
    "max_retries",
    "max_tries",
    "max_wait",
    "model",
    "network",
    "on_tamper",
    "provider",
    "reasoning",
    "sandbox",
    "stuck_after",
    "tier",
    "url",
];
/// Keys whose values can be secret. A mistyped key is compared with these too.
const PRIVATE_KEYS: [&str; 12] = [
    "api_key",
    "api_key_command",
    "api_key_env",
    "api_key_file",
    "authorization",
    "command",
    "env",
    "headers",
    "password",
    "proxy",
    "secret",
    "token",
];

/// Returns true if the values of this key, which may be mistyped, are never secret.
fn is_open(key: &str) -> bool {
    super::nearest(key, OPEN_KEYS.into_iter().chain(PRIVATE_KEYS)).is_some_and(|near| OPEN_KEYS.contains(&near))
}

/// Returns true if a value has the form of a name, a number or a plain address. A key of a model
/// that someone writes in the wrong place has another form.
fn is_harmless(value: &[char]) -> bool {
    const LONGEST: usize = 48;
    const LONGEST_PART: usize = 20;
    let text: String = value.iter().collect();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".:/_-".contains(c);
    let is_key = ["sk-", "sk_", "pk-", "rk-", "gh", "xox", "hf_"].iter().any(|head| text.starts_with(head));
    let is_short = text.split(['.', ':', '/', '_', '-']).all(|part| part.len() <= LONGEST_PART);
    text.len() <= LONGEST && text.chars().all(is_plain) && !is_key && is_short
}

/// Returns a line of YAML with its keys visible, and all other words masked that may be secret.
pub(super) fn keys_alone(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    let (mut shown, mut at, mut may_be_key, mut is_open_value) = (String::new(), 0, true, false);
    while let Some(&c) = chars.get(at) {
        if c == ' ' || c == '\t' {
            shown.push(c);
            at += 1;
            continue;
        }
        let end = match c {
            '"' | '\'' => chars[at + 1..].iter().position(|other| *other == c).map_or(chars.len(), |end| at + end + 2),
            '{' | '}' | '[' | ']' | ',' => at + 1,
            '-' if may_be_key && chars.get(at + 1).is_none_or(|next| *next == ' ') => at + 1,
            _ => word_end(&chars, at),
        };
        let word = &chars[at..end];
        let is_key = may_be_key && is_plain(word) && chars.get(end) == Some(&':') && ends_key(&chars, end);
        match c {
            '{' | '}' | '[' | ']' | ',' | '-' if end == at + 1 => {
                shown.push(c);
                may_be_key = matches!(c, '{' | ',') || c == '-';
            }
            _ if is_key => {
                is_open_value = is_open(&word.iter().collect::<String>());
                shown.extend(word);
                shown.push(':');
                (at, may_be_key) = (end + 1, false);
                continue;
            }
            _ if is_open_value && is_harmless(word) => shown.extend(word),
            _ => {
                shown.extend(word.iter().map(|_| BLOT));
                (may_be_key, is_open_value) = (false, false);
            }
        }
        at = end;
    }
    shown
}

/// Returns the end of a plain word: before a blank, a bracket, a comma, or the colon of a key.
fn word_end(chars: &[char], at: usize) -> usize {
    let ends = |end: &usize| match chars[*end] {
        ' ' | '\t' | '{' | '}' | '[' | ']' | ',' => true,
        ':' => ends_key(chars, *end),
        _ => false,
    };
    (at + 1..chars.len()).find(ends).unwrap_or(chars.len())
}

/// Returns true if a blank or the end of the line follows this colon, as after a key.
fn ends_key(chars: &[char], colon: usize) -> bool {
    chars.get(colon + 1).is_none_or(|next| matches!(next, ' ' | '\t'))
}

/// Returns true if the word has the form of a fledge key or a configuration name. A secret in the
/// place of a key is longer, or has other characters.
fn is_plain(word: &[char]) -> bool {
    word.len() <= 32 && word.iter().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_around_its_problem() {
        let seen = |line: &str, column| ProblemLine::at(line, column);
        assert_eq!(seen("a: b", 4), ProblemLine { text: "a: b".into(), column: 3 });
        assert_eq!(seen("a: b", 40), ProblemLine { text: "a: b".into(), column: 4 });
        let long = format!("{}X{}", "a".repeat(500), "b".repeat(500));
        let cut = seen(&long, 501);
        assert_eq!(cut.text, format!("…{}X{}…", "a".repeat(60), "b".repeat(59)));
        assert_eq!(cut.text.chars().nth(cut.column), Some('X'));
        assert_eq!(seen(&long, 1).text, format!("{}…", "a".repeat(60)));
        assert_eq!(seen(&long, 1001).text.chars().last(), Some('b'));
    }

    #[test]
    fn of_a_private_line_only_keys_are_shown() {
        for (line, shown) in [
            ("    api_key: sk-1234", "    api_key: •••••••"),
            ("- run: a b", "- run: • •"),
            (
                "m: { provider: opnai, api-key: 'x: y', l: [a, b] }",
                "m: { provider: opnai, api-key: ••••••, l: [•, •] }",
            ),
            ("proxy: http://u:pw@host # token: x", "proxy: •••••••••••••••• • •••••• •"),
            ("defualt_model: gpt-5 # mine", "defualt_model: gpt-5 • ••••"),
            ("model: sk-proj-1234", "model: ••••••••••••"),
            ("model: abcdefghij0123456789klm", "model: •••••••••••••••••••••••"),
            ("base_url: http://u:pw@host", "base_url: ••••••••••••••••"),
            ("base_url: localhost:8080", "base_url: localhost:8080"),
            ("tokn: hunter2", "tokn: •••••••"),
            ("max_retries: lots", "max_retries: lots"),
            ("key: secret: more", "key: ••••••• ••••"),
            ("  sk-ABCDEF", "  •••••••••"),
            ("sk-ABC1: x", "•••••••• •"),
            ("'quoted: key': x", "•••••••••••••• •"),
            ("it's: x", "••••• •"),
        ] {
            let message = keys_alone(line);
            assert_eq!(message.chars().count(), line.chars().count(), "{line}: {message}");
            assert_eq!(message, shown, "{line}");
        }
    }
}
