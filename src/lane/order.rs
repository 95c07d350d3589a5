//! What steps are called when nobody names them, and whether their order has a circle in it.

use super::Step;
use super::reading::LONGEST_NAME;
use std::collections::BTreeSet;

/// Steps that wait for each other, the first one again at the end; found in Kahn's way: what can never start is in a circle, or waits
/// for one.
pub(super) fn circle(steps: &[Step]) -> Option<Vec<usize>> {
    let mut missing: Vec<usize> = steps.iter().map(|step| step.after.len()).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); steps.len()];
    for (number, step) in steps.iter().enumerate() {
        step.after.iter().for_each(|earlier| followers[*earlier].push(number));
    }
    let mut ready: Vec<usize> = (0..steps.len()).filter(|number| missing[*number] == 0).collect();
    while let Some(number) = ready.pop() {
        for follower in &followers[number] {
            missing[*follower] -= 1;
            if missing[*follower] == 0 {
                ready.push(*follower);
            }
        }
    }
    let mut walk = vec![(0..steps.len()).find(|number| missing[*number] > 0)?];
    loop {
        let stuck = |earlier: &&usize| missing[**earlier] > 0;
        let next = *walk.last().and_then(|last| steps[*last].after.iter().find(stuck))?;
        let seen = walk.iter().position(|number| *number == next);
        walk.push(next);
        if let Some(seen) = seen {
            return Some(walk.split_off(seen));
        }
    }
}

/// A name that no other step has.
pub(super) fn free_name(base: &str, taken: &BTreeSet<String>) -> String {
    let mut name = base.to_owned();
    let mut number = 1;
    while taken.contains(&name) {
        number += 1;
        name = format!("{base} {number}");
    }
    name
}

/// What a command is called: its words up to the first option or shell sign, three at most.
pub(super) fn first_words(run: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-/:@+=".contains(char);
    let words = run.split_whitespace().take_while(|word| !word.starts_with('-') && word.chars().all(plain));
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    if name.is_empty() { "step".into() } else { name.chars().take(LONGEST_NAME - 10).collect() }
}
