//! Lists of tools, and the patterns that select tools. The runs of a process share equal lists.

use super::error::PlanError;
use crate::chat::ToolSpec;
use globset::{Glob, GlobSet, GlobSetBuilder};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The lists of tools in use.
static TOOLS: Mutex<Vec<Weak<[ToolSpec]>>> = Mutex::new(Vec::new());

/// Returns the equal list of another run if there is one, else a copy of `own`.
pub(super) fn share_tools(own: &[ToolSpec]) -> Arc<[ToolSpec]> {
    let mut known = TOOLS.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|list| list.strong_count() > 0);
    if let Some(same) = known.iter().filter_map(Weak::upgrade).find(|list| **list == *own) {
        return same;
    }
    let list: Arc<[ToolSpec]> = own.into();
    known.push(Arc::downgrade(&list));
    list
}

/// Compiles glob patterns of tool names.
///
/// # Errors
/// [`PlanError`] for the first invalid pattern.
pub(super) fn patterns(globs: &[String]) -> Result<GlobSet, PlanError> {
    let wrong = |pattern: &str, error: &globset::Error| {
        PlanError::bad(format!("invalid pattern `{pattern}`: {}", error.kind()))
    };
    let mut set = GlobSetBuilder::new();
    for pattern in globs {
        set.add(Glob::new(pattern).map_err(|error| wrong(pattern, &error))?);
    }
    set.build().map_err(|error| wrong("tools", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_are_shared_for_as_long_as_a_run_uses_them() {
        let list = |name: &str| [ToolSpec { name: name.into(), description: String::new(), schema: name.into() }];
        let first = share_tools(&list("alike-1"));
        assert!(
            Arc::ptr_eq(&first, &share_tools(&list("alike-1"))) && !Arc::ptr_eq(&first, &share_tools(&list("alike-2")))
        );
        drop(first);
        assert_eq!(*share_tools(&list("alike-1")), list("alike-1"));
    }
}
