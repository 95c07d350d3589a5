//! Cuts of long texts for the model. The head and the tail stay, and a note says how much is
//! missing and where to find it.

/// The space for the note in a cut, in bytes.
pub(super) const NOTE: usize = 256;

/// Cuts `text` to at most `limit` bytes, at character boundaries. The result is the head, a note
/// and the tail. The note gives the number of bytes left out and `whereabouts`, the place of the
/// whole text. `None` if the text fits.
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

/// Returns the longest prefix of `text` that has at most `limit` bytes and ends at a character
/// boundary.
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

/// Cuts a line after at most `limit` bytes and appends the number of missing bytes.
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
