//! Recognition of pictures that providers accept, by their bytes and not by their names. A picture
//! must be complete, because a provider refuses every later request of a conversation that contains
//! a broken one.

use crate::chat::{Image, ToolOutcome};

/// The largest picture, in bytes. It makes 5 MB of base64, the lowest limit of all providers.
const MAX: usize = 3_750_000;
/// The longest side that every provider accepts, in pixels.
const MAX_SIDE: u32 = 8000;

/// The format and size of a picture.
#[derive(Debug, PartialEq, Eq)]
struct Picture {
    media_type: &'static str,
    width: u32,
    height: u32,
}

/// Returns the outcome that shows these bytes as a picture. `None` if they are not a complete
/// picture.
pub(super) fn shown(path: &str, bytes: &[u8]) -> Option<ToolOutcome> {
    let Picture { media_type, width, height } = read(bytes)?;
    let said = format!("`{path}` is a picture: {media_type}, {width} x {height} pixels, {} bytes", bytes.len());
    if bytes.len() > MAX || width.max(height) > MAX_SIDE {
        let limit = format!("at most {MAX} bytes and {MAX_SIDE} x {MAX_SIDE} pixels can be shown");
        return Some(ToolOutcome::error(format!("{said}; {limit}: make a smaller copy")));
    }
    Some(ToolOutcome { images: vec![Image::new(media_type, bytes)], ..ToolOutcome::ok(said) })
}

/// Checks a picture that another process supplied: returns whether [`shown`] could have made it.
pub(super) fn may_be_shown(image: &Image) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let known = ["image/png", "image/jpeg", "image/gif", "image/webp"].contains(&image.media_type.as_str());
    known && image.data.len() <= MAX.div_ceil(3) * 4 && image.data.bytes().all(is_base64)
}

fn read(bytes: &[u8]) -> Option<Picture> {
    let (media_type, (width, height)) = match bytes {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("image/png", png(bytes)?),
        [0xff, 0xd8, 0xff, ..] => ("image/jpeg", jpeg(bytes)?),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => ("image/gif", gif(bytes)?),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ("image/webp", webp(bytes)?),
        _ => return None,
    };
    (width > 0 && height > 0).then_some(Picture { media_type, width, height })
}

/// Reads the chunks from the header to the end (PNG specification, section 5).
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut rest = bytes.get(8..)?;
    let size = (rest.get(4..8)? == b"IHDR").then_some((big(rest.get(8..12)?), big(rest.get(12..16)?)));
    loop {
        let length = big(rest.get(..4)?) as usize;
        let (kind, whole) = (rest.get(4..8)?, rest.get(..length.checked_add(12)?)?);
        if kind == b"IEND" {
            return size;
        }
        rest = &rest[whole.len()..];
    }
}

/// Reads the segments up to the first frame (ITU T.81, annex B), and looks for the end marker.
fn jpeg(bytes: &[u8]) -> Option<(u32, u32)> {
    memchr::memmem::rfind(bytes, &[0xff, 0xd9])?;
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else { return None };
        match marker {
            0xff => at += 1,
            0x01 | 0xd0..=0xd8 => at += 2,
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                let size = bytes.get(at + 5..at + 9)?;
                return Some((big(&size[2..]), big(&size[..2])));
            }
            0xd9 | 0xda => return None,
            _ => at += 2 + (big(bytes.get(at + 2..at + 4)?) as usize).max(2),
        }
    }
}

/// Reads the header and the trailer. Some programs leave zeros after the trailer.
fn gif(bytes: &[u8]) -> Option<(u32, u32)> {
    let size = bytes.get(6..10)?;
    let last = bytes.iter().rposition(|byte| *byte != 0)?;
    (bytes[last] == b';').then(|| (little(&size[..2]), little(&size[2..])))
}

/// Reads the length in the header and the size in the first chunk, which has one of three kinds.
fn webp(bytes: &[u8]) -> Option<(u32, u32)> {
    if (little(bytes.get(4..8)?) as usize).checked_add(8)? > bytes.len() {
        return None;
    }
    let data = bytes.get(20..30)?;
    Some(match bytes.get(12..16)? {
        b"VP8X" => (little(&data[4..7]) + 1, little(&data[7..10]) + 1),
        b"VP8L" if data[0] == 0x2f => {
            let bits = little(&data[1..5]);
            ((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1)
        }
        b"VP8 " if data[3..6] == [0x9d, 0x01, 0x2a] => (little(&data[6..8]) & 0x3fff, little(&data[8..10]) & 0x3fff),
        _ => return None,
    })
}

fn big(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn little(bytes: &[u8]) -> u32 {
    bytes.iter().rfold(0, |number, byte| number << 8 | u32::from(*byte))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns complete pictures of one pixel, at least one per format.
    pub(crate) fn pixels() -> [(&'static str, Vec<u8>); 6] {
        let png = [
            &b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90\x77\x53\xde\0\0\0\x0cIDAT"[..],
            b"\x08\xd7\x63\xf8\xcf\xc0\0\0\x03\x01\x01\0\x18\xdd\x8d\xb0\0\0\0\0IEND\xae\x42\x60\x82",
        ];
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x0b\x08\0\x01\0\x01\x01\x01\x11\0\xff\xda\0\x08\xff\xd9";
        let webp = |chunk: &[u8], data: &[u8]| {
            let size = u32::try_from(12 + data.len()).unwrap().to_le_bytes();
            [b"RIFF", &size[..], b"WEBP", chunk, &u32::try_from(data.len()).unwrap().to_le_bytes(), data].concat()
        };
        [
            ("image/png", png.concat()),
            ("image/jpeg", jpeg.to_vec()),
            (
                "image/gif",
                b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;\0".to_vec(),
            ),
            ("image/webp", webp(b"VP8X", &[0; 10])),
            ("image/webp", webp(b"VP8L", b"\x2f\0\0\0\0\0\0\0\0\0")),
            ("image/webp", webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a\x01\0\x01\0")),
        ]
    }

    #[test]
    fn a_whole_picture_is_known_by_its_bytes_and_a_cut_one_is_none() {
        for (media_type, bytes) in pixels() {
            assert_eq!(read(&bytes), Some(Picture { media_type, width: 1, height: 1 }), "{media_type}");
            for end in 0..bytes.len() - 2 {
                assert_eq!(read(&bytes[..end]), None, "{media_type} cut at {end}");
            }
        }
    }

    #[test]
    fn a_picture_that_is_too_large_is_named_and_not_shown() {
        let (_, mut png) = pixels()[0].clone();
        png[18..20].copy_from_slice(&8001_u16.to_be_bytes());
        let said = "`a` is a picture: image/png, 8001 x 1 pixels, 69 bytes; at most 3750000 bytes and 8000 x 8000 pixels can be shown: \
            make a smaller copy";
        assert_eq!(shown("a", &png), Some(ToolOutcome::error(said)));
    }

    #[test]
    fn a_picture_from_elsewhere_has_a_known_type_and_is_base64_of_a_bounded_length() {
        let fits = |media_type: &str, data: String| may_be_shown(&Image { media_type: media_type.into(), data });
        assert!(fits("image/png", "iVBORw0K+/==".into()));
        assert!(!fits("image/svg+xml", "iVBORw0K".into()));
        assert!(!fits("image/png", "iVBO***Rw0K".into()));
        assert!(!fits("image/png", "A".repeat(5_000_001)));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(which in 0..6_usize, at in 0..80_usize, byte: u8, end in 0..90_usize) {
            let (_, mut bytes) = pixels()[which].clone();
            bytes.truncate(end);
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _no_matter = read(&bytes);
        }
    }
}
