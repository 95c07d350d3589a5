//! A source file as the checks see it: its text, and the paths that its code names, groups of `use` taken apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// One source file.
pub(crate) struct Source {
    /// Its path below the folder that was asked for, with `/` between its parts.
    pub(crate) path: String,
    /// All of it.
    pub(crate) text: String,
    /// The same, with blanks in the place of comments and literals.
    code: String,
    /// The line behind which there are only tests.
    shipped: usize,
    /// Every path in its code with its line.
    paths: OnceLock<Vec<(usize, String)>>,
}

/// Every Rust file below a folder of the repository, sorted by path. Each folder is read once.
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

/// The repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The modules that `src/lib.rs` declares.
pub(crate) fn modules(map: &str) -> impl Iterator<Item = &str> {
    map.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
}

/// A text file of the repository.
pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).expect("it is there and is text")
}

impl Source {
    /// The top-level module that it belongs to.
    pub(crate) fn module(&self) -> &str {
        self.path.split(['/', '.']).next().unwrap_or_default()
    }

    /// How many `super::` lead out of its module to the root of the crate.
    pub(crate) fn depth(&self) -> usize {
        self.path.split('/').count() - usize::from(self.path.ends_with("/mod.rs"))
    }

    /// Whether it is one of these files, or in one of these folders.
    pub(crate) fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| if place.ends_with('/') { self.path.starts_with(place) } else { self.path == *place })
    }

    /// Whether a line belongs to tests: those of a file stand last in it.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        line > self.shipped
    }

    /// The modules of this crate that its code uses, itself left out.
    pub(crate) fn imports(&self) -> BTreeSet<String> {
        let module = |path: &str| Some(path.strip_prefix("crate::")?.split("::").next()?.to_owned());
        let all = self.paths(true).filter_map(|(_, path)| module(path));
        all.filter(|name| name != self.module() && name != "as").collect()
    }

    /// Every path in its code with its line, those of tests too unless `shipped` is asked for.
    pub(crate) fn paths(&self, shipped: bool) -> impl Iterator<Item = (usize, &str)> {
        let all = self.paths.get_or_init(|| self.read_paths()).iter();
        all.filter(move |(line, _)| !(shipped && self.is_test(*line))).map(|(line, path)| (*line, path.as_str()))
    }

    fn read_paths(&self) -> Vec<(usize, String)> {
        let (mut found, mut line) = (Vec::new(), 1);
        let mut groups: Vec<String> = Vec::new(); // what stands before each `{` of a `use` that is open
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
        // `test_support` is compiled for tests alone, so it never ships.
        let is_test = |path: &str| path.starts_with("crate::test_support::");
        found.retain(|(_, path)| !(path.is_empty() || path.ends_with("::") || is_test(path)));
        found
    }
}

/// The text with comments and literals blanked out; line ends stay.
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

/// Where a literal that begins here ends.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = true; // the first mark opens it
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
