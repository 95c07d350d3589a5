//! The programs that a shell script starts, as far as its text shows them.

use super::program::{SHELL_WORDS, STARTERS};
use std::collections::BTreeSet;

/// Words of bash and other shells that need no program, besides [`SHELL_WORDS`].
const MORE_WORDS: [&str; 8] = ["bind", "caller", "compgen", "complete", "coproc", "history", "logout", "readarray"];
/// Commands that look for the programs in their arguments.
const LOOK_FOR: [&str; 4] = ["command", "hash", "type", "which"];
/// The deepest nesting of substitutions that is followed.
const DEEPEST: usize = 8;
/// Texts of scripts that change the search path.
const SET_PATHS: [&str; 3] = ["PATH=", "/activate", "PATH+="];

/// Returns the plain names of programs that a shell script starts. Leaves out functions of the
/// script, programs that the script looks for itself, and words in quotes, here-documents and
/// comments. Returns none for a script that changes the search path.
pub fn shell_programs(script: &str) -> BTreeSet<String> {
    if SET_PATHS.iter().any(|text| script.contains(text)) {
        return BTreeSet::new();
    }
    let ShellReader { mut programs, known, .. } = ShellReader::read_all(script, 0);
    programs.retain(|name| !known.contains(name));
    programs
}

/// Returns the length of a text before the `)` that closes a `(` before the text.
fn balanced(text: &str) -> usize {
    let mut depth = 0_usize;
    let closes = |c: char| {
        let is_end = c == ')' && depth == 0;
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_end
    };
    text.find(closes).unwrap_or(text.len())
}

/// Reads a script character by character.
#[derive(Debug, Default)]
struct ShellReader<'s> {
    rest: &'s str,
    /// The number of substitutions around this text.
    depth: usize,
    word: String,
    /// The words of the current command.
    words: Vec<String>,
    /// True if the next word is the target of a redirection.
    is_target: bool,
    /// The number of open `case` commands, and true before a pattern of the innermost one.
    cases: usize,
    is_pattern: bool,
    /// The words that end the here-documents of the current line.
    documents: Vec<String>,
    programs: BTreeSet<String>,
    /// Functions, and programs that the script looks for.
    known: BTreeSet<String>,
}

impl<'s> ShellReader<'s> {
    fn read_all(script: &'s str, depth: usize) -> Self {
        let mut reader = Self { rest: script, depth, ..Self::default() };
        while let Some(c) = reader.take() {
            reader.read(c);
        }
        reader.end_command();
        reader
    }

    /// Reads a substitution of this length, which is a part of a word.
    fn substitution(&mut self, length: usize) {
        let (inner, rest) = self.rest.split_at(length);
        self.rest = rest.get(1..).unwrap_or_default();
        self.word.push('$');
        if self.depth < DEEPEST {
            let Self { programs, known, .. } = Self::read_all(inner, self.depth + 1);
            self.programs.extend(programs);
            self.known.extend(known);
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    /// Skips to the end of the first occurrence of a text, or to the end of the script.
    fn skip_past(&mut self, text: &str) {
        self.rest = self.rest.find(text).map_or("", |at| &self.rest[at + text.len()..]);
    }

    fn read(&mut self, c: char) {
        match c {
            '\\' => match self.take() {
                Some('\n') => self.end_word(),
                _ => self.word.push('\\'),
            },
            '\'' => {
                self.word.push('\'');
                self.skip_past("'");
            }
            '"' => self.skip_double_quotes(),
            '#' if self.word.is_empty() => self.rest = self.rest.find('\n').map_or("", |at| &self.rest[at..]),
            '$' => self.dollar(),
            '<' if self.rest.starts_with("<<") => self.rest = &self.rest[2..],
            '<' if self.rest.starts_with('<') => self.here_document(),
            '<' | '>' => self.redirection(),
            '(' => self.parenthesis(),
            ')' if self.is_pattern => {
                (self.is_pattern, self.word) = (false, String::new());
                self.words.clear();
            }
            ';' if self.rest.starts_with([';', '&']) => {
                self.end_command();
                self.is_pattern = self.cases > 0;
                self.take();
            }
            '\n' => {
                self.end_command();
                for end in std::mem::take(&mut self.documents) {
                    while !self.rest.is_empty() {
                        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                        self.rest = rest;
                        if line.trim() == end {
                            break;
                        }
                    }
                }
            }
            '`' => self.substitution(self.rest.find('`').unwrap_or(self.rest.len())),
            ';' | '&' | ')' => self.end_command(),
            '|' if !self.is_pattern => self.end_command(),
            c if c.is_whitespace() => self.end_word(),
            c => self.word.push(c),
        }
    }

    fn skip_double_quotes(&mut self) {
        self.word.push('"');
        while let Some(c) = self.take().filter(|c| *c != '"') {
            if c == '\\' {
                self.take();
            } else if c == '$' && self.rest.starts_with('(') {
                self.take();
                self.substitution(balanced(self.rest));
            }
        }
    }

    /// Reads what follows a `$`: a substitution is a command, a variable is not a plain word.
    fn dollar(&mut self) {
        self.word.push('$');
        match self.rest.chars().next() {
            Some('(') if self.rest.starts_with("((") => self.skip_past("))"),
            Some('(') => {
                self.take();
                self.substitution(balanced(self.rest));
            }
            Some('{') => self.skip_past("}"),
            _ => {}
        }
    }

    fn parenthesis(&mut self) {
        if self.is_pattern {
            return;
        }
        if self.word.ends_with('=') {
            return self.skip_past(")"); // an array
        }
        if self.word.is_empty() && self.rest.starts_with('(') {
            return self.skip_past("))"); // arithmetic
        }
        if self.rest.trim_start().starts_with(')') {
            let name = std::mem::take(&mut self.word);
            self.known.extend(if name.is_empty() { self.words.pop() } else { Some(name) });
        }
        self.end_command();
    }

    fn redirection(&mut self) {
        if self.word.chars().all(|c| c.is_ascii_digit()) {
            self.word.clear();
        }
        self.end_word();
        self.is_target = true;
        if self.rest.starts_with('(') {
            self.take();
            return self.substitution(balanced(self.rest));
        }
        self.rest = self.rest.trim_start_matches(['>', '&', '|']);
    }

    fn here_document(&mut self) {
        self.rest = self.rest[1..].trim_start_matches('-').trim_start_matches([' ', '\t']);
        let end = self.rest.find(|c: char| c.is_whitespace() || ";|&)<>".contains(c)).unwrap_or(self.rest.len());
        self.documents.push(self.rest[..end].trim_matches(['\'', '"', '\\']).to_owned());
        self.rest = &self.rest[end..];
    }

    fn end_word(&mut self) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() || std::mem::take(&mut self.is_target) {
            return;
        }
        let is_first = self.words.is_empty();
        match word.as_str() {
            "esac" if is_first || self.is_pattern => {
                self.cases = self.cases.saturating_sub(1);
                self.is_pattern = false;
                self.words.clear();
            }
            "in" if self.words.first().is_some_and(|first| first == "case") => {
                self.cases += 1;
                self.is_pattern = true;
                self.words.clear();
            }
            "[[" if is_first => self.skip_past("]]"),
            "{" | "}" if is_first => {}
            "{" if self.words[0] == "function" => self.known.extend(self.words.drain(..).nth(1)),
            _ => self.words.push(word),
        }
    }

    /// Ends a command, and adds the programs that it starts.
    fn end_command(&mut self) {
        self.end_word();
        self.is_target = false;
        let words = std::mem::take(&mut self.words);
        if self.is_pattern {
            return;
        }
        if words.first().is_some_and(|first| first == "function") {
            self.known.extend(words.into_iter().nth(1));
            return;
        }
        let plain = words.iter().map(|word| word.trim_start_matches(['@', '-', '+']));
        for (number, word) in plain.enumerate() {
            let is_option =
                number > 0 && (words[number].starts_with('-') || word.starts_with(|c: char| c.is_ascii_digit()));
            let is_looked_for = LOOK_FOR.contains(&word)
                && (word != "command" || words.get(number + 1).is_some_and(|it| it.to_lowercase() == "-v"));
            if is_looked_for {
                self.known.extend(words[number + 1..].iter().cloned());
                return;
            }
            if word.is_empty() || is_option || word.contains('=') || STARTERS.contains(&word) {
                continue;
            }
            let is_plain = word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+".contains(c));
            if is_plain && !SHELL_WORDS.contains(&word) && !MORE_WORDS.contains(&word) {
                self.programs.insert(word.to_owned());
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_of_a_script_are_the_first_words_of_its_commands() {
        for (script, programs) in [
            ("set -e\nshellcheck *.sh\nA=1 sudo -E tool --x | tee log >out; ./own.sh", "shellcheck tee tool"),
            ("lint() {\n  inner a\n}\nfunction more { deep; }\nlint; more", "deep inner"),
            ("if command -v bats >/dev/null; then bats t; fi\nwhich shfmt && shfmt -d .\ntype -p x || x", ""),
            ("case $1 in\n  start|go) first x ;;\n  (stop) second; third;;\nesac\nfourth", "first fourth second third"),
            (
                "cat <<'END' >x\nnone of this\nEND\nafter <<<text\ncat <<-A <<B\n\tone\n\tA\ntwo\nB\nlast",
                "after cat last",
            ),
            (
                "list=(one two\n three)\nfor x in a b; do each \"$x y\"; done\n[[ a && b ]] && yes2\n((n++)); [ x ] || no2",
                "each no2 yes2",
            ),
            ("x=$(inside a; other) y && $TOOL z; ${A:-b c} d; echo $((1 + two)) `old x` z", "inside old other y"),
            ("diff <(sort $(list a) b) c; x=\"$(cd \"$(at \"a; b\")\" && pwd)\"", "at diff list sort"),
            ("echo 'it; is # quoted' \"and; not read\" # nor; this\n@made a \\\n  wrapped\n-also b", "also made"),
            (
                "run 2>&1 >file next &>all; time -p timed; timeout 5 limited; env -i A=b in_env",
                "in_env limited run timed",
            ),
            ("export PATH=/x:$PATH\ntool", ""),
            (". venv/bin/activate\npytest", ""),
            ("\"unended", ""),
            ("é; (sub a) && { group b; }", "group sub"),
        ] {
            let expected: BTreeSet<String> = programs.split_whitespace().map(str::to_owned).collect();
            assert_eq!(shell_programs(script), expected, "{script}");
        }
    }
}
