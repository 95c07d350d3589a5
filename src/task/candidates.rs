//! Candidates: several runs of one task. The first verified run wins.

use crate::yaml::{Problem, Problems, TableReader, YamlNode, YamlValue};
use serde::{Deserialize, Serialize};

/// The allowed number of candidates.
pub(crate) const CANDIDATES: std::ops::RangeInclusive<i64> = 2..=16;

/// The candidate runs of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Candidates {
    /// This number of runs, each with the task's models.
    Count(u32),
    /// One run with each of these models.
    Models(Vec<String>),
}

impl Candidates {
    /// Returns the models of each run. An empty list means the task's models.
    pub fn each(&self) -> Vec<Vec<String>> {
        match self {
            Self::Count(count) => (0..*count).map(|_| Vec::new()).collect(),
            Self::Models(models) => models.iter().map(|model| vec![model.clone()]).collect(),
        }
    }
}

/// Reads `candidates` and reports all problems.
pub(super) fn read(table: &mut TableReader<'_>, problems: &mut Problems) -> Option<Candidates> {
    let node = table.take("candidates")?;
    let wrong = |message: String| {
        Problem::at(node.place, message).hint("write `candidates: 3`, or `candidates: [claude, gpt]`")
    };
    match node {
        YamlNode { value: YamlValue::Int(_), .. } => {
            let count = table.int("candidates", CANDIDATES, problems)?;
            u32::try_from(count).ok().map(Candidates::Count)
        }
        YamlNode { value: YamlValue::List(items), .. } => {
            let most = usize::try_from(*CANDIDATES.end()).unwrap_or(usize::MAX);
            if items.is_empty() || items.len() > most {
                problems.push(wrong(format!("`candidates` names {} models: expected 1 to {most}", items.len())));
                return None;
            }
            if table.place_of("model").is_some() {
                problems.push(
                    Problem::at(node.place, "both `candidates` and `model` name models").hint("remove one of the two"),
                );
            }
            table.texts("candidates", problems).map(Candidates::Models)
        }
        _ => {
            problems.push(wrong(format!(
                "expected `candidates` to be a number or a list of models, found {}",
                node.describe()
            )));
            None
        }
    }
}
