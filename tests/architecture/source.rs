//! Source files as the checks see them: the text, and the paths in the code with `use` groups
//! expanded.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// A source file.
pub(crate) struct Source {
    /// The path relative to the folder that was searched, with `/` as separator.
    pub(crate) path: String,
    /// The complete text.
    pub(crate) text: String,
    /// The text with comments and literals replaced by blanks.
    code: String,
    /// The last line before the tests.
    shipped: usize,
    /// Every path in the code with its line number.
    paths: OnceLock<Vec<(usize, String)>>,
}

/// Returns every Rust file below a folder of the repository, sorted by path. Reads each folder
/// once.
pub(crate) fn sources(folder: &'static str) -> &'static [Source] {
    static READ: Mutex<BTreeMap<&str, &[Source]>> = Mutex::new(BTreeMap::new());
    crate::support::record_time();
    let mut read = READ.lock().expect("reading a folder does not panic");
    read.entry(folder).or_insert_with(|| read_folder(folder).leak())
}

fn read_folder(folder: &str) -> Vec<Source> {
    let top = root().join(folder);
    let (mut open, mut files) = (vec![top.clone()], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => open.push(path),
                false if path.extension().is_some_and(|ending| ending == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files.sort();
    let source = |file: PathBuf| {
        let text = fs::read_to_string(&file).expect("a source file is text");
        let path = file.strip_prefix(&top).expect("it is below the folder").display().to_string();
        let apart = path.ends_with("tests.rs") || path.contains("/tests/");
        let begin = text.lines().position(|line| line.ends_with("mod tests {")).unwrap_or(usize::MAX);
        Source { path, code: blank(&text), text, shipped: if apart { 0 } else { begin }, paths: OnceLock::new() }
    };
    files.into_iter().map(source).collect()
}

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the modules that `src/lib.rs` declares.
pub(crate) fn modules(map: &str) -> impl Iterator<Item = &str> {
    map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
}

/// Reads a text file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there and is text")
}

impl Source {
    /// Returns the top-level module that contains the file.
    pub(crate) fn module(&self) -> &str {
        self.path.split(['/', '.']).next().unwrap_or_default()
    }

    /// Returns the number of `super::` segments from the file's module to the crate root.
    pub(crate) fn depth(&self) -> usize {
        self.path.split('/').count() - usize::from(self.path.ends_with("/mod.rs"))
    }

    /// Returns true if the file is one of `places` or inside a folder of `places` (ending in `/`).
    pub(crate) fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| if place.ends_with('/') { self.path.starts_with(place) } else { self.path == *place })
    }

    /// Returns true if a line belongs to the tests, which are at the end of each file.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        line > self.shipped
    }

    /// Returns the modules of this crate that the code uses, without the file's own module.
    pub(crate) fn imports(&self) -> BTreeSet<String> {
        let module = |path: &str| Some(path.strip_prefix("crate::")?.split("::").next()?.to_owned());
        let all = self.paths(true).filter_map(|(_, path)| module(path));
        all.filter(|name| name != self.module() && name != "as").collect()
    }

    /// Returns every path in the code with its line number. With `shipped`, leaves out paths in
    /// tests.
    pub(crate) fn paths(&self, shipped: bool) -> impl Iterator<Item = (usize, &str)> {
        let all = self.paths.get_or_init(|| self.read_paths()).iter();
        all.filter(move |(line, _)| !(shipped && self.is_test(*line))).map(|(line, path)| (*line, path.as_str()))
    }

    fn read_paths(&self) -> Vec<(usize, String)> {
        let (mut found, mut line) = (Vec::new(), 1);
        let mut groups: Vec<String> = Vec::new(); // the prefix before each open `{` of a `use`
        let (mut path, mut rest) = (String::new(), self.code.as_str());
        while let Some(c) = rest.chars().next() {
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            let outer = groups.last().cloned().unwrap_or_default();
            let whole = !path.is_empty() && !path.ends_with("::");
            if (word > 0 && whole) || !(word > 0 || c == ':' || c.is_whitespace() || (c == '{' && path.ends_with("::")))
            {
                found.push((line, std::mem::replace(&mut path, outer.clone())));
            }
            let length = match c {
                _ if word > 0 && rest[word..].starts_with('!') && !rest[word..].starts_with("!=") => word + 1, // a macro
                _ if word > 0 => word,
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            match c {
                _ if word > 0 || length == 2 => path.push_str(&rest[..length]),
                '{' if path.ends_with("::") => groups.push(path.clone()),
                '}' if !groups.is_empty() => {
                    groups.pop();
                    path = groups.last().cloned().unwrap_or_default();
                }
                ':' => path.clear(),
                '\n' => line += 1,
                _ => {}
            }
            rest = &rest[length..];
        }
        // `test_support` is compiled only for tests, so it never ships.
        let is_test = |path: &str| path.starts_with("crate::test_support::");
        found.retain(|(_, path)| !(path.is_empty() || path.ends_with("::") || is_test(path)));
        found
    }
}

/// Replaces comments and literals with blanks and keeps line ends.
fn blank(text: &str) -> String {
    let (mut code, mut rest) = (String::new(), text);
    while let Some(c) = rest.chars().next() {
        let hashes = rest[1.min(rest.len())..].len() - rest.get(1..).unwrap_or_default().trim_start_matches('#').len();
        let raw = c == 'r'
            && rest[1 + hashes..].starts_with('"')
            && !code.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if raw {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = hashes + 2;
            rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len())
        } else if c == '"' {
            quoted(rest, '"')
        } else if c == '\'' && (rest.starts_with("'\\") || rest.chars().nth(2) == Some('\'')) {
            quoted(rest, '\'')
        } else {
            code.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        code.extend(rest[..end].chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = &rest[end..];
    }
    code
}

/// Returns the end of a literal that begins at the start of `text`.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = true; // skips the opening mark
    for (at, c) in text.char_indices() {
        match (escaped, c) {
            (true, _) => escaped = false,
            (false, '\\') => escaped = true,
            (false, c) if c == mark => return at + c.len_utf8(),
            (false, _) => {}
        }
    }
    text.len()
}
