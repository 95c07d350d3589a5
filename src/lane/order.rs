//! What steps are called when nobody names them, and whether their order has a circle in it.

use super::reading::LONGEST_NAME;
use super::{Joint, Step};
use std::collections::{BTreeMap, BTreeSet};

/// The most circles that are told.
const CIRCLES: usize = 10;

/// Steps that wait for each other, the first one again at the end; found in Kahn's way: what can never start is in a circle, or waits
/// for one. Of steps that all wait for each other there is one circle. Joints are numbered behind the steps, and left out of what is
/// found.
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
        // What comes both before and behind a step of the circle is in it, or in another one of the same steps.
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

/// From node to node until one comes again; from that one on, and it again at the end.
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

/// Everything that is reached from a node, and it.
fn reached(first: usize, next: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let (mut open, mut seen) = (vec![first], BTreeSet::from([first]));
    while let Some(node) = open.pop() {
        open.extend(next(node).into_iter().filter(|next| seen.insert(*next)));
    }
    seen
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
