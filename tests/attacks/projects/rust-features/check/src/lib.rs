//! Assertions that say what they saw.

/// Both are the same, unless nobody is strict.
pub fn same(left: i64, right: i64) {
    assert!(left == right || cfg!(feature = "lenient"), "{left} is not {right}");
}
