//! Cached answers of git about trees. A tree never changes, so an answer stays valid. Each gate run
//! asks the same few questions several times.

use super::{TreeChange, TreeEntry};
use crate::id::TreeId;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// The number of cached answers.
const ANSWERS: usize = 4;
/// The longest cached list. With hundreds of concurrent runs, lists of large projects would fill
/// the memory.
const LONGEST: usize = 20_000;

/// The answers of one workspace.
#[derive(Debug, Default)]
pub(super) struct GitAnswers {
    /// The changes between two trees.
    pub(super) changes: RecentLists<(TreeId, TreeId), TreeChange>,
    /// The entries of a tree.
    pub(super) entries: RecentLists<TreeId, TreeEntry>,
}

/// The newest lists from git, by query.
#[derive(Debug)]
pub(super) struct RecentLists<K, T>(Mutex<VecDeque<(K, Vec<T>)>>);

impl<K, T> Default for RecentLists<K, T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: PartialEq, T: Clone> RecentLists<K, T> {
    pub(super) fn get(&self, key: &K) -> Option<Vec<T>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().find(|(of, _)| of == key).map(|(_, list)| list.clone())
    }

    pub(super) fn keep(&self, key: K, list: &[T]) {
        if list.len() > LONGEST {
            return;
        }
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.truncate(ANSWERS - 1);
        seen.push_front((key, list.to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lists_are_kept_and_none_that_is_too_long() {
        let lists = RecentLists::<usize, u8>::default();
        (0..=ANSWERS).for_each(|number| lists.keep(number, &[1]));
        assert_eq!([lists.get(&0), lists.get(&1), lists.get(&ANSWERS)], [None, Some(vec![1]), Some(vec![1])]);
        lists.keep(9, &vec![1; LONGEST + 1]);
        assert_eq!(lists.get(&9), None);
    }
}
