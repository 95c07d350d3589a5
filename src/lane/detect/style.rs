//! The Prettier options that affect the files written by detection. Pure.

use super::facts::ProjectFacts;

/// The form of a written file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct YamlStyle {
    /// True if texts have single quotes.
    pub has_single_quotes: bool,
    /// The number of spaces for each level.
    pub indent: usize,
    /// True if there is a space inside braces.
    pub has_spaced_braces: bool,
    /// True if long texts are folded.
    pub folds: bool,
    /// True if the form is that of yamllint: a line `---`, and two spaces before a comment.
    pub is_for_yamllint: bool,
}

impl Default for YamlStyle {
    fn default() -> Self {
        Self { has_single_quotes: false, indent: 2, has_spaced_braces: true, folds: false, is_for_yamllint: false }
    }
}

/// The configuration files of Prettier.
pub(super) const FILES: [&str; 17] = [
    ".prettierrc",
    ".prettierrc.json",
    ".prettierrc.json5",
    ".prettierrc.yaml",
    ".prettierrc.yml",
    ".prettierrc.toml",
    ".prettierrc.js",
    ".prettierrc.cjs",
    ".prettierrc.mjs",
    ".prettierrc.ts",
    "prettier.config.js",
    "prettier.config.cjs",
    "prettier.config.mjs",
    "prettier.config.ts",
    "prettier.config.cts",
    "prettier.config.mts",
    "package.json",
];
/// A further file that Prettier reads.
pub(super) const EDITORS: &str = ".editorconfig";
/// The maximum supported indentation.
const MOST: usize = 8;

impl YamlStyle {
    /// Reads the style of a project from its `.editorconfig` and its Prettier configuration, which
    /// takes precedence.
    pub(super) fn detect(facts: &ProjectFacts) -> Self {
        let mut style = Self::default();
        style.read_editors(facts.text(EDITORS));
        for file in FILES {
            let text = facts.text(file);
            let whole = if file == "package.json" { prettier_of_manifest(text) } else { text.to_owned() };
            let lines = whole.lines().filter(|line| !line.trim_start().starts_with(['#', '/']));
            let plain: String =
                lines.flat_map(str::chars).filter(|c| !c.is_whitespace() && !"\"'`".contains(*c)).collect();
            let (general, special) = plain.split_once("overrides").unwrap_or((&plain, ""));
            style.read(general);
            let parts = special.split("files").filter(|part| part.contains("yaml") || part.contains("y?(a)ml"));
            parts.for_each(|part| style.read(part));
        }
        style
    }

    /// Reads options from a text without spaces and quotes.
    fn read(&mut self, text: &str) {
        let value = |key: &str| {
            let after = text.split_once(key)?.1;
            after.strip_prefix([':', '='])
        };
        let flag = |key: &str| {
            value(key).and_then(|value| match value {
                value if value.starts_with("true") => Some(true),
                value if value.starts_with("false") => Some(false),
                _ => None,
            })
        };
        let digits = value("tabWidth").map(|value| value.chars().take_while(char::is_ascii_digit).collect::<String>());
        self.set_indent(&digits.unwrap_or_default());
        self.has_single_quotes = flag("singleQuote").unwrap_or(self.has_single_quotes);
        self.has_spaced_braces = flag("bracketSpacing").unwrap_or(self.has_spaced_braces);
        self.folds = value("proseWrap").map_or(self.folds, |value| value.starts_with("always"));
    }

    fn read_editors(&mut self, text: &str) {
        let mut is_meant = false;
        for line in text.lines().map(str::trim) {
            if let Some(pattern) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_meant = pattern == "*" || ["yaml", "y{a,}ml", "y?(a)ml"].iter().any(|part| pattern.contains(part));
            } else if let Some((key, value)) = line.split_once('=').filter(|_| is_meant)
                && ["indent_size", "tab_width"].contains(&key.trim())
            {
                self.set_indent(value.trim());
            }
        }
    }

    fn set_indent(&mut self, digits: &str) {
        self.indent = digits.parse().ok().filter(|indent| (1..=MOST).contains(indent)).unwrap_or(self.indent);
    }
}

/// Returns the Prettier options in a `package.json`.
fn prettier_of_manifest(text: &str) -> String {
    let manifest: serde_json::Value = serde_json::from_str(text.trim_start_matches('\u{feff}')).unwrap_or_default();
    manifest.get("prettier").filter(|options| options.is_object()).map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style(files: &[(&str, &str)]) -> (bool, usize, bool, bool) {
        let texts = files.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let style = YamlStyle::detect(&ProjectFacts { texts, ..ProjectFacts::default() });
        (style.has_single_quotes, style.indent, style.has_spaced_braces, style.folds)
    }

    #[test]
    fn the_style_is_that_of_the_projects_prettier() {
        assert_eq!(style(&[]), (false, 2, true, false));
        assert_eq!(style(&[(".prettierrc", "tabWidth: 4\nsingleQuote: true\n")]), (true, 4, true, false));
        assert_eq!(style(&[(".prettierrc.toml", "tabWidth = 4\nproseWrap = \"always\"")]), (false, 4, true, true));
        assert_eq!(
            style(&[("prettier.config.mjs", "export default {\n  // tabWidth: 8\n  bracketSpacing: false }")]),
            (false, 2, false, false)
        );
        assert_eq!(
            style(&[("package.json", r#"{"prettier": {"tabWidth": 4}, "x": {"singleQuote": true}}"#)]),
            (false, 4, true, false)
        );
        let special = r#"{"tabWidth": 4, "overrides": [{"files": ["*.yml", "*.yaml"], "options": {"tabWidth": 2}}, {"files": "*.md", "options": {"singleQuote": true}}]}"#;
        assert_eq!(style(&[(".prettierrc.json", special)]), (false, 2, true, false));
        let editors = "root = true\n[*]\nindent_style = tab\nindent_size = 4\n[*.md]\nindent_size = 8\n[*.{yml,yaml}]\nindent_size = 3\n";
        assert_eq!(style(&[(".editorconfig", editors)]), (false, 3, true, false));
        assert_eq!(style(&[(".editorconfig", editors), (".prettierrc", "{\"tabWidth\": 2}")]), (false, 2, true, false));
        assert_eq!(style(&[(".prettierrc", "tabWidth: 0\n")]), (false, 2, true, false));
    }
}
