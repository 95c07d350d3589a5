//! Cuts long texts for the model: head and tail stay, the cut says what is missing and where it is.

/// The room for a note about a cut, in bytes.
pub(super) const NOTE: usize = 256;

/// `text` in at most `limit` bytes: its head and its tail at whole characters, and between them how many bytes were left out
/// and `whereabouts` of the whole. `None` when it fits as it is.
pub(super) fn cut(text: &str, limit: usize, whereabouts: &str) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let room = limit.saturating_sub(NOTE);
    let head = head(text, room - room / 3);
    let tail = tail(text, room / 3);
    let gone = text.len() - head.len() - tail.len();
    Some(format!("{head}\n[… {gone} bytes left out; {whereabouts} …]\n{tail}"))
}

/// The longest beginning of `text` of at most `limit` bytes that ends at a whole character.
pub(super) fn head(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn tail(text: &str, limit: usize) -> &str {
    let mut start = text.len().saturating_sub(limit);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// One line, cut at `limit` bytes with a note of what is missing.
pub(super) fn line(text: &str, limit: usize) -> String {
    match head(text, limit) {
        whole if whole.len() == text.len() => text.into(),
        part => format!("{part} [… {} bytes more]", text.len() - part.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_fits_is_left_alone() {
        assert_eq!(cut("abc", 3, "@output/1"), None);
    }

    #[test]
    fn a_cut_says_how_much_is_missing_and_where_it_is() {
        let text = "a".repeat(1000);
        let expected = format!("{}\n[… 744 bytes left out; @output/1 …]\n{}", "a".repeat(171), "a".repeat(85));
        assert_eq!(cut(&text, 512, "@output/1"), Some(expected));
    }

    proptest! {
        #[test]
        fn a_cut_text_keeps_to_its_limit_and_to_whole_characters(text in "[aé漢🦀]{0,400}", limit in 256_usize..800) {
            let bounded = cut(&text, limit, "@output/1").unwrap_or_else(|| text.clone());
            prop_assert!(bounded.len() <= limit);
            prop_assert!(bounded.starts_with(head(&text, (limit - NOTE) / 2)));
        }
    }
}
