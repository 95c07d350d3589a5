//! The texts of lane files, kept for messages that show the line of a problem.

use super::{LaneFault, Remark};
use crate::yaml::Problems;
use std::collections::BTreeMap;

/// Texts by file name.
#[derive(Debug, Clone, Default)]
pub(super) struct Texts(BTreeMap<String, Text>);

#[derive(Debug, Clone)]
struct Text {
    text: String,
    /// True if the file has other content too, which may be secret.
    is_private: bool,
}

impl Texts {
    /// Stores the text of a file.
    pub(super) fn keep(&mut self, path: &str, text: &str, is_private: bool) {
        self.0.insert(path.to_owned(), Text { text: text.to_owned(), is_private });
    }

    /// Adds the line to each problem.
    pub(super) fn in_fault(&self, fault: LaneFault) -> LaneFault {
        let files = fault.files.into_iter().map(|(path, problems)| (path.clone(), self.seen(&path, problems)));
        LaneFault { files: files.collect() }
    }

    /// Adds the line to a remark.
    pub(super) fn in_remark(&self, remark: Remark) -> Remark {
        let problem = self.seen(&remark.path, remark.problem.clone().into()).sorted().pop();
        Remark { problem: problem.unwrap_or(remark.problem), ..remark }
    }

    fn seen(&self, path: &str, problems: Problems) -> Problems {
        match self.0.get(path) {
            Some(Text { text, is_private: false }) => problems.seen_in(text),
            Some(Text { text, is_private: true }) => problems.seen_in_private(text),
            None => problems,
        }
    }
}
