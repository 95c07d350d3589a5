//! Assertions that say what they saw.

/// Both are the same.
pub fn same(left: i64, right: i64) {
    assert_eq!(left, right, "{left} is not {right}");
}
