//! Texts in which `${NAME}` means a variable of the operator's environment, so that secrets
//! need not be in a file.

use super::model_keys::is_variable;
use crate::provider::Secret;
use crate::yaml::excerpt;
use std::fmt;

/// A text with references to environment variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnvTemplate(Vec<TemplatePiece>);

#[derive(Clone, PartialEq, Eq)]
enum TemplatePiece {
    Text(String),
    Variable(String),
}

impl EnvTemplate {
    /// Parses a text; `$${` is a plain `${`.
    ///
    /// # Errors
    /// The problem of the first invalid reference.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, behind)) = rest.split_once("${") {
            if let Some(before) = before.strip_suffix('$') {
                plain.push_str(before);
                plain.push_str("${");
                rest = behind;
                continue;
            }
            plain.push_str(before);
            let (name, after) = behind.split_once('}').ok_or("`${` has no closing `}`")?;
            if name.is_empty() || !is_variable(name) {
                return Err(format!("`${{{}}}` is not a valid environment variable", excerpt(name)));
            }
            pieces.extend((!plain.is_empty()).then(|| TemplatePiece::Text(std::mem::take(&mut plain))));
            pieces.push(TemplatePiece::Variable(name.to_owned()));
            rest = after;
        }
        plain.push_str(rest);
        pieces.extend((!plain.is_empty()).then_some(TemplatePiece::Text(plain)));
        Ok(Self(pieces))
    }

    /// Returns the text with the values of the variables.
    ///
    /// # Errors
    /// The name of the first variable that is not set, or is empty.
    pub fn filled<'v>(&self, value: impl Fn(&str) -> Option<&'v str>) -> Result<Secret, &str> {
        let mut text = String::new();
        for piece in &self.0 {
            text.push_str(match piece {
                TemplatePiece::Text(plain) => plain,
                TemplatePiece::Variable(name) => value(name).filter(|value| !value.is_empty()).ok_or(name.as_str())?,
            });
        }
        Ok(Secret::new(text))
    }

    /// Returns the names of the referenced variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            TemplatePiece::Variable(name) => Some(name.as_str()),
            TemplatePiece::Text(_) => None,
        })
    }
}

impl fmt::Debug for TemplatePiece {
    /// Hides texts, which may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(_) => f.write_str("***"),
            Self::Variable(name) => f.debug_tuple("Variable").field(name).finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_everything_else_stays() {
        let value = |name: &str| [("A", "1"), ("B_2", "two"), ("NONE", "")].into_iter().find(|(key, _)| *key == name);
        let fill = |text: &str| {
            let woven = EnvTemplate::read(text).unwrap();
            woven
                .filled(|name| value(name).map(|(_, value)| value))
                .map(|all| all.reveal().to_owned())
                .map_err(str::to_owned)
        };
        for (text, filled) in [
            ("", ""),
            ("plain $A $$ } {", "plain $A $$ } {"),
            ("Bearer ${A}", "Bearer 1"),
            ("${A}${B_2}-${A}!", "1two-1!"),
            ("$${A} and ${A}", "${A} and 1"),
        ] {
            assert_eq!(fill(text), Ok(filled.to_owned()), "{text}");
        }
        assert_eq!((fill("${A}${C}"), fill("${NONE}")), (Err("C".to_owned()), Err("NONE".to_owned())));
    }

    #[test]
    fn what_names_no_variable_is_refused_and_nothing_is_shown_of_a_text() {
        for (text, message) in [
            ("Bearer ${TOKEN", "`${` has no closing `}`"),
            ("${token}", "`${token}` is not a valid environment variable"),
            ("${}", "`${}` is not a valid environment variable"),
        ] {
            assert_eq!(EnvTemplate::read(text), Err(message.to_owned()), "{text}");
        }
        assert!(!format!("{:?}", EnvTemplate::read("s3cret ${A}").unwrap()).contains("s3cret"));
    }
}
