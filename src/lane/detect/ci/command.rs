//! A reader for the simple commands of a shell script. Pure: it turns text into commands and
//! refusals.
//!
//! A command consists of words and variables. A line that needs more of a shell (pipes,
//! substitutions, loops) is refused with the reason.

use super::expression::{SECRET, UNKNOWN};
use std::collections::BTreeMap;

/// A simple command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScriptCommand {
    pub(super) words: Vec<String>,
    /// Variables set for the command: by `A=b cmd`, or by an earlier `export`.
    pub(super) vars: BTreeMap<String, String>,
    /// The folder of the command, relative to the start folder of the script; empty for the start
    /// folder.
    pub(super) dir: String,
    /// True if the script continues after a failure, because of `|| true`.
    pub(super) may_fail: bool,
}

/// A line of a script, counted from 0, with its command, or with the refused text and the reason.
pub(super) type ScriptLine = (usize, Result<ScriptCommand, (String, &'static str)>);

const EXPANDS: &str = "it needs values that only its own CI has";
const SHELL: &str = "it is more than a simple command";
/// Words that begin a construct of several commands, and words that end one.
const OPENING: [&str; 8] = ["if", "for", "while", "until", "case", "select", "function", "{"];
const CLOSING: [&str; 4] = ["fi", "done", "esac", "}"];

/// Reads the commands of a script. `known` has the values of variables.
pub(super) fn read(script: &str, known: &BTreeMap<String, String>) -> Vec<ScriptLine> {
    let mut reader = Reader { known: known.clone(), ..Reader::default() };
    let mut pending: Option<(usize, String)> = None;
    for (number, line) in script.lines().enumerate() {
        let (start, mut text) = pending.take().unwrap_or_default();
        let start = if text.is_empty() { number } else { start };
        text.push_str(line.trim());
        match text.strip_suffix('\\') {
            Some(before) => pending = Some((start, format!("{before} "))),
            None if text.ends_with("&&") => pending = Some((start, format!("{text} "))),
            None => reader.line(start, text.trim()),
        }
    }
    if let Some((start, text)) = pending {
        reader.line(start, text.trim());
    }
    reader.lines
}

#[derive(Default)]
struct Reader {
    known: BTreeMap<String, String>,
    exported: BTreeMap<String, String>,
    dir: Option<String>,
    /// The number of open constructs.
    depth: usize,
    /// The word that ends a here-document.
    until: Option<String>,
    lines: Vec<ScriptLine>,
}

impl Reader {
    fn line(&mut self, number: usize, text: &str) {
        if let Some(until) = &self.until {
            if text == until {
                self.until = None;
            }
            return;
        }
        let first = text.split([' ', ';', '\t']).next().unwrap_or_default();
        if text.is_empty() || first.starts_with('#') {
            return;
        }
        let opens = OPENING.contains(&first) || text.ends_with("() {") || text.ends_with("(){");
        let closes = text.split([' ', ';', '\t']).any(|word| CLOSING.contains(&word));
        let is_inside = self.depth > 0 || opens;
        self.depth = (self.depth + usize::from(opens)).saturating_sub(usize::from(closes));
        if let Some((_, rest)) = text.split_once("<<") {
            let word: String = rest
                .trim_start_matches(['-', ' ', '\'', '"'])
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            self.until = Some(word).filter(|word| !word.is_empty());
        }
        if is_inside || self.until.is_some() {
            self.lines.push((number, Err((text.to_owned(), SHELL))));
            return;
        }
        let why = match text {
            text if text.contains(SECRET) => Some("it needs secrets"),
            text if text.contains(UNKNOWN) => Some(EXPANDS),
            _ => None,
        };
        match why.map_or_else(|| split(text, &self.known), Err) {
            Err(why) => self.lines.push((number, Err((text.to_owned(), why)))),
            Ok(commands) => commands.into_iter().for_each(|(words, may_fail)| self.command(number, words, may_fail)),
        }
    }

    fn command(&mut self, number: usize, mut words: Vec<String>, may_fail: bool) {
        let mut vars = self.exported.clone();
        let is_export = words.first().is_some_and(|word| word == "export");
        if is_export || words.first().is_some_and(|word| word == "env") {
            words.remove(0);
        }
        let own = words.iter().take_while(|word| assignment(word).is_some()).count();
        for (name, value) in words.drain(..own).filter_map(|word| assignment(&word)) {
            vars.insert(name, value);
        }
        match words.first().map(String::as_str) {
            None => {
                self.known.extend(vars.clone());
                if is_export {
                    self.exported = vars;
                }
            }
            Some("cd" | "pushd") => {
                self.dir =
                    words.get(1).and_then(|to| join(self.dir.as_deref().unwrap_or_default(), to)).or(Some("..".into()))
            }
            Some("set" | "export" | "popd") => {}
            Some(_) => match self.dir.as_deref() {
                Some("..") => {
                    self.lines.push((number, Err((words.join(" "), "it runs in a folder outside of the project"))))
                }
                dir => {
                    let dir = dir.unwrap_or_default().to_owned();
                    self.lines.push((number, Ok(ScriptCommand { words, vars, dir, may_fail })));
                }
            },
        }
    }
}

/// Joins a path to a folder. `None` if the path leads outside.
pub(super) fn join(base: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    if path.starts_with(['/', '~', '-', '$']) {
        return None;
    }
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn assignment(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Splits a line into commands, as words without quotes. The flag is true if the line ignores a
/// failure.
fn split(text: &str, known: &BTreeMap<String, String>) -> Result<Vec<(Vec<String>, bool)>, &'static str> {
    let mut commands = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '#' if word.is_none() => break,
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(SHELL)? {
                        '\'' => break,
                        c => word.push(c),
                    }
                }
            }
            '"' => {
                word.get_or_insert_default();
                loop {
                    match chars.next().ok_or(SHELL)? {
                        '"' => break,
                        '$' => word.get_or_insert_default().push_str(&variable(&mut chars, known)?),
                        '`' => return Err(EXPANDS),
                        '\\' => word.get_or_insert_default().push(chars.next().ok_or(SHELL)?),
                        c => word.get_or_insert_default().push(c),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or(SHELL)?),
            '$' => {
                // Outside of quotes, a shell splits a value into words.
                let value = variable(&mut chars, known)?;
                let mut parts = value.split_whitespace();
                if let Some(first) = parts.next() {
                    word.get_or_insert_default().push_str(first);
                }
                for part in parts {
                    words.extend(word.replace(part.to_owned()));
                }
            }
            '`' => return Err(EXPANDS),
            ';' => end(&mut commands, &mut words, &mut word),
            '&' if chars.next_if_eq(&'&').is_some() => end(&mut commands, &mut words, &mut word),
            '|' if chars.next_if_eq(&'|').is_some() => {
                let rest: String = chars.by_ref().collect();
                if !["true", ":"].contains(&rest.trim()) {
                    return Err(SHELL);
                }
                end(&mut commands, &mut words, &mut word);
                commands.iter_mut().last().into_iter().for_each(|last| last.1 = true);
            }
            '|' => {
                let rest: String = chars.by_ref().collect();
                if !rest.trim_start().starts_with("tee ") || rest.contains(['|', '&', ';']) {
                    return Err(SHELL);
                }
            }
            '>' if word.as_deref() == Some("2") && chars.next_if_eq(&'&').is_some() => {
                word = None;
                chars.next_if_eq(&'1').ok_or(SHELL)?;
            }
            '&' | '>' | '<' | '(' | ')' => return Err(SHELL),
            c => word.get_or_insert_default().push(c),
        }
    }
    end(&mut commands, &mut words, &mut word);
    Ok(commands)
}

fn end(commands: &mut Vec<(Vec<String>, bool)>, words: &mut Vec<String>, word: &mut Option<String>) {
    words.extend(word.take());
    if !words.is_empty() {
        commands.push((std::mem::take(words), false));
    }
}

/// Reads the value of `$NAME` or `${NAME}`; the `$` was read already.
fn variable(
    chars: &mut std::iter::Peekable<std::str::Chars<'_>>,
    known: &BTreeMap<String, String>,
) -> Result<String, &'static str> {
    let is_braced = chars.next_if_eq(&'{').is_some();
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    if is_braced && chars.next() != Some('}') {
        return Err(EXPANDS);
    }
    known.get(&name).cloned().ok_or(EXPANDS)
}

/// Quotes the words of a command for a shell.
pub(in super::super) fn quoted(words: &[String]) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/:=@,+-%^".contains(c);
    let quote = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        // The shell must expand a pattern, as in the project's own CI.
        false if word.contains('*') && word.chars().all(|c| is_plain(c) || c == '*') => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(script: &str) -> Vec<String> {
        let known = BTreeMap::from([("FEATURES".to_owned(), "--features a".to_owned())]);
        let line = |(number, line): ScriptLine| match line {
            Ok(command) => {
                let vars: String = command.vars.iter().map(|(name, value)| format!("{name}={value} ")).collect();
                let dir = if command.dir.is_empty() { String::new() } else { format!(" in {}", command.dir) };
                let may_fail = if command.may_fail { " may fail" } else { "" };
                format!("{number} {vars}{}{dir}{may_fail}", quoted(&command.words))
            }
            Err((text, why)) => format!("{number} ! {text}: {why}"),
        };
        read(script, &known).into_iter().map(line).collect()
    }

    #[test]
    fn a_script_is_its_simple_commands() {
        assert_eq!(detected("cargo build\n\n# no\ncargo test --all # yes"), ["0 cargo build", "3 cargo test --all"]);
        assert_eq!(detected("a && b; c\nd \\\n  -e 'f g'"), ["0 a", "0 b", "0 c", "1 d -e 'f g'"]);
        assert_eq!(detected("set -eux\nexport A=b\nC=d make"), ["2 A=b C=d make"]);
        assert_eq!(detected("cd web\nnpm test\ncd ..\nnpm i"), ["1 npm test in web", "3 npm i"]);
        assert_eq!(detected("t $FEATURES \"${FEATURES}\""), ["0 t --features a '--features a'"]);
        assert_eq!(detected("make lint || true"), ["0 make lint may fail"]);
        assert_eq!(detected("make test 2>&1 | tee log"), ["0 make test"]);
        assert_eq!(detected("node --test tests/*.js"), ["0 node --test tests/*.js"]);
    }

    #[test]
    fn what_is_more_than_a_simple_command_is_refused() {
        for (script, why) in [
            ("a | b", SHELL),
            ("a > b", SHELL),
            ("(a)", SHELL),
            ("a || b", SHELL),
            ("a &", SHELL),
            ("a 'b", SHELL),
            ("a $(b)", EXPANDS),
            ("a `b`", EXPANDS),
            ("a $B", EXPANDS),
            ("a ${FEATURES:-c}", EXPANDS),
        ] {
            assert_eq!(detected(script), [format!("0 ! {script}: {why}")]);
        }
        assert_eq!(detected("if a; then\n  b\nfi\nc").last().unwrap(), "3 c");
        assert_eq!(detected("if a; then\n  b\nfi\nc").len(), 4);
        assert_eq!(detected("cat <<EOF > x\nmake test\nEOF\nc").last().unwrap(), "3 c");
        assert_eq!(detected("cat <<EOF > x\nmake test\nEOF\nc").len(), 2);
        assert_eq!(detected("cd /tmp\nmake test"), ["1 ! make test: it runs in a folder outside of the project"]);
    }
}
