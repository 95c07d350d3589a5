//! An image in the conversation: a media type and base64 data, the form that every provider
//! accepts.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An image.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// `image/png`, `image/jpeg`, `image/gif` or `image/webp`.
    pub media_type: String,
    /// The bytes as base64, with padding.
    pub data: String,
}

impl Image {
    /// The size that an image counts for where a conversation is measured in bytes. Providers
    /// charge by area, at most about 1600 tokens.
    pub const BYTES: usize = 6400;

    /// Encodes the bytes of an image.
    pub fn new(media_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self { media_type: media_type.into(), data: STANDARD.encode(bytes) }
    }

    /// Returns the image as a `data:` URL.
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Image({}, {} bytes of base64)", self.media_type, self.data.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Block, ToolOutcome, ToolResult};
    use serde_json::{from_value, json, to_value};

    #[test]
    fn a_picture_is_its_type_and_its_bytes() {
        let image = Image::new("image/png", b"\x89PNG?");
        assert_eq!(image.data_url(), "data:image/png;base64,iVBORz8=");
        assert_eq!(format!("{image:?}"), "Image(image/png, 8 bytes of base64)");
        let block = json!({"type": "image", "media_type": "image/png", "data": "iVBORz8="});
        assert_eq!(to_value(Block::Image(image)).unwrap(), block);
    }

    #[test]
    fn results_from_before_there_were_pictures_are_read_and_written_as_they_were() {
        let result = json!({"id": "c", "content": "ok", "is_error": false});
        let outcome = json!({"content": "ok", "is_error": false, "transient": false, "change": null, "detail": "none"});
        assert_eq!(to_value(from_value::<ToolResult>(result.clone()).unwrap()).unwrap(), result);
        assert_eq!(to_value(from_value::<ToolOutcome>(outcome.clone()).unwrap()).unwrap(), outcome);
    }
}
