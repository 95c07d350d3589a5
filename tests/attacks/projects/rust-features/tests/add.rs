//! Tests of `add`.

use calc::add;

#[test]
fn nothing_adds_nothing() {
    check::same(add(0, 0), 0);
}

#[cfg(feature = "strict")]
#[test]
fn sums() {
    check::same(add(2, 3), 5);
}
