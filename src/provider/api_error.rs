//! Errors that an API reports, by status or inside a stream, and their classification as
//! [`ModelErrorKind`].
//!
//! Sources: the error pages of the Anthropic and OpenAI API references, and the messages of
//! compatible servers.

use crate::chat::{ModelError, ModelErrorKind};
use jiff::{Timestamp, fmt::rfc2822};
use serde_json::Value;

/// An error report of an API.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ApiErrorText {
    /// The type and the code, in lower case, separated by a space.
    label: String,
    /// The code, if it is an HTTP status, as a number (OpenRouter) or as a text (LiteLLM).
    status: Option<u16>,
    /// The message.
    message: String,
}

/// Error names and phrases for an account without money or quota.
const MONEY: [&str; 12] = [
    "insufficient_quota",
    "billing_error",
    "billing_hard_limit",
    "billing_not_active",
    "insufficient_credits",
    "spend_limit",
    "credit balance is too low",
    "specified api usage limits",
    "session usage limit",
    "hourly usage limit",
    "weekly usage limit",
    "monthly usage limit",
];

/// Error names and phrases for a conversation that is too long.
const TOO_LONG: [&str; 9] = [
    "context_length_exceeded",
    "exceed_context_size",
    "request_too_large",
    "prompt is too long",
    "exceed context limit",
    "context length",
    "context size",
    "context window",
    "exceeds the maximum number of tokens",
];

/// Phrases for a request with tools to a model or server that cannot call them: Ollama, vLLM,
/// llama.cpp (with status 500) and OpenRouter (with status 404).
const NO_TOOLS: [&str; 4] = [
    "does not support tools",
    "tool choice requires --enable-auto-tool-choice",
    "requires --jinja",
    "no endpoints found that support tool use",
];

impl ApiErrorText {
    /// Parses the body of a failed request. A body that is not JSON becomes the message.
    pub(super) fn parse(body: &str) -> Self {
        match serde_json::from_str::<Value>(body) {
            Ok(value) => Self::from_value(value.get("error").unwrap_or(&value)),
            Err(_) => Self { message: without_tags(body.trim()), ..Self::default() },
        }
    }

    /// Reads an `error` object, or the plain text that some servers send in its place.
    pub(super) fn from_value(error: &Value) -> Self {
        let member = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
        let code = error.get("code").and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        let code = code.and_then(|code| u16::try_from(code).ok());
        Self {
            label: format!("{} {}", member("type"), member("code")).to_lowercase().trim().to_owned(),
            status: code.filter(|code| (400..600).contains(code)),
            message: error.as_str().unwrap_or_else(|| member("message")).to_owned(),
        }
    }

    /// Returns the error for a report inside a stream. The report decides the kind, because the
    /// status was 200.
    pub(super) fn in_stream(self) -> ModelError {
        let fault = self.fault(self.status);
        let message = [self.label.as_str(), self.message.as_str()].join(" ");
        ModelError::new(fault, format!("the stream reports: {}{}", message.trim(), self.hint(fault)))
    }

    /// Returns the error for a failed request. `header` looks up a header; `now` is the reference
    /// for a date in `retry-after`.
    pub(super) fn refusal<'a>(
        self,
        status: u16,
        header: impl Fn(&str) -> Option<&'a str>,
        now: Timestamp,
    ) -> ModelError {
        let fault = match (self.fault(Some(status)), header("x-should-retry")) {
            (ModelErrorKind::Busy, Some("false")) if status == 429 => ModelErrorKind::Quota,
            (ModelErrorKind::Busy, Some("false")) => ModelErrorKind::BadRequest,
            (ModelErrorKind::BadRequest, Some("true")) => ModelErrorKind::Busy,
            (fault, _) => fault,
        };
        let words = match status {
            300..400 => "redirect not followed",
            _ if self.message.is_empty() && self.label.is_empty() => "no details",
            _ if self.message.is_empty() => &self.label,
            _ => &self.message,
        };
        let retry_after_ms = header("retry-after-ms")
            .and_then(|text| milliseconds(text, 1.0))
            .or_else(|| header("retry-after").and_then(|text| milliseconds(text, 1000.0).or_else(|| until(text, now))));
        ModelError { fault, message: format!("{status} {words}{}", self.hint(fault)), retry_after_ms, spent: None }
    }

    fn fault(&self, status: Option<u16>) -> ModelErrorKind {
        let says = |words: &[&str]| words.iter().any(|words| self.label.contains(words) || self.says(words));
        let client_side = status.is_none_or(|status| (400..500).contains(&status));
        if client_side && says(&MONEY) {
            return ModelErrorKind::Quota;
        }
        if client_side && status != Some(429) && says(&TOO_LONG) {
            return ModelErrorKind::ContextTooLong;
        }
        if self.lacks_tools() {
            return ModelErrorKind::BadRequest;
        }
        match status {
            Some(401 | 403) => ModelErrorKind::Auth,
            Some(402) => ModelErrorKind::Quota,
            Some(404) => ModelErrorKind::NotFound,
            Some(413) => ModelErrorKind::ContextTooLong,
            Some(408 | 409 | 425 | 429 | 500..) => ModelErrorKind::Busy,
            Some(..300) => ModelErrorKind::Protocol,
            Some(_) if self.label.contains("model_not_found") => ModelErrorKind::NotFound,
            Some(_) => ModelErrorKind::BadRequest,
            None => self.fault_by_label(),
        }
    }

    fn fault_by_label(&self) -> ModelErrorKind {
        let has = |word| self.label.contains(word);
        // Ollama's errors are plain text without a type.
        let says = |words: &[&str]| self.label.is_empty() && words.iter().any(|words| self.says(words));
        if says(&["unauthorized", "invalid api key", "forbidden"]) {
            return ModelErrorKind::Auth;
        }
        if has("authentication") || has("permission") || has("invalid_api_key") {
            ModelErrorKind::Auth
        } else if has("not_found") {
            ModelErrorKind::NotFound
        } else if has("invalid_request") || has("invalid_prompt") {
            ModelErrorKind::BadRequest
        } else {
            ModelErrorKind::Busy
        }
    }

    fn lacks_tools(&self) -> bool {
        NO_TOOLS.iter().any(|words| self.says(words))
    }

    fn says(&self, words: &str) -> bool {
        self.message.to_lowercase().contains(words)
    }

    /// Returns the hint that tells people how to fix the problem.
    fn hint(&self, fault: ModelErrorKind) -> &'static str {
        match fault {
            ModelErrorKind::Auth => CHECK_THE_KEY,
            ModelErrorKind::Quota => " (check the account's credit and limits)",
            ModelErrorKind::NotFound => " (check the model's name and the base URL)",
            _ if self.lacks_tools() => " (use a model that calls tools, or set `tools_mode: text` for this model)",
            ModelErrorKind::Network
            | ModelErrorKind::Busy
            | ModelErrorKind::Protocol
            | ModelErrorKind::ContextTooLong
            | ModelErrorKind::BadRequest => "",
        }
    }
}

/// Returns the title of an HTML page, or else its text without tags. Other texts are returned
/// unchanged.
fn without_tags(body: &str) -> String {
    if !body.starts_with('<') {
        return body.to_owned();
    }
    let lower = body.to_ascii_lowercase();
    let title = lower.find("<title>").zip(lower.find("</title>"));
    let page = title.and_then(|(open, close)| body.get(open + "<title>".len()..close)).unwrap_or(body);
    let mut is_tag = false;
    let words: String = page
        .chars()
        .map(|char| match char {
            '<' => {
                is_tag = true;
                ' '
            }
            '>' if is_tag => {
                is_tag = false;
                ' '
            }
            _ if is_tag => ' ',
            char => char,
        })
        .collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The hint for a refused key whose source is unknown.
pub(super) const CHECK_THE_KEY: &str = " (check the key)";

/// Parses a number of some unit as whole milliseconds, rounded up; `None` if it is not a number or
/// is negative.
fn milliseconds(text: &str, unit: f64) -> Option<u64> {
    let value = text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
    Some((value * unit).ceil() as u64) // saturates
}

/// Returns the time until an HTTP date, in milliseconds; `None` if the date has passed.
fn until(date: &str, now: Timestamp) -> Option<u64> {
    let then = rfc2822::DateTimeParser::new().parse_timestamp(date.trim()).ok()?;
    u64::try_from(then.as_millisecond().checked_sub(now.as_millisecond())?).ok().filter(|wait| *wait > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_told_by_its_title_or_its_words() {
        for (body, output) in [
            ("<html>\r\n<head><title>502 Bad Gateway</title></head>\n<body><hr>nginx</body></html>", "502 Bad Gateway"),
            ("<!DOCTYPE html><body><h1>Over  capacity</h1>\n<p>Try later", "Over capacity Try later"),
            ("a < b and c > d", "a < b and c > d"),
        ] {
            assert_eq!(ApiErrorText::parse(body).message, output);
        }
    }

    use ModelErrorKind::{Auth, BadRequest, Busy, ContextTooLong, NotFound, Quota};

    const NOW: &str = "2026-11-21T12:00:00Z";

    fn refusal(status: u16, headers: &[(&str, &'static str)], body: &str) -> ModelError {
        let header = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        ApiErrorText::parse(body).refusal(status, header, NOW.parse().unwrap())
    }

    #[test]
    fn the_status_decides_unless_the_words_know_better() {
        let cases = [
            (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#, Auth),
            (403, "", Auth),
            (402, "", Quota),
            (404, r#"{"error":{"code":"model_not_found","message":"no such model"}}"#, NotFound),
            (400, r#"{"error":{"code":"model_not_found","message":"no such model"}}"#, NotFound),
            (408, "", Busy),
            (409, "", Busy),
            (425, "", Busy),
            (429, r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#, Busy),
            (429, r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"x"}}"#, Quota),
            (400, r#"{"error":{"message":"Your credit balance is too low to access the Anthropic API"}}"#, Quota),
            (500, "", Busy),
            (503, "<html>billing department is down</html>", Busy),
            (529, r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#, Busy),
            (413, "", ContextTooLong),
            (400, r#"{"error":{"message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#, ContextTooLong),
            (400, r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#, ContextTooLong),
            (400, r#"{"error":"This model's maximum context length is 8192 tokens"}"#, ContextTooLong),
            (429, r#"{"error":{"message":"to go faster, see https://x/account/billing"}}"#, Busy),
            (204, "", ModelErrorKind::Protocol),
            (422, r#"{"detail":"bad"}"#, BadRequest),
            (400, r#"{"error":{"message":"registry/m:1b does not support tools"}}"#, BadRequest),
            (500, r#"{"error":{"code":500,"message":"tools param requires --jinja flag"}}"#, BadRequest),
            (404, r#"{"error":{"message":"No endpoints found that support tool use."}}"#, BadRequest),
            (301, "", BadRequest),
        ];
        let found: Vec<_> = cases.iter().map(|(status, body, _)| refusal(*status, &[], body).fault).collect();
        assert_eq!(found, cases.iter().map(|(_, _, fault)| *fault).collect::<Vec<_>>());
    }

    #[test]
    fn the_message_names_status_words_and_remedy() {
        let body = r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#;
        assert_eq!(refusal(401, &[], body), ModelError::new(Auth, "401 invalid x-api-key (check the key)"));
        assert_eq!(refusal(307, &[("location", "http://evil/")], "x").message, "307 redirect not followed");
        assert_eq!(refusal(503, &[], "").message, "503 no details");
        assert_eq!(
            refusal(400, &[], r#"{"error":"m does not support tools"}"#).message,
            "400 m does not support tools (use a model that calls tools, or set `tools_mode: text` for this model)"
        );
    }

    #[test]
    fn x_should_retry_is_obeyed() {
        let by = |status, wish| refusal(status, &[("x-should-retry", wish)], "").fault;
        assert_eq!(
            [by(500, "false"), by(429, "false"), by(400, "true"), by(401, "true")],
            [BadRequest, Quota, Busy, Auth]
        );
    }

    #[test]
    fn three_forms_of_retry_after_are_understood_and_others_ignored() {
        let cases: [(&str, &str, Option<u64>); 10] = [
            ("retry-after", "2", Some(2000)),
            ("retry-after", "1.5", Some(1500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "Sat, 21 Nov 2026 12:00:30 GMT", Some(30_000)),
            ("retry-after", "Sat, 21 Nov 2026 11:00:00 GMT", None),
            ("retry-after", "-3", None),
            ("retry-after", "NaN", None),
            ("retry-after", "inf", None),
            ("retry-after", "soon", None),
            ("retry-after", "1e300", Some(u64::MAX)),
        ];
        let found = cases.map(|(name, value, _)| refusal(429, &[(name, value)], "").retry_after_ms);
        assert_eq!(found, cases.map(|(_, _, wanted)| wanted));
        assert_eq!(refusal(429, &[("retry-after-ms", "x"), ("retry-after", "1")], "").retry_after_ms, Some(1000));
    }

    #[test]
    fn an_error_inside_a_stream_is_judged_by_its_own_words() {
        let fault = |error: &str| ApiErrorText::parse(error).in_stream().fault;
        assert_eq!(
            [
                fault(r#"{"type":"overloaded_error","message":"Overloaded"}"#),
                fault(r#"{"type":"authentication_error"}"#),
                fault(r#"{"type":"invalid_request_error","message":"prompt is too long"}"#),
                fault(r#"{"code":402,"message":"add credits"}"#),
                fault(r#"{"code":502,"message":"upstream"}"#),
                fault(r#"{"type":"None","code":"401","message":"AuthenticationError: no"}"#),
                fault(r#"{"type":"server_error"}"#),
                fault(r#"{"error":"unauthorized"}"#),
                fault(r#"{"error":"you have reached your weekly usage limit, upgrade for more"}"#),
                fault(r#"{"error":"model runner has unexpectedly stopped"}"#),
            ],
            [Busy, Auth, ContextTooLong, Quota, Busy, Auth, Busy, Auth, Quota, Busy]
        );
    }
}
