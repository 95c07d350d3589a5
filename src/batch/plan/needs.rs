//! Dependencies between tasks: resolves names to indices and rejects cycles.

use super::{PlanErrors, TaskText};
use crate::task;
use crate::yaml::{FilePlace, Problem, listed};

/// Returns the indices of the tasks that each task needs. Adds problems to `faults`.
pub(super) fn resolved(tasks: &[TaskText], names: &[String], faults: &mut PlanErrors) -> Vec<Vec<usize>> {
    let mut all: Vec<Vec<(usize, FilePlace)>> = Vec::new();
    for (place, TaskText { source, text }) in tasks.iter().enumerate() {
        let mut own = Vec::new();
        for (name, at) in task::needs(text) {
            match names.iter().position(|known| *known == name) {
                Some(need) if need == place => {
                    faults.say(source, text, Problem::at(at, format!("`{name}` needs itself")).hint("remove it"));
                }
                Some(need) => own.push((need, at)),
                None => {
                    let unknown = Problem::at(at, format!("`{name}` is not a task of this batch"));
                    let known = || names.iter().map(String::as_str).filter(|known| *known != names[place]);
                    let hint = match known().next() {
                        None => "the batch has no other task: add the needed file or its folder".to_owned(),
                        Some(_) => format!("there are: {}", listed(known())),
                    };
                    faults.say(source, text, unknown.hint(hint).near(&name, known()));
                }
            }
        }
        all.push(own);
    }
    let mut colours = vec![VisitState::White; tasks.len()];
    for start in 0..tasks.len() {
        let mut path = Vec::new();
        visit(start, &all, &mut colours, &mut path, &mut |circle, at| {
            let last = circle.last().copied().unwrap_or_default();
            let message: Vec<&str> = circle.iter().chain(circle.first()).map(|task| names[*task].as_str()).collect();
            let problem = Problem::at(at, format!("circular needs: {}", message.join(" needs ")));
            faults.say(&tasks[last].source, &tasks[last].text, problem.hint("remove one of them"));
        });
    }
    all.into_iter().map(|needs| needs.into_iter().map(|(need, _)| need).collect()).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    White,
    Grey,
    Black,
}

/// Visits depth first with an explicit stack, since a chain may be as long as the number of tasks.
fn visit(
    start: usize,
    needs: &[Vec<(usize, FilePlace)>],
    colours: &mut [VisitState],
    path: &mut Vec<(usize, usize)>,
    circle: &mut impl FnMut(&[usize], FilePlace),
) {
    if colours[start] != VisitState::White {
        return;
    }
    colours[start] = VisitState::Grey;
    path.push((start, 0));
    while let Some((task, next)) = path.last_mut() {
        let task = *task;
        let Some((need, at)) = needs[task].get(*next).copied() else {
            colours[task] = VisitState::Black;
            path.pop();
            continue;
        };
        *next += 1;
        match colours[need] {
            VisitState::Black => {}
            VisitState::White => {
                colours[need] = VisitState::Grey;
                path.push((need, 0));
            }
            VisitState::Grey => {
                let from = path.iter().position(|(on, _)| *on == need).unwrap_or(0);
                let on: Vec<usize> = path[from..].iter().map(|(task, _)| *task).collect();
                circle(&on, at);
            }
        }
    }
}
