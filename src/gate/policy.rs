//! Stand-in.
use crate::verdict::Finding;
use crate::workspace::Protection;
use crate::workspace::trees::TreeChange;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
pub(super) struct Policy {
    pub(super) protection: Protection,
}

pub(super) type Contents = BTreeMap<String, (Option<Vec<u8>>, Option<Vec<u8>>)>;

impl Policy {
    pub(super) fn wants_content(&self, _path: &str) -> bool {
        false
    }
    pub(super) fn findings(&self, changes: &[TreeChange], _contents: &Contents) -> Vec<Finding> {
        let found = changes.iter().filter_map(|change| Some((change, self.protection.rule(&change.path)?)));
        let finding = |(change, rule): (&TreeChange, &crate::workspace::ProtectedRule)| Finding {
            path: change.path.clone(),
            change: "changed".into(),
            rule: rule.why.clone(),
        };
        found.map(finding).collect()
    }
    pub(super) fn opened(&self, _changes: &[TreeChange]) -> Vec<String> {
        Vec::new()
    }
    pub(super) fn kept(&self) -> &[String] {
        &[]
    }
}
