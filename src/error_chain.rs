//! The chain of causes of an error, in one line.

use std::error::Error;

/// Returns the error and each of its causes, outermost first: `cannot read x: permission denied`.
pub fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Inner);

    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner(#[source] std::fmt::Error);

    #[test]
    fn every_cause_is_named_once_the_outermost_first() {
        assert_eq!(chain(&Inner(std::fmt::Error)), format!("inner: {}", std::fmt::Error));
        assert_eq!(chain(&Outer(Inner(std::fmt::Error))), format!("outer: inner: {}", std::fmt::Error));
        assert_eq!(chain(&std::fmt::Error), std::fmt::Error.to_string());
    }
}
