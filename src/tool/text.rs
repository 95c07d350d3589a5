//! The kinds of bytes in files, and the layout of text that edits must keep: byte order mark and
//! line ends.

/// The byte order mark as a character.
const BOM: char = '\u{feff}';
/// The number of bytes checked to tell text from binary; git checks as many.
const SNIFFED: usize = 8000;

/// Returns the kind of a file that is not text, with its article.
pub(super) fn binary_kind(bytes: &[u8]) -> Option<&'static str> {
    let known = match bytes {
        [0x89, b'P', b'N', b'G', ..] => "a PNG image",
        [0xff, 0xd8, 0xff, ..] => "a JPEG image",
        [b'G', b'I', b'F', b'8', ..] => "a GIF image",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "a WebP image",
        [b'%', b'P', b'D', b'F', b'-', ..] => "a PDF document",
        [0x1f, 0x8b, ..] => "a gzip archive",
        [b'P', b'K', 3, 4, ..] => "a ZIP archive",
        [0x7f, b'E', b'L', b'F', ..] => "an ELF program",
        bytes if bytes[..bytes.len().min(SNIFFED)].contains(&0) => "a binary file",
        _ => return None,
    };
    Some(known)
}

/// Gives `new` the layout of the text that it replaces. It gets the byte order mark of `old`. It
/// gets CRLF if all line ends of `old` are CRLF and `new` has only LF.
pub(super) fn laid_out_like(old: &str, new: &str) -> String {
    let all_crlf = old.contains('\n') && old.matches('\n').count() == old.matches("\r\n").count();
    let laid_out = if all_crlf && !new.contains('\r') { crlf(new) } else { new.into() };
    if old.starts_with(BOM) && !new.starts_with(BOM) { format!("{BOM}{laid_out}") } else { laid_out }
}

/// Returns two readings of `old` and `new` for `text`, the likelier one first. Models write LF even
/// for files with CRLF.
pub(super) fn readings(text: &str, old: &str, new: &str) -> [(String, String); 2] {
    let with_lf = (old.replace("\r\n", "\n"), new.replace("\r\n", "\n"));
    let with_crlf = (crlf(&with_lf.0), crlf(&with_lf.1));
    if old.contains('\r') || new.contains('\r') {
        return [(old.into(), new.into()), with_lf];
    }
    match text.matches("\r\n").count() * 2 > text.matches('\n').count() {
        true => [with_crlf, with_lf],
        false => [with_lf, with_crlf],
    }
}

/// Returns the text without its byte order mark.
pub(super) fn without_bom(text: &str) -> &str {
    text.strip_prefix(BOM).unwrap_or(text)
}

fn crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_layout() {
        for (old, new, laid_out) in [
            ("a\r\nb\r\n", "x\ny\n", "x\r\ny\r\n"),
            ("a\r\nb\n", "x\ny\n", "x\ny\n"),
            ("a\r\n", "x\r\ny\n", "x\r\ny\n"),
            ("\u{feff}a\n", "x\n", "\u{feff}x\n"),
            ("a", "x\n", "x\n"),
        ] {
            assert_eq!(laid_out_like(old, new), laid_out);
        }
    }

    #[test]
    fn bytes_that_are_no_text_have_a_name() {
        assert_eq!(binary_kind(b"\x89PNG\r\n\x1a\n"), Some("a PNG image"));
        assert_eq!(binary_kind(b"a\0b"), Some("a binary file"));
        assert_eq!(binary_kind("grün".as_bytes()), None);
    }
}
