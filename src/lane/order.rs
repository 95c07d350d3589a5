//! What steps are called when nobody names them, and whether their order has a circle in it.

use super::reading::LONGEST_NAME;
use super::{Joint, Step};
use std::collections::{BTreeMap, BTreeSet};

/// Steps that wait for each other, the first one again at the end; found in Kahn's way: what can never start is in a circle, or waits
/// for one. Joints are numbered behind the steps, and left out of what is found.
pub(super) fn circle(steps: &[Step], joints: &[Joint]) -> Option<Vec<usize>> {
    let count = steps.len();
    let of_steps = steps.iter().map(|step| (&step.after, &step.joints));
    let before: Vec<(&Vec<usize>, &Vec<usize>)> =
        of_steps.chain(joints.iter().map(|joint| (&joint.steps, &joint.joints))).collect();
    let all = |node: usize| before[node].0.iter().copied().chain(before[node].1.iter().map(move |joint| joint + count));
    let mut missing: Vec<usize> = (0..before.len()).map(|node| all(node).count()).collect();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); before.len()];
    for node in 0..before.len() {
        all(node).for_each(|earlier| followers[earlier].push(node));
    }
    let mut ready: Vec<usize> = (0..before.len()).filter(|node| missing[*node] == 0).collect();
    while let Some(node) = ready.pop() {
        for follower in &followers[node] {
            missing[*follower] -= 1;
            if missing[*follower] == 0 {
                ready.push(*follower);
            }
        }
    }
    let mut walk = vec![(0..before.len()).find(|node| missing[*node] > 0)?];
    let mut seen = BTreeMap::from([(walk[0], 0)]);
    loop {
        let next = all(*walk.last()?).find(|earlier| missing[*earlier] > 0)?;
        walk.push(next);
        if let Some(start) = seen.insert(next, walk.len() - 1) {
            let mut circle: Vec<usize> = walk.split_off(start).into_iter().filter(|node| *node < count).collect();
            if circle.first() != circle.last() || circle.len() == 1 {
                circle.extend(circle.first().copied());
            }
            return Some(circle);
        }
    }
}

/// Names that no two steps have.
#[derive(Debug, Default)]
pub(super) struct Names {
    taken: BTreeSet<String>,
    /// The last number that a name was given.
    numbers: BTreeMap<String, usize>,
}

impl Names {
    /// With these taken from the start.
    pub(super) fn new(taken: BTreeSet<String>) -> Self {
        Self { taken, numbers: BTreeMap::new() }
    }

    /// Takes this name, or where it is taken this one with a number.
    pub(super) fn take(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let number = self.numbers.entry(name.clone()).or_insert(1);
        while !self.taken.insert(name.clone()) {
            *number += 1;
            name = format!("{base} {number}");
        }
        name
    }
}

/// What a command is called: its words up to the first option or shell sign, three at most.
pub(super) fn first_words(run: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-/:@+=".contains(char);
    let words = run.split_whitespace().take_while(|word| !word.starts_with('-') && word.chars().all(plain));
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    if name.is_empty() { "step".into() } else { name.chars().take(LONGEST_NAME - 10).collect() }
}
