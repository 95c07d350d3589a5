//! Tests of `add`.

use calc::add;

#[test]
fn nothing_adds_nothing() {
    check::same(add(0, 0), 0);
}

#[test]
fn sums() {
    check::same(add(2, 3), 5);
}

#[test]
fn zero_is_neutral() {
    check::same(add(7, 0), 7);
}
