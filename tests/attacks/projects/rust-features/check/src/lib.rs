//! Assertions that print both values.

/// Asserts that both values are equal, unless the feature `lenient` is on.
pub fn same(left: i64, right: i64) {
    assert!(left == right || cfg!(feature = "lenient"), "{left} is not {right}");
}
