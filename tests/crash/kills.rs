//! A run that SIGKILL ends at random moments, as it ends the process that resumes the run.

use crate::crash::judge::{Calm, Course, killed_after};
use crate::crash::{each, scene};
use crate::support::{amount, dice};
use std::time::Instant;

#[test]
fn a_run_that_is_killed_at_random_moments_ends_as_if_it_had_not() {
    long_table!();
    let begun = Instant::now();
    let calm = Calm::new();
    let whole = begun.elapsed();
    // Each trial has two kills: one of the run, one of the process that resumes it.
    let trials = amount(3, 150);
    let cases: Vec<String> = (0..trials).map(|trial| trial.to_string()).collect();
    each(&cases, |trial| {
        let mut dice = dice(&format!("kills {trial}"));
        let mut moment = || whole.mul_f64(dice.below(1 << 32) as f64 / f64::from(u32::MAX));
        let model = scene::model();
        let running = scene::beginning(&model).start();
        let course = Course::new(model, killed_after(running, moment()));
        let course = course.again_until(moment());
        course.must_end_like(&calm, false);
    });
}
