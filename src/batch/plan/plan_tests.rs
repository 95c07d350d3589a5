//! Example plans, valid and invalid.

use super::*;
use crate::task::parse_with;

fn order(batch: &str, tasks: &[(&str, &str)], repositories: &[&str]) -> PlanRequest {
    let file = parse(batch, "batch.yaml").unwrap();
    let text = |(source, text): &(&str, &str)| TaskText { source: (*source).to_owned(), text: (*text).into() };
    PlanRequest {
        tasks: tasks.iter().map(text).collect(),
        matrix: file.matrix,
        file: "batch.yaml".into(),
        text: batch.into(),
        repositories: repositories.iter().map(|name| (*name).to_owned()).collect(),
        params: ParamValues::new(),
    }
}

fn planned(order: &PlanRequest) -> Result<Vec<BatchJob>, String> {
    let read = |text: &TaskText, params: &ParamValues, _: usize| {
        parse_with(&text.text, &text.source, params, &crate::task::TaskDefaults::default())
    };
    plan(order, read).map_err(|faults| faults.to_string())
}

fn said(jobs: &[BatchJob]) -> Vec<String> {
    let one = |job: &BatchJob| {
        let params: Vec<String> = job.params.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let needs: Vec<&str> = job.needs.iter().map(|need| jobs[*need].name.as_str()).collect();
        format!("{} {} [{}]", job.name, params.join(" "), needs.join(" "))
    };
    jobs.iter().map(one).collect()
}

const BUMP: &str = "---\nparams: { version: { required: true } }\n---\n# Bump to {{ version }}\n";

#[test]
fn tasks_values_and_repositories_make_jobs_whose_needs_stay_in_one_repository() {
    let batch = "tasks: x\nmatrix: { version: [1.2, '2'], exclude: [{ repository: lib, version: 1.2 }] }\n";
    let docs = "---\nneeds: [bump]\nparams: { version: {} }\n---\nWrite docs\n";
    let jobs = planned(&order(batch, &[("tasks/docs.md", docs), ("tasks/bump.md", BUMP)], &["svc", "lib"])).unwrap();
    assert_eq!(
        said(&jobs),
        [
            "docs-1.2@svc version=1.2 [bump-1.2@svc bump-2@svc]",
            "docs-2@svc version=2 [bump-1.2@svc bump-2@svc]",
            "docs-2@lib version=2 [bump-2@lib]",
            "bump-1.2@svc version=1.2 []",
            "bump-2@svc version=2 []",
            "bump-2@lib version=2 []",
        ]
    );
    assert_eq!(jobs[3].title, "Bump to 1.2");
}

#[test]
fn everything_that_is_wrong_with_any_task_is_said_at_once() {
    let a = "---\nneeds: [bumb, a]\n---\nDo a\n";
    let b = "---\nneeds: [c]\nmax_retires: 1\n---\nDo b\n";
    let c = "---\nneeds:\n  - d\n---\nDo c\n";
    let d = "---\nneeds: [b]\n---\nDo d\n";
    let batch = "tasks: x\nmatrix: { include: [{ task: bmup, version: 1 }] }\n";
    let tasks = [("a.md", a), ("b.md", b), ("c.md", c), ("d.md", d), ("bump.md", BUMP)];
    let mut wrong = order(batch, &tasks, &[]);
    insta::assert_snapshot!(planned(&wrong).unwrap_err());
    wrong.matrix = Matrix::default();
    insta::assert_snapshot!(planned(&wrong).unwrap_err());
}

#[test]
fn nothing_to_run_is_an_error() {
    let batch = "tasks: x\nmatrix: { exclude: [{ task: a }] }\n";
    assert_eq!(
        planned(&order(batch, &[("a.md", "Do a")], &[])).unwrap_err(),
        "nothing to run: every combination is excluded"
    );
}

#[test]
fn two_jobs_in_one_checkout_at_once_are_found() {
    let tasks = [("a.md", "Do a"), ("b.md", "---\nisolation: worktree\n---\nDo b"), ("c.md", "Do c")];
    let jobs = planned(&order("tasks: x", &tasks, &[])).unwrap();
    let names =
        |found: Option<(&BatchJob, &BatchJob)>| found.map(|(one, other)| (one.name.clone(), other.name.clone()));
    assert_eq!(names(crowded(&jobs, 2)), Some(("a".into(), "c".into())));
    assert_eq!(names(crowded(&jobs, 1)), None);
    let apart = planned(&order("tasks: x", &tasks[..2], &["r", "s"])).unwrap();
    assert_eq!(names(crowded(&apart, 2)), None);
}
