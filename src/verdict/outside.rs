//! Changes in a workspace that are in no tree. They are neither judged nor delivered.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The maximum number of named files of one ignored folder; the others are counted.
const MOST_NAMED: usize = 10;
/// The maximum number of entries in each list.
const MOST: usize = 100;

/// Changes in the workspace during a run that are not in the judged tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct OutsideTree {
    /// Ignored files that a later command may run, sorted by path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<OutsidePath>,
    /// Changes of the work that the tree lacks, sorted by path: files, deleted files that git
    /// ignored, and empty folders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OutsidePath>,
}

/// A file that is in no tree, or a folder with several of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct OutsidePath {
    /// The path, relative to the workspace, with `/` between its parts. A folder ends with `/`;
    /// `**/NAME/` means every folder of this name.
    pub path: String,
    /// The number of files.
    pub files: u64,
    /// The kind of file, or the reason why the tree lacks it.
    pub why: String,
}

/// An ignored file that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredFile {
    /// The path of the file.
    pub path: String,
    /// The outermost path that git ignores: the file itself, or a folder around it.
    pub root: String,
    /// The mechanism that runs the file.
    pub what: &'static str,
}

impl OutsideTree {
    /// Groups the ignored files by folder, so that a build yields few entries.
    pub fn new(ignored: Vec<IgnoredFile>, left_out: Vec<OutsidePath>) -> Self {
        Self { ignored: grouped(ignored), left_out: bounded(left_out) }
    }

    /// Returns true if there is nothing to report.
    pub fn is_empty(&self) -> bool {
        self.ignored.is_empty() && self.left_out.is_empty()
    }
}

/// Returns a path as people see it. If it has control characters or bytes that are not UTF-8, it is
/// quoted as git quotes it: `"a\nb"`, `"\377"`.
pub fn shown_path(path: &str) -> Cow<'_, str> {
    // `workspace::path_text` writes bytes that are not UTF-8 as these characters.
    let byte = |c: char| u32::from(c).checked_sub(0x0010_FF00).filter(|byte| (0x80..=0xff).contains(byte));
    let octal = |c: char| byte(c).or(c.is_control().then_some(u32::from(c)));
    if !path.chars().any(|c| octal(c).is_some()) {
        return Cow::Borrowed(path);
    }
    let quoted = path.chars().map(|c| match c {
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '"' | '\\' => format!("\\{c}"),
        c => octal(c).map_or_else(|| c.to_string(), |byte| format!("\\{byte:03o}")),
    });
    Cow::Owned(format!("\"{}\"", quoted.collect::<String>()))
}

impl OutsidePath {
    /// Creates the entry of one file.
    pub fn file(path: &str, why: &str) -> Self {
        Self { path: path.to_owned(), files: 1, why: why.to_owned() }
    }

    /// Creates the entry for the files of a folder that are not named.
    fn more(path: String, files: u64) -> Self {
        Self { path, files, why: "others that can run".to_owned() }
    }

    /// Formats the entry as a line for people.
    pub fn line(&self) -> String {
        match self.files {
            1 => format!("{}: {}", shown_path(&self.path), self.why),
            many => format!("{}: {many} {}", shown_path(&self.path), self.why),
        }
    }
}

fn grouped(files: Vec<IgnoredFile>) -> Vec<OutsidePath> {
    let mut by_root: BTreeMap<String, Vec<IgnoredFile>> = BTreeMap::new();
    for file in files {
        by_root.entry(file.root.clone()).or_default().push(file);
    }
    // Folders of the same name, such as `__pycache__`, form one group.
    let mut by_name: BTreeMap<String, Vec<(String, Vec<IgnoredFile>)>> = BTreeMap::new();
    for (root, files) in by_root {
        let is_file = files.iter().all(|file| file.path == root);
        let name = if is_file { root.clone() } else { root.rsplit('/').next().unwrap_or(&root).to_owned() };
        by_name.entry(name).or_default().push((root, files));
    }
    let mut all = Vec::new();
    for (name, roots) in by_name {
        let mut files: Vec<&IgnoredFile> = roots.iter().flat_map(|(_, files)| files).collect();
        files.sort_by_key(|file| &file.path);
        // If only one further file is left, it is named too.
        let named = if files.len() == MOST_NAMED + 1 { MOST_NAMED + 1 } else { MOST_NAMED };
        let more = files.len().saturating_sub(named) as u64;
        all.extend(files.iter().take(named).map(|file| OutsidePath::file(&file.path, file.what)));
        let folder = match roots.as_slice() {
            [(root, _)] => format!("{root}/"),
            _ => format!("**/{name}/"),
        };
        all.extend((more > 0).then(|| OutsidePath::more(folder, more)));
    }
    bounded(all)
}

/// Sorts a list and limits it; the last entry counts the rest.
fn bounded(mut all: Vec<OutsidePath>) -> Vec<OutsidePath> {
    all.sort();
    all.dedup();
    if all.len() > MOST {
        let rest = all.split_off(MOST - 1);
        let files = rest.iter().map(|entry| entry.files).sum();
        all.push(OutsidePath { path: "…".into(), files, why: "more files".into() });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(root: &str, path: &str) -> IgnoredFile {
        IgnoredFile { path: path.into(), root: root.into(), what: "an executable" }
    }

    fn lines(files: Vec<IgnoredFile>) -> Vec<String> {
        OutsideTree::new(files, Vec::new()).ignored.iter().map(OutsidePath::line).collect()
    }

    #[test]
    fn files_are_named_and_what_is_too_much_is_counted_for_their_folder() {
        let few = vec![file(".venv", ".venv/bin/python"), file("run.sh", "run.sh")];
        assert_eq!(lines(few), [".venv/bin/python: an executable", "run.sh: an executable"]);
        let build =
            |count: usize| (0..count).map(|number| file("target", &format!("target/debug/{number:03}"))).collect();
        let all = lines(build(MOST_NAMED));
        assert_eq!((all.len(), all[MOST_NAMED - 1].as_str()), (MOST_NAMED, "target/debug/009: an executable"));
        let most = lines(build(300));
        assert_eq!((most.len(), most[0].as_str()), (MOST_NAMED + 1, "target/: 290 others that can run"));
        assert_eq!(most[1..], all);
        let caches = (10..22).map(|number| {
            let root = format!("{number}/__pycache__");
            file(&root, &format!("{root}/x.pyc"))
        });
        let caches = lines(caches.collect());
        assert_eq!((caches.len(), caches[0].as_str()), (MOST_NAMED + 1, "**/__pycache__/: 2 others that can run"));
    }

    #[test]
    fn a_path_that_people_cannot_read_is_quoted() {
        for (path, shown) in [
            ("src/ü b.rs", "src/ü b.rs"),
            ("a\"b\\c", "a\"b\\c"),
            ("a/new\nline", r#""a/new\nline""#),
            ("a\t\"\u{1b}[31m", r#""a\t\"\033[31m""#),
            ("bad\u{10FFFF}", r#""bad\377""#),
        ] {
            assert_eq!(shown_path(path), shown);
        }
    }

    #[test]
    fn a_long_list_ends_with_the_count_of_the_rest() {
        let many = (0..150).map(|number| OutsidePath::file(&format!("{number:03}"), "x")).collect();
        let list = OutsideTree::new(Vec::new(), many).left_out;
        assert_eq!((list.len(), list[MOST - 1].line()), (MOST, "…: 51 more files".to_owned()));
    }
}
