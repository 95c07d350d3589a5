//! Candidates: several runs of one task, of which the first one counts that is verified.

use crate::yaml::{Node, Problem, Problems, Table, Value};
use serde::{Deserialize, Serialize};

/// How many there may be.
pub(crate) const CANDIDATES: std::ops::RangeInclusive<i64> = 2..=16;

/// Which runs of a task race.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Candidates {
    /// So many, each with the task's models.
    Count(u32),
    /// One with each of these models.
    Models(Vec<String>),
}

impl Candidates {
    /// The models of each; none for those that have the task's.
    pub fn each(&self) -> Vec<Vec<String>> {
        match self {
            Self::Count(count) => (0..*count).map(|_| Vec::new()).collect(),
            Self::Models(models) => models.iter().map(|model| vec![model.clone()]).collect(),
        }
    }
}

/// Reads `candidates`; everything wrong with it is told.
pub(super) fn read(table: &mut Table<'_>, problems: &mut Problems) -> Option<Candidates> {
    let node = table.take("candidates")?;
    let wrong = |message: String| {
        Problem::at(node.place, message).hint("write `candidates: 3`, or `candidates: [claude, gpt]`")
    };
    match node {
        Node { value: Value::Int(_), .. } => {
            let count = table.int("candidates", CANDIDATES, problems)?;
            u32::try_from(count).ok().map(Candidates::Count)
        }
        Node { value: Value::List(items), .. } => {
            let most = usize::try_from(*CANDIDATES.end()).unwrap_or(usize::MAX);
            if items.is_empty() || items.len() > most {
                problems.push(wrong(format!("`candidates` names {} models, and it is 1 to {most}", items.len())));
                return None;
            }
            if table.place_of("model").is_some() {
                problems.push(
                    Problem::at(node.place, "`candidates` names the models, and so does `model`")
                        .hint("remove one of the two"),
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
