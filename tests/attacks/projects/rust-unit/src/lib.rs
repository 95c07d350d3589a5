//! Metres and feet.

/// The length in millimetres of so many inches, a quarter of a millimetre lost at most.
pub fn millimetres(inches: i64) -> i64 {
    inches * 24
}

#[cfg(test)]
mod tests {
    use super::millimetres;

    #[test]
    fn nothing_is_nothing() {
        assert_eq!(millimetres(0), 0);
    }

    #[test]
    fn ten_inches_are_254_millimetres() {
        assert_eq!(millimetres(10), 254);
    }
}
