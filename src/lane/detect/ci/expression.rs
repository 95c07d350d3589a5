//! An evaluator for expressions of GitHub workflows, as far as their values are known. Pure.

use std::collections::BTreeMap;

/// A value of an expression: a text or a boolean, or unknown if it depends on a real run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Text(String),
    Bool(bool),
    Unknown,
}

impl Value {
    fn truth(&self) -> Option<bool> {
        match self {
            Self::Text(text) => Some(!text.is_empty() && text != "0" && text != "false"),
            Self::Bool(flag) => Some(*flag),
            Self::Unknown => None,
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Bool(flag) => Some(flag.to_string()),
            Self::Unknown => None,
        }
    }
}

/// The values of names such as `matrix.os`.
pub(super) type Names = BTreeMap<String, String>;

/// Placeholders for an expression without a known value, and for a secret. No shell variable can
/// have these names.
pub(super) const UNKNOWN: &str = "${?}";
pub(super) const SECRET: &str = "${?secret}";

/// Replaces each `${{ … }}` in a text by its value, by [`UNKNOWN`] or by [`SECRET`].
pub(super) fn fill(text: &str, names: &Names) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (expression, after) = after.split_once("}}").unwrap_or((after, ""));
        filled.push_str(before);
        let without = if expression.contains("secrets.") { SECRET } else { UNKNOWN };
        filled.push_str(&evaluate(expression, names).text().unwrap_or_else(|| without.to_owned()));
        rest = after;
    }
    filled + rest
}

/// Evaluates a condition. `None` if a value is unknown.
pub(super) fn holds(condition: &str, names: &Names) -> Option<bool> {
    let inner = condition.trim();
    let inner = inner.strip_prefix("${{").and_then(|inner| inner.strip_suffix("}}")).unwrap_or(inner);
    evaluate(inner, names).truth()
}

fn evaluate(expression: &str, names: &Names) -> Value {
    let Some(tokens) = tokens(expression) else { return Value::Unknown };
    let mut parser = Parser { tokens, at: 0, names };
    let value = parser.or();
    if parser.at == parser.tokens.len() { value } else { Value::Unknown }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Sign(&'static str),
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    const SIGNS: [&str; 10] = ["&&", "||", "==", "!=", "!", "(", ")", ",", "[", "]"];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else if first == '\'' {
            let end = rest[1..].find('\'')? + 1;
            tokens.push(Token::Text(rest[1..end].to_owned()));
            rest = &rest[end + 1..];
        } else {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "._-*".contains(c);
            let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            tokens.push(Token::Name(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    Some(tokens)
}

struct Parser<'n> {
    tokens: Vec<Token>,
    at: usize,
    names: &'n Names,
}

impl Parser<'_> {
    fn takes(&mut self, sign: &'static str) -> bool {
        let is_it = self.tokens.get(self.at) == Some(&Token::Sign(sign));
        self.at += usize::from(is_it);
        is_it
    }

    fn or(&mut self) -> Value {
        let mut value = self.and();
        while self.takes("||") {
            let other = self.and();
            value = match value.truth() {
                Some(true) => value,
                Some(false) => other,
                None if other.truth() == Some(true) && matches!(other, Value::Bool(_)) => other,
                None => Value::Unknown,
            };
        }
        value
    }

    fn and(&mut self) -> Value {
        let mut value = self.equality();
        while self.takes("&&") {
            let other = self.equality();
            value = match value.truth() {
                Some(false) => value,
                Some(true) => other,
                None if other.truth() == Some(false) => other,
                None => Value::Unknown,
            };
        }
        value
    }

    fn equality(&mut self) -> Value {
        let value = self.unary();
        for (sign, wanted) in [("==", true), ("!=", false)] {
            if self.takes(sign) {
                let other = self.unary();
                return match (value.text(), other.text()) {
                    (Some(one), Some(other)) => Value::Bool(one.eq_ignore_ascii_case(&other) == wanted),
                    _ => Value::Unknown,
                };
            }
        }
        value
    }

    fn unary(&mut self) -> Value {
        if self.takes("!") {
            return self.unary().truth().map_or(Value::Unknown, |truth| Value::Bool(!truth));
        }
        if self.takes("(") {
            let value = self.or();
            return if self.takes(")") { value } else { Value::Unknown };
        }
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Text(text)) => Value::Text(text),
            Some(Token::Name(name)) if self.takes("(") => self.call(&name),
            Some(Token::Name(name)) => self.name(&name),
            _ => Value::Unknown,
        }
    }

    fn name(&self, name: &str) -> Value {
        match name {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => Value::Text(name.to_owned()),
            // GitHub also treats a key that no combination has as empty.
            _ if name.starts_with("matrix.") => Value::Text(self.names.get(name).cloned().unwrap_or_default()),
            _ => self.names.get(name).map_or(Value::Unknown, |value| Value::Text(value.clone())),
        }
    }

    fn call(&mut self, function: &str) -> Value {
        let mut arguments = Vec::new();
        while !self.takes(")") {
            if self.at >= self.tokens.len() {
                return Value::Unknown;
            }
            arguments.push(self.or());
            self.takes(",");
        }
        let texts: Option<Vec<String>> = arguments.iter().map(Value::text).collect();
        let lower = |text: &String| text.to_ascii_lowercase();
        match (function, texts.as_deref()) {
            ("always" | "success", _) => Value::Bool(true),
            ("failure" | "cancelled", _) => Value::Bool(false),
            ("startsWith", Some([text, start])) => Value::Bool(lower(text).starts_with(&lower(start))),
            ("endsWith", Some([text, end])) => Value::Bool(lower(text).ends_with(&lower(end))),
            ("contains", Some([text, part])) => Value::Bool(lower(text).contains(&lower(part))),
            ("format", Some([pattern, values @ ..])) => {
                let filled = values
                    .iter()
                    .enumerate()
                    .fold(pattern.clone(), |text, (place, value)| text.replace(&format!("{{{place}}}"), value));
                Value::Text(filled)
            }
            _ => Value::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        [("matrix.os", "ubuntu-latest"), ("matrix.rust", "stable"), ("runner.os", "Linux"), ("env.F", "-x")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn expressions_have_values_where_everything_in_them_is_known() {
        let fill = |text: &str| fill(text, &names());
        assert_eq!(fill("a ${{ matrix.rust }} ${{env.F}} b"), "a stable -x b");
        assert_eq!(fill("${{ matrix.none || 'x' }}"), "x");
        assert_eq!(fill("${{ matrix.none && '-G' || '' }}."), ".");
        assert_eq!(fill("${{ matrix.tox || format('py{0}', matrix.rust) }}"), "pystable");
        assert_eq!(fill("${{ secrets.TOKEN }}"), SECRET);
        assert_eq!(fill("${{ matrix.rust ? }}"), UNKNOWN);
        assert_eq!(fill("plain"), "plain");
    }

    #[test]
    fn conditions_hold_fail_or_are_unknown() {
        for (condition, expected) in [
            ("matrix.rust == 'nightly'", Some(false)),
            ("${{ runner.os == 'linux' }}", Some(true)),
            ("!contains(matrix.os, 'windows') && success()", Some(true)),
            ("startsWith(matrix.rust, 'pinned-') == false", Some(true)),
            ("failure()", Some(false)),
            ("github.ref == 'x'", None),
            ("github.ref == 'x' && matrix.rust == 'beta'", Some(false)),
            ("github.ref == 'x' || always()", Some(true)),
            ("(", None),
        ] {
            assert_eq!(holds(condition, &names()), expected, "{condition}");
        }
    }
}
