//! Paths within a project, and names within texts. Pure.

/// Returns the last part of a path.
pub(in crate::gate) fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns a path below a folder; `""` is the root.
pub(in crate::gate) fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() || name.is_empty() { format!("{folder}{name}") } else { format!("{folder}/{name}") }
}

/// Returns whether a text contains a name, and not only as part of a longer name.
pub(in crate::gate) fn has_name(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let is_whole = |start: usize| {
        !text[..start].ends_with(|c| is_part(c) || c == '.') && !text[start + name.len()..].starts_with(is_part)
    };
    !name.is_empty() && text.match_indices(name).any(|(start, _)| is_whole(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_in_a_text_where_no_letter_of_a_name_is_beside_it() {
        for (text, is_there) in [
            ("No module named 'rich'", true),
            ("enriched", false),
            ("rich-text", false),
            ("a/rich", true),
            (".rich", false),
            ("", false),
        ] {
            assert_eq!(has_name(text, "rich"), is_there, "{text}");
        }
        assert!(!has_name("rich", ""));
    }

    #[test]
    fn a_path_is_joined_from_parts_of_which_each_may_be_empty() {
        assert_eq!(["", "a"].map(|folder| joined(folder, "b")), ["b", "a/b"]);
        assert_eq!(joined("a", ""), "a");
    }
}
