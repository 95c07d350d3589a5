//! The time of day, for timestamps and expiry in the server.

use jiff::Timestamp;

/// Returns the current time.
pub(in crate::serve) fn now() -> Timestamp {
    Timestamp::now()
}
