//! Task files outside of the folder for tasks. Pure.

/// The reason that protects a task.
pub(super) const TASK: &str = "it is a task, and defines work that runs later";
/// Keys of a task's front matter that hardly any other document has.
pub(super) const KEYS: [&str; 6] = ["allow_edit", "baseline", "holdout", "lane", "max_retries", "on_tamper"];

/// Returns whether a path may be that of a task.
pub(super) fn reads(path: &str) -> bool {
    path.ends_with(".md")
}

/// Returns whether a file is a task: its front matter has a key of tasks alone.
pub(super) fn is_task(path: &str, text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.trim_start_matches('\u{feff}').lines();
    if !reads(path) || lines.next().is_none_or(|first| first.trim_end() != "---") {
        return false;
    }
    let mut front = lines.take_while(|line| line.trim_end() != "---");
    front.any(|line| line.split_once(':').is_some_and(|(key, _)| KEYS.contains(&key.trim_matches(['"', '\'', ' ']))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_is_known_by_a_key_of_its_front_matter() {
        for (path, text, is) in [
            ("chores/a.md", "---\ntitle: Tidy\nallow_edit: [\"**\"]\n---\nTidy up.\n", true),
            ("chores/a.md", "---\r\n\"lane\": false\r\n---\r\n", true),
            ("docs/a.md", "---\ntitle: The lane\nlayout: page\n---\nlane: false\n", false),
            ("docs/a.md", "# Keys\n\n---\nlane: false\n---\n", false),
            ("chores/a.txt", "---\nlane: false\n---\n", false),
        ] {
            assert_eq!(is_task(path, text.as_bytes()), is, "{path}: {text}");
        }
    }
}
