//! The texts of lane files, kept for messages that show the line of a problem.

use super::{LaneError, LaneRemark};
use crate::yaml::Problems;
use std::collections::BTreeMap;

/// Texts by file name.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedTexts(BTreeMap<String, NamedText>);

#[derive(Debug, Clone)]
struct NamedText {
    text: String,
    /// True if the file has other content too, which may be secret.
    is_private: bool,
}

impl NamedTexts {
    /// Stores the text of a file.
    pub(super) fn keep(&mut self, path: &str, text: &str, is_private: bool) {
        self.0.insert(path.to_owned(), NamedText { text: text.to_owned(), is_private });
    }

    /// Adds the line to each problem.
    pub(super) fn in_fault(&self, fault: LaneError) -> LaneError {
        let files = fault.files.into_iter().map(|(path, problems)| (path.clone(), self.seen(&path, problems)));
        LaneError { files: files.collect() }
    }

    /// Adds the line to a remark.
    pub(super) fn in_remark(&self, remark: LaneRemark) -> LaneRemark {
        let problem = self.seen(&remark.path, remark.problem.clone().into()).sorted().pop();
        LaneRemark { problem: problem.unwrap_or(remark.problem), ..remark }
    }

    fn seen(&self, path: &str, problems: Problems) -> Problems {
        match self.0.get(path) {
            Some(NamedText { text, is_private: false }) => problems.seen_in(text),
            Some(NamedText { text, is_private: true }) => problems.seen_in_private(text),
            None => problems,
        }
    }
}
