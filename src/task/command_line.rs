//! A parser of `sh` command lines that runs nothing. It returns the simple commands with their
//! words as the shell would see them. It never guesses a value that a word depends on, and rejects
//! a text that it cannot parse to the end.

use std::str::Chars;

/// The maximum nesting of substitutions.
const DEPTH: u32 = 8;

/// A word of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct CommandWord {
    /// The known beginning of the word, without quotes.
    pub(super) text: String,
    /// True if `text` is the complete word. Otherwise, the rest depends on variables, files or the
    /// output of a command, and may be several words.
    pub(super) is_whole: bool,
}

/// Returns the simple commands of a text, including those in substitutions and subshells. `None` if
/// the text cannot be parsed.
pub(super) fn commands(text: &str) -> Option<Vec<Vec<CommandWord>>> {
    let mut found = Vec::new();
    take(text, DEPTH, &mut found)?;
    Some(found)
}

fn take(text: &str, depth: u32, found: &mut Vec<Vec<CommandWord>>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    let is_odd = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_odd) {
        return None;
    }
    Reader { rest: text.chars(), depth, found, words: Vec::new(), bodies: Vec::new() }.read()
}

struct Reader<'t, 'f> {
    rest: Chars<'t>,
    depth: u32,
    found: &'f mut Vec<Vec<CommandWord>>,
    /// The words of the current command.
    words: Vec<CommandWord>,
    /// The here-documents whose bodies follow the current line.
    bodies: Vec<Body>,
}

/// A here-document.
struct Body {
    end: String,
    is_literal: bool,
    has_tabs: bool,
}

impl Reader<'_, '_> {
    fn read(mut self) -> Option<()> {
        loop {
            match self.peek() {
                None => break,
                Some(' ' | '\t') => drop(self.rest.next()),
                Some('\\') if self.rest.as_str().starts_with("\\\n") => drop(self.rest.nth(1)),
                Some('\n') => {
                    self.rest.next();
                    self.end();
                    self.skip_bodies()?;
                }
                // In some shells, this redirects both outputs of a command. In others, it ends the
                // command.
                Some('&') if self.rest.as_str().starts_with("&>") => drop(self.rest.next()),
                Some(';' | '&' | '|' | '(' | ')') => {
                    self.rest.next();
                    self.end();
                }
                Some('#') => while self.rest.clone().next().is_some_and(|c| c != '\n') && self.rest.next().is_some() {},
                Some('<' | '>') => self.redirect()?,
                Some(_) => {
                    let word = self.word()?;
                    let is_handle = word.text.chars().all(|c| c.is_ascii_digit())
                        || word.text.starts_with('{') && word.text.ends_with('}');
                    if !(is_handle && matches!(self.peek(), Some('<' | '>'))) {
                        self.words.push(word);
                    }
                }
            }
        }
        self.end();
        if self.bodies.is_empty() { Some(()) } else { None }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn end(&mut self) {
        if !self.words.is_empty() {
            self.found.push(std::mem::take(&mut self.words));
        }
    }

    /// Skips a redirection. Commands substituted in its target are collected.
    fn redirect(&mut self) -> Option<()> {
        let rest = self.rest.as_str();
        let length = ["<<<", "<<-", "<<", ">>", ">|", ">&", "<&", "<>", "<", ">"]
            .iter()
            .find(|it| rest.starts_with(**it))?
            .len();
        let operator = &rest[..length];
        self.rest.nth(length - 1);
        if matches!(operator, "<" | ">") && self.peek() == Some('(') {
            return Some(()); // its commands are parsed like other commands
        }
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.rest.next();
        }
        let from = self.rest.as_str();
        let word = self.word()?;
        if matches!(operator, "<<" | "<<-") {
            let raw = &from[..from.len() - self.rest.as_str().len()];
            let is_literal = raw.contains(['\'', '"', '\\']);
            if !word.is_whole {
                return None;
            }
            self.bodies.push(Body { end: word.text, is_literal, has_tabs: operator == "<<-" });
        }
        Some(())
    }

    /// Skips the here-documents of the line that just ended. Fails if one runs commands.
    fn skip_bodies(&mut self) -> Option<()> {
        for Body { end, is_literal, has_tabs } in std::mem::take(&mut self.bodies) {
            loop {
                let rest = self.rest.as_str();
                let line = rest.split('\n').next().unwrap_or_default();
                if rest.is_empty() || !is_literal && (line.contains('`') || line.contains("$(")) {
                    return None;
                }
                let is_end = (if has_tabs { line.trim_start_matches('\t') } else { line }) == end;
                self.rest = rest.get(line.len() + 1..).unwrap_or_default().chars();
                if is_end {
                    break;
                }
            }
        }
        Some(())
    }

    fn word(&mut self) -> Option<CommandWord> {
        let (mut word, mut in_braces) = (CommandWord { text: String::new(), is_whole: true }, false);
        let mut is_there = false;
        while let Some(c) = self.peek() {
            if matches!(c, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>') {
                break;
            }
            is_there = true;
            self.rest.next();
            match c {
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    c => word.add(c),
                },
                '\'' => loop {
                    match self.rest.next()? {
                        '\'' => break,
                        c => word.add(c),
                    }
                },
                '"' => self.quoted(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backtick(&mut word)?,
                '*' | '?' | '[' => word.is_whole = false,
                ',' | '.' if in_braces => word.is_whole = false,
                c => {
                    in_braces |= c == '{';
                    word.add(c);
                }
            }
        }
        is_there.then_some(word)
    }

    /// Reads the text in double quotes.
    fn quoted(&mut self, word: &mut CommandWord) -> Option<()> {
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    c @ ('$' | '`' | '"' | '\\') => word.add(c),
                    c => {
                        word.add('\\');
                        word.add(c);
                    }
                },
                '$' => self.dollar(word, true)?,
                '`' => self.backtick(word)?,
                c => word.add(c),
            }
        }
    }

    /// Reads an expansion after a dollar sign.
    fn dollar(&mut self, word: &mut CommandWord, is_quoted: bool) -> Option<()> {
        match self.peek() {
            Some('(') => {
                self.rest.next();
                let inner = self.inside('(', ')')?;
                take(&inner, self.depth, self.found)?;
                word.is_whole = false;
            }
            Some('{') => {
                self.rest.next();
                let inner = self.inside('{', '}')?;
                if inner.contains("$(") || inner.contains('`') {
                    return None;
                }
                word.is_whole = false;
            }
            // Some shells see quotes here, others a dollar sign and quotes.
            Some('\'' | '"') if !is_quoted => word.is_whole = false,
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?!$-".contains(c) => {
                self.rest.next();
                if c.is_ascii_alphabetic() || c == '_' {
                    while self.peek().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_') {
                        self.rest.next();
                    }
                }
                word.is_whole = false;
            }
            Some(_) | None => word.add('$'),
        }
        Some(())
    }

    fn backtick(&mut self, word: &mut CommandWord) -> Option<()> {
        let mut inner = String::new();
        loop {
            match self.rest.next()? {
                '`' => break,
                '\\' => match self.rest.next()? {
                    c @ ('`' | '\\' | '$') => inner.push(c),
                    c => inner.extend(['\\', c]),
                },
                c => inner.push(c),
            }
        }
        take(&inner, self.depth, self.found)?;
        word.is_whole = false;
        Some(())
    }

    /// Returns the text up to the bracket that closes the previous one.
    fn inside(&mut self, open: char, close: char) -> Option<String> {
        let (mut text, mut depth, mut quote) = (String::new(), 1, None);
        loop {
            let c = self.rest.next()?;
            match (quote, c) {
                (None | Some('"'), '\\') => {
                    text.push(c);
                    text.push(self.rest.next()?);
                    continue;
                }
                (None, '\'' | '"') => quote = Some(c),
                (Some(mark), c) if mark == c => quote = None,
                (None, c) if c == open => depth += 1,
                (None, c) if c == close => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return Some(text);
            }
            text.push(c);
        }
    }
}

impl CommandWord {
    /// Appends a character, unless an unknown part precedes it.
    fn add(&mut self, c: char) {
        if self.is_whole {
            self.text.push(c);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Formats the commands, with a `?` after each incomplete word.
    fn apart(text: &str) -> Option<Vec<String>> {
        let word = |word: &CommandWord| if word.is_whole { word.text.clone() } else { format!("{}?", word.text) };
        let line = |words: Vec<CommandWord>| words.iter().map(word).collect::<Vec<_>>().join("|");
        commands(text).map(|all| all.into_iter().map(line).collect())
    }

    #[test]
    fn a_command_line_is_taken_apart_as_the_shell_does() {
        let cases: [(&str, &[&str]); 27] = [
            ("", &[]),
            ("git  push\torigin", &["git|push|origin"]),
            ("a; b&&c||d | e & f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
            ("(a b) && { c; }", &["a|b", "{|c", "}"]),
            ("g\"i\"'t' pu\\sh ''", &["git|push|"]),
            ("git \\\n push", &["git|push"]),
            ("echo \"a b\" 'c;d' e\\ f", &["echo|a b|c;d|e f"]),
            ("echo \"\\$x \\q \\\\\"", &["echo|$x \\q \\"]),
            ("echo $HOME ${A:-b} \"x$1\" a*", &["echo|?|?|x?|a?"]),
            ("echo $(git push) `git pull`", &["git|push", "git|pull", "echo|?|?"]),
            ("echo \"$(a \"$(b)\")\"", &["b", "a|?", "echo|?"]),
            ("a > out 2>&1 < in b", &["a|b"]),
            ("git 2>x push", &["git|push"]),
            ("git {fd}>x push", &["git|push"]),
            ("git &>x push", &["git|push"]),
            ("diff <(a b) c", &["diff", "a|b", "c"]),
            ("a > $(b)", &["b", "a"]),
            ("a # b; c\nd", &["a", "d"]),
            ("a#b", &["a#b"]),
            ("cat <<EOF > f\nit's $HOME\nEOF\nb", &["cat", "b"]),
            ("cat <<-'EOF'\n\t`$(x\n\tEOF", &["cat"]),
            ("cat <<A <<B\n1\nA\n2\nB\nc", &["cat", "c"]),
            ("bash <<< 'git push'", &["bash"]),
            ("{git,push}", &["{git?"]),
            ("find . -exec {} \\;", &["find|.|-exec|{}|;"]),
            ("$'git' push", &["?|push"]),
            ("echo $ \"$\"", &["echo|$|$"]),
        ];
        for (text, wanted) in cases {
            assert_eq!(apart(text).unwrap_or_else(|| panic!("{text:?}")), wanted, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_understood_to_its_end_is_not_taken_apart() {
        let nested = format!("{}a{}", "$(".repeat(9), ")".repeat(9));
        for text in [
            "echo 'a",
            "echo \"a",
            "echo `a",
            "echo $(a",
            "echo ${a",
            "a >",
            "a \\",
            "cat <<EOF\na",
            "cat <<EOF\n$(a)\nEOF",
            "cat <<$X\n",
            "${a:-$(b)}",
            "a\u{1b}[2K",
            "a\rb",
            "a\0",
            &nested,
        ] {
            assert_eq!(apart(text), None, "{text:?}");
        }
    }
}
