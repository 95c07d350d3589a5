//! The result of a call as text. Content other than text is described.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// Returns the text of a result, and whether the server reports an error.
pub(super) fn read(result: CallToolResult) -> (String, bool) {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let mut parts: Vec<String> = content.into_iter().map(block).collect();
    if let Some(value) = structured_content {
        // Servers often repeat this as text, for clients that ignore structured content.
        let is_told = parts.iter().any(|part| serde_json::from_str::<Value>(part).is_ok_and(|part| part == value));
        if !is_told {
            parts.push(value.to_string());
        }
    }
    (parts.join("\n"), is_error == Some(true))
}

fn block(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => not_shown("an image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => not_shown("a sound", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("{uri}:\n{text}"),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                not_shown(&uri, mime_type.as_deref(), &blob)
            }
            _ => "[a resource of unknown kind]".into(),
        },
        ContentBlock::ResourceLink(link) => format!("[a link to {}: {}]", link.name, link.uri),
        _ => "[content of unknown kind]".into(),
    }
}

/// Returns the text that replaces base64 content.
fn not_shown(what: &str, kind: Option<&str>, base64: &str) -> String {
    format!("[{what}, {}, about {} bytes: not shown]", kind.unwrap_or("of unknown kind"), base64.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text_of_result(result: Value) -> (String, bool) {
        read(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn a_result_is_its_texts_and_what_is_no_text_is_described() {
        let content = json!([
            { "type": "text", "text": "one" },
            { "type": "image", "data": "AAAAAAAA", "mimeType": "image/png" },
            { "type": "audio", "data": "AAAA", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "two" } },
            { "type": "resource", "resource": { "uri": "file:///b", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "file:///c", "name": "c" },
        ]);
        let expected = "one\n[an image, image/png, about 6 bytes: not shown]\n[a sound, audio/wav, about 3 bytes: not shown]\n\
            file:///a:\ntwo\n[file:///b, of unknown kind, about 3 bytes: not shown]\n[a link to c: file:///c]";
        assert_eq!(text_of_result(json!({ "content": content, "isError": true })), (expected.into(), true));
    }

    #[test]
    fn structured_content_is_given_as_json_unless_a_text_says_the_same() {
        let value = json!({ "a": [1, 2.5] });
        let text = json!([{ "type": "text", "text": "{ \"a\": [1, 2.5] }" }]);
        assert_eq!(text_of_result(json!({ "content": text, "structuredContent": value })).0, "{ \"a\": [1, 2.5] }");
        assert_eq!(text_of_result(json!({ "content": [], "structuredContent": value })).0, "{\"a\":[1,2.5]}");
        let other = json!([{ "type": "text", "text": "see there" }]);
        assert_eq!(
            text_of_result(json!({ "content": other, "structuredContent": value })).0,
            "see there\n{\"a\":[1,2.5]}"
        );
    }
}
