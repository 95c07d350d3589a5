//! Expansion of jobs into racing candidates, or into repetitions with several models. It also
//! builds the seats of a course. Pure.

use super::BatchJob;
use super::naming::{free, slug};
use crate::batch::job_scheduler::JobSlot;
use std::collections::BTreeSet;

/// Replaces each job that has candidates with one job per candidate. A job that needs a replaced
/// job needs one of its candidates.
pub(super) fn raced(jobs: Vec<BatchJob>) -> Vec<BatchJob> {
    let mut taken: BTreeSet<String> = jobs.iter().map(|job| job.name.clone()).collect();
    let (mut all, mut places) = (Vec::new(), Vec::new());
    for job in jobs {
        let first = all.len();
        match &job.candidates {
            None => all.push(job),
            Some(candidates) => {
                for (place, models) in candidates.each().into_iter().enumerate() {
                    let name = free(format!("{}.{}", job.name, place + 1), &mut taken);
                    all.push(BatchJob { name, models, race: Some(first), ..job.clone() });
                }
            }
        }
        places.push(first..all.len());
    }
    for job in &mut all {
        job.needs = job.needs.iter().filter_map(|need| places.get(*need)).flat_map(Clone::clone).collect();
    }
    all
}

/// Repeats each job `times` times with each model, or with its task's models. All jobs run once
/// before any is repeated, so an early end affects all of them equally.
pub fn repeated(jobs: &[BatchJob], models: &[String], times: u32) -> Vec<BatchJob> {
    let mut taken = BTreeSet::new();
    let models: Vec<Vec<String>> =
        if models.is_empty() { vec![Vec::new()] } else { models.iter().map(|model| vec![model.clone()]).collect() };
    let mut all = Vec::new();
    for time in 1..=times {
        for job in jobs {
            for models in &models {
                let parts = [job.name.clone()].into_iter().chain(models.iter().map(|model| slug(model)));
                let name = parts.chain([time.to_string()]).collect::<Vec<_>>().join(".");
                all.push(BatchJob { name: free(name, &mut taken), models: models.clone(), ..job.clone() });
            }
        }
    }
    all
}

/// Returns the seats of jobs in a course. Of the candidates that a job needs, one is enough.
pub fn slots(jobs: &[BatchJob]) -> Vec<JobSlot> {
    let slot = |job: &BatchJob| {
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for need in &job.needs {
            let race = jobs.get(*need).and_then(|job| job.race).unwrap_or(*need);
            match groups.iter_mut().find(|(known, _)| *known == race) {
                Some((_, group)) => group.push(*need),
                None => groups.push((race, vec![*need])),
            }
        }
        let needs = groups.into_iter().map(|(_, group)| group).collect();
        let (name, title, usd_micros) = (job.name.clone(), job.title.clone(), job.usd_micros);
        JobSlot { name, title, needs, race: job.race, usd_micros }
    };
    jobs.iter().map(slot).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{Candidates, Isolation, ParamValues};

    fn job(name: &str, needs: &[usize], candidates: Option<Candidates>) -> BatchJob {
        BatchJob {
            name: name.into(),
            title: name.into(),
            task: 0,
            repository: 0,
            params: ParamValues::new(),
            needs: needs.to_vec(),
            usd_micros: None,
            isolation: Isolation::Worktree,
            candidates,
            of: name.into(),
            race: None,
            models: Vec::new(),
        }
    }

    #[test]
    fn who_needs_a_task_with_candidates_needs_one_of_them() {
        let models = Candidates::Models(vec!["claude".into(), "gpt".into()]);
        let jobs = raced(vec![
            job("z", &[1, 2], None),
            job("a", &[], Some(models)),
            job("b", &[], Some(Candidates::Count(3))),
        ]);
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["z", "a.1", "a.2", "b.1", "b.2", "b.3"]);
        assert_eq!(jobs[2].models, ["gpt"]);
        let slots = slots(&jobs);
        assert_eq!(slots[0].needs, [vec![1, 2], vec![3, 4, 5]]);
        let races: Vec<Option<usize>> = slots.iter().map(|slot| slot.race).collect();
        assert_eq!(races, [None, Some(1), Some(1), Some(3), Some(3), Some(3)]);
    }

    #[test]
    fn everything_is_done_once_before_anything_is_done_twice() {
        let jobs = repeated(&[job("a", &[], None), job("b", &[], None)], &["x/one".into(), "two".into()], 2);
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(
            names,
            ["a.x-one.1", "a.two.1", "b.x-one.1", "b.two.1", "a.x-one.2", "a.two.2", "b.x-one.2", "b.two.2"]
        );
        assert!(jobs.iter().all(|job| job.of == "a" || job.of == "b"));
    }
}
