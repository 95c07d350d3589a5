//! Generated names of steps, and cycles in the order of steps.

use super::reading::LONGEST_NAME;
use super::{Joint, Step};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of reported cycles.
const CIRCLES: usize = 10;

/// Finds cycles of steps that wait for each other. Each cycle ends with its first step repeated.
///
/// The search uses Kahn's algorithm: a step that can never start is in a cycle or waits for one.
/// Steps that all wait for each other form one cycle. Joints are numbered after the steps and
/// omitted from the result.
pub(super) fn circles(steps: &[Step], joints: &[Joint]) -> Vec<Vec<usize>> {
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
    let mut circles = Vec::new();
    loop {
        while let Some(node) = ready.pop() {
            for follower in &followers[node] {
                if missing[*follower] > 0 {
                    missing[*follower] -= 1;
                    ready.extend((missing[*follower] == 0).then_some(*follower));
                }
            }
        }
        let first = (0..before.len()).find(|node| missing[*node] > 0).filter(|_| circles.len() < CIRCLES);
        let Some(first) = first else { return circles };
        let stuck = |node: usize| all(node).filter(|earlier| missing[*earlier] > 0).collect::<Vec<_>>();
        let Some(walked) = walk(first, stuck) else { return circles };
        let behind = |node: usize| followers[node].iter().copied().filter(|later| missing[*later] > 0).collect();
        // A node both before and after a step of the cycle is in this cycle, or in another cycle of
        // the same steps.
        let before_it = reached(walked[0], stuck);
        let knot: Vec<usize> = reached(walked[0], behind).intersection(&before_it).copied().collect();
        let mut circle: Vec<usize> = walked.into_iter().filter(|node| *node < count).collect();
        if circle.first() != circle.last() || circle.len() == 1 {
            circle.extend(circle.first().copied());
        }
        circles.push(circle);
        knot.iter().for_each(|node| missing[*node] = 0);
        ready.extend(knot);
    }
}

/// Follows the nodes until one repeats. Returns the path from its first occurrence to its second
/// one.
fn walk(first: usize, next: impl Fn(usize) -> Vec<usize>) -> Option<Vec<usize>> {
    let mut walk = vec![first];
    let mut seen = BTreeMap::from([(first, 0)]);
    loop {
        let next = *next(*walk.last()?).first()?;
        walk.push(next);
        if let Some(start) = seen.insert(next, walk.len() - 1) {
            return Some(walk.split_off(start));
        }
    }
}

/// Returns all nodes that can be reached from a node, including the node itself.
fn reached(first: usize, next: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let (mut open, mut seen) = (vec![first], BTreeSet::from([first]));
    while let Some(node) = open.pop() {
        open.extend(next(node).into_iter().filter(|next| seen.insert(*next)));
    }
    seen
}

/// Unique names of steps.
#[derive(Debug, Default)]
pub(super) struct StepNames {
    taken: BTreeSet<String>,
    /// The last number given to each name.
    numbers: BTreeMap<String, usize>,
}

impl StepNames {
    /// Creates the set, with these names already taken.
    pub(super) fn new(taken: BTreeSet<String>) -> Self {
        Self { taken, numbers: BTreeMap::new() }
    }

    /// Takes a name; adds a number if the name is already taken.
    pub(super) fn claim(&mut self, base: &str) -> String {
        let mut name = base.to_owned();
        let number = self.numbers.entry(name.clone()).or_insert(1);
        while !self.taken.insert(name.clone()) {
            *number += 1;
            name = format!("{base} {number}");
        }
        name
    }
}

/// Derives a name from a command: its words up to the first option or shell operator, three at
/// most.
pub(super) fn first_words(run: &str) -> String {
    let plain = |char: char| char.is_alphanumeric() || "._-/:@+=".contains(char);
    let words = run.split_whitespace().take_while(|word| !word.starts_with('-') && word.chars().all(plain));
    let name = words.take(3).collect::<Vec<_>>().join(" ");
    if name.is_empty() { "step".into() } else { name.chars().take(LONGEST_NAME - 10).collect() }
}
