//! Shares equal lists of tools among the runs of a process, for as long as a run uses them.

use crate::chat::ToolSpec;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The lists of tools in use.
static TOOLS: Mutex<Vec<Weak<[ToolSpec]>>> = Mutex::new(Vec::new());

/// Returns the equal list of another run if there is one, else a copy of `own`.
pub(super) fn tools(own: &[ToolSpec]) -> Arc<[ToolSpec]> {
    let mut known = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|list| list.strong_count() > 0);
    if let Some(same) = known.iter().filter_map(Weak::upgrade).find(|list| **list == *own) {
        return same;
    }
    let list: Arc<[ToolSpec]> = own.into();
    known.push(Arc::downgrade(&list));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_one_as_long_as_somebody_holds_it() {
        let list = |name: &str| [ToolSpec { name: name.into(), description: String::new(), schema: name.into() }];
        let first = tools(&list("alike-1"));
        assert!(Arc::ptr_eq(&first, &tools(&list("alike-1"))) && !Arc::ptr_eq(&first, &tools(&list("alike-2"))));
        drop(first);
        assert_eq!(*tools(&list("alike-1")), list("alike-1"));
    }
}
