//! The knowledge of whether a model accepts images: the configured value, until the server refuses
//! an image.

use super::ModelRequest;
use crate::chat::{Block, ModelError, ModelErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

/// Words for images, and phrases that refuse them.
const PICTURES: [&str; 4] = ["image", "picture", "multimodal", "vision"];
const REFUSED: [&str; 10] = [
    "support",
    "unknown variant",
    "not a multimodal",
    "not multimodal",
    "expected `text`",
    "only text",
    "must be a string",
    "missing data",
    "at most 0",
    "not allowed",
];

/// True while images are sent.
#[derive(Debug)]
pub(super) struct VisionSupport(AtomicBool);

impl VisionSupport {
    /// Creates the state with the configured value.
    pub(super) fn new(images: bool) -> Self {
        Self(AtomicBool::new(images))
    }

    /// Returns true if images are sent.
    pub(super) fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Checks whether the server refused the images of a request. If so, later requests contain no
    /// images, and the error becomes retryable.
    pub(super) fn note_refusal(&self, refusal: ModelError, status: u16, request: &ModelRequest) -> ModelError {
        let says = |words: &[&str]| words.iter().any(|word| refusal.message.to_lowercase().contains(word));
        let may_be = matches!(status, 400 | 404 | 415 | 422 | 500 | 501) && says(&PICTURES) && says(&REFUSED);
        if !may_be || !shows(request) || !self.0.swap(false, Ordering::Relaxed) {
            return refusal;
        }
        let message = format!("{} (trying again without images)", refusal.message);
        ModelError { fault: ModelErrorKind::Busy, message, retry_after_ms: None, spent: refusal.spent }
    }
}

/// Returns true if a request contains images.
fn shows(request: &ModelRequest) -> bool {
    request.messages.iter().flat_map(|message| &message.content).any(|block| match block {
        Block::Image(_) => true,
        Block::ToolResult(result) => !result.images.is_empty(),
        Block::Text { .. } | Block::Thinking { .. } | Block::ToolUse(_) | Block::Opaque { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::{Image, Message, Role};

    #[test]
    fn pictures_are_left_out_once_a_server_says_that_it_takes_none() {
        let request = |content| ModelRequest {
            system: String::new(),
            messages: [Message { role: Role::User, content }].into(),
            tools: [].into(),
            turn: 1,
            max_output: None,
        };
        let shown = request(vec![Block::Image(Image::new("image/png", b"png"))]);
        let plain = request(vec![Block::Text { text: "go".into() }]);
        let note_refusal = |sight: &VisionSupport, status, body: &str, request: &ModelRequest| {
            sight.note_refusal(ModelError::new(ModelErrorKind::BadRequest, body), status, request).fault
        };
        for (status, body) in [
            (404, "No endpoints found that support image input"),
            (422, "unknown variant `image_url`, expected `text`"),
            (500, "image input is not supported"),
            (400, "At most 0 image(s) may be provided in one prompt."),
            (400, "qwen3 is not a multimodal model"),
        ] {
            let sight = VisionSupport::new(true);
            assert_eq!(note_refusal(&sight, status, body, &plain), ModelErrorKind::BadRequest, "{body}");
            assert_eq!(
                (note_refusal(&sight, status, body, &shown), sight.is_there()),
                (ModelErrorKind::Busy, false),
                "{body}"
            );
            assert_eq!(note_refusal(&sight, status, body, &shown), ModelErrorKind::BadRequest, "once: {body}");
        }
        let sight = VisionSupport::new(true);
        for (status, body) in [(400, "max_tokens is not supported"), (401, "images are not supported for this key")] {
            assert_eq!(
                (note_refusal(&sight, status, body, &shown), sight.is_there()),
                (ModelErrorKind::BadRequest, true),
                "{body}"
            );
        }
    }
}
