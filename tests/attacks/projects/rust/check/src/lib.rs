//! Assertions that print both values.

/// Asserts that both values are equal.
pub fn same(left: i64, right: i64) {
    assert_eq!(left, right, "{left} is not {right}");
}
