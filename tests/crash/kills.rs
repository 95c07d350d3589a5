//! A run that is killed at random moments, and so is whoever takes it up: SIGKILL asks nobody.

use crate::judge::{Calm, Course, killed_after};
use crate::{each, is_whole, scene};
use std::time::{Duration, Instant};

#[test]
fn a_run_that_is_killed_at_random_moments_ends_as_if_it_had_not() {
    let begun = Instant::now();
    let calm = Calm::new();
    let whole = begun.elapsed();
    let seed: u64 = std::env::var("FLEDGE_CRASH_SEED").map_or(1, |seed| seed.parse().unwrap());
    println!("FLEDGE_CRASH_SEED={seed}, a run takes {whole:?}");
    // Two kills each: one of the run, one of who takes it up.
    let trials = if is_whole() { 150 } else { 3 };
    let cases: Vec<String> = (0..trials).map(|trial| trial.to_string()).collect();
    each(&cases, |trial| {
        let mut dice = Dice(seed.wrapping_mul(1_000_003).wrapping_add(trial.parse().unwrap()));
        let model = scene::model();
        let running = scene::beginning(&model).start();
        let course = Course::new(model, killed_after(running, dice.below(whole)));
        let course = course.again_until(dice.below(whole));
        course.must_end_like(&calm, false);
    });
}

/// Chance from a seed (splitmix64, Steele and others 2014).
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        most.mul_f64((mixed ^ (mixed >> 31)) as f64 / u64::MAX as f64)
    }
}
