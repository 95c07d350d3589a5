//! The time of day, for what the server stamps and for what expires.

use jiff::Timestamp;

/// Now.
pub(in crate::serve) fn now() -> Timestamp {
    Timestamp::now()
}

/// A time as it is given out: RFC 3339 in UTC with milliseconds.
pub(in crate::serve) fn rfc3339(time: Timestamp) -> String {
    format!("{time:.3}")
}
