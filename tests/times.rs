//! A report that runs after the integration tests and prints how long each part took, the slowest
//! first.
//!
//! The parts run in parallel, so their sum exceeds the elapsed time. The unit tests in `src/` print
//! their own times.
#![expect(clippy::print_stdout, reason = "the table is all that this program is for")]

use std::collections::BTreeMap;

fn main() {
    let path = format!("{}/times.{}", env!("CARGO_TARGET_TMPDIR"), std::os::unix::process::parent_id());
    let Ok(lines) = std::fs::read_to_string(&path) else { return };
    let _left_for_the_next_clean = std::fs::remove_file(path);
    let mut tests: Vec<(u64, &str)> = lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(time, name)| Some((time.parse().ok()?, name)))
        .collect();
    tests.sort_unstable_by(|a, b| b.cmp(a));
    let mut parts = BTreeMap::<&str, (u64, usize)>::new();
    for (time, name) in &tests {
        let part = parts.entry(name.split("::").next().unwrap_or(name)).or_default();
        *part = (part.0 + time, part.1 + 1);
    }
    let mut parts: Vec<_> = parts.into_iter().collect();
    parts.sort_unstable_by_key(|(_, (time, _))| std::cmp::Reverse(*time));
    println!("\nseconds  tests  part (the parts run at the same time)");
    for (part, (time, count)) in parts {
        println!("{:>7.1}  {count:>5}  {part}", seconds(time));
    }
    println!("\nseconds  slowest tests");
    for (time, name) in tests.into_iter().take(10) {
        println!("{:>7.1}  {name}", seconds(time));
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
