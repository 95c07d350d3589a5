//! Confidence interval of a rate. Pure.

/// The two-sided 5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Returns the Wilson score interval for `successes` of `trials` at 95 %, without continuity
/// correction; `None` without trials. Source: E. B. Wilson, Probable Inference, the Law of
/// Succession, and Statistical Inference, 1927.
pub fn wilson(successes: usize, trials: usize) -> Option<[f64; 2]> {
    if trials == 0 {
        return None;
    }
    let (n, p) = (float(trials), float(successes.min(trials)) / float(trials));
    let (square, scale) = (Z * Z, 1.0 + Z * Z / n);
    let centre = (p + square / (2.0 * n)) / scale;
    let half = Z * (p * (1.0 - p) / n + square / (4.0 * n * n)).sqrt() / scale;
    Some([(centre - half).max(0.0), (centre + half).min(1.0)])
}

/// Converts a count to a float.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Source: R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics
    /// in Medicine 17 (1998), table I, method 3.
    #[test]
    fn the_interval_is_that_of_the_literature() {
        for (successes, trials, low, high) in
            [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)]
        {
            let [own_low, own_high] = wilson(successes, trials).unwrap();
            let is_near = |own: f64, known: f64| (own - known).abs() < 0.000_05;
            assert!(is_near(own_low, low) && is_near(own_high, high), "{successes}/{trials}: {own_low} {own_high}");
        }
        let [low, high] = wilson(20, 20).unwrap();
        assert!((low - (1.0 - 0.1611)).abs() < 0.000_05 && (1.0 - 1e-12..=1.0).contains(&high));
        assert_eq!(wilson(0, 0), None);
    }
}
