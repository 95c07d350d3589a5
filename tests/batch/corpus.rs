//! The projects of examples/corpus, as their generator writes them. Each gate fails at first, the
//! run with the recorded answers ends as the table says, and verified work passes in a fresh clone.
//! An ordinary run draws two projects of one language.

use crate::support::{Need, amount, draw, git, go_cache, is_whole, record_time};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Writes the projects that match these globs.
fn written(globs: &[&str], seed: &str) -> (TempDir, Vec<Value>) {
    let home = crate::support::temp_dir();
    let make = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/corpus/make.py");
    let made = Command::new("python3")
        .arg(make)
        .arg(home.path().join("corpus"))
        .args(globs.iter().flat_map(|glob| ["--only", glob]))
        .args(["--seed", seed])
        .env("GIT_DIR", "/nowhere") // the generator must ignore the environment's repository
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let table = std::fs::read_to_string(home.path().join("corpus/corpus.json")).unwrap();
    (home, serde_json::from_str(&table).unwrap())
}

fn fledge(home: &Path, folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fledge"))
        .args(args)
        .current_dir(folder)
        .env("FLEDGE_STATE_DIR", home.join("state"))
        .env("GOCACHE", go_cache())
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap()
}

/// Returns the output of a program, for the diagnosis of a failure.
fn said(output: &Output) -> String {
    format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Judges one project of the table.
fn judge(home: &Path, project: &Value) {
    let name = project["name"].as_str().unwrap();
    let (corpus, reports) = (home.join("corpus"), home.join(name));
    let (folder, clone) = (corpus.join("projects").join(name), home.join(format!("{name}-clone")));
    git(home, &["clone", "--quiet", folder.to_str().unwrap(), clone.to_str().unwrap()]);
    let red = fledge(home, &clone, &["lanes", "run", "verify", "--ni"]);
    assert_eq!(red.status.code(), Some(1), "{name} is red:\n{}", said(&red));
    assert_eq!(git(&clone, &["status", "--porcelain"]), "", "{name}: its lane leaves nothing that git sees");

    std::fs::create_dir(&reports).unwrap();
    let (report, patch) = (reports.join("report.json"), reports.join("work.patch"));
    let task = corpus.join("tasks").join(format!("{name}.md"));
    let words = [
        "run",
        task.to_str().unwrap(),
        "--ni",
        "--report",
        report.to_str().unwrap(),
        "--patch",
        patch.to_str().unwrap(),
    ];
    let run = fledge(home, &folder, &words);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let ended = serde_json::json!({
        "exit_code": run.status.code(),
        "reason": report["reason"],
        "attempts": report["attempts"].as_array().map(Vec::len),
    });
    assert_eq!(ended, project["ends"], "{name}:\n{}", said(&run));
    assert_eq!(patch.exists(), run.status.success(), "{name}: a patch of verified work, and of nothing else");
    if run.status.success() {
        git(&clone, &["am", "--quiet", patch.to_str().unwrap()]);
        let green = fledge(home, &clone, &["lanes", "run", "verify", "--ni"]);
        assert!(green.status.success(), "{name} is green in a fresh clone:\n{}", said(&green));
    }
}

/// The languages with projects. An ordinary run draws one of them, and two of its projects.
const LANGUAGES: [&str; 7] = ["c", "go", "node", "perl", "python", "rust", "shell"];

/// Judges the projects of one language.
fn of_language(language: &str) {
    long_table!();
    let is_drawn = draw("languages of the corpus", 1, LANGUAGES.to_vec()).contains(&language);
    if !is_drawn || !Need::has_program("python3") {
        return;
    }
    record_time();
    let (home, table) = written(&[&format!("{language}-*")], "1");
    let tool = table[0]["tool"].as_str().unwrap();
    if Need::has_program(tool) {
        let projects = if is_whole() { table } else { draw(language, 2, table) };
        projects.iter().for_each(|project| judge(home.path(), project));
    }
}

#[test]
fn c_projects_end_as_their_table_says() {
    of_language("c");
}

#[test]
fn go_projects_end_as_their_table_says() {
    of_language("go");
}

#[test]
fn node_projects_end_as_their_table_says() {
    of_language("node");
}

#[test]
fn perl_projects_end_as_their_table_says() {
    of_language("perl");
}

#[test]
fn python_projects_end_as_their_table_says() {
    of_language("python");
}

#[test]
fn rust_projects_end_as_their_table_says() {
    of_language("rust");
}

#[test]
fn shell_projects_end_as_their_table_says() {
    of_language("shell");
}

#[test]
fn the_batch_ends_each_task_as_listed_and_leaves_a_branch_of_verified_work() {
    if !Need::has_program("python3") {
        return;
    }
    // Both have projects for each of the exit codes 0, 1 and 6.
    let globs = amount(["shell-*", "python-rows"], ["shell-*", "python-*"]);
    let (home, table) = written(&globs, "1");
    let corpus = home.path().join("corpus");
    let report = home.path().join("report.json");
    let words = ["run", "batch.yaml", "--jobs", "2", "--ni", "--report", report.to_str().unwrap()];
    let run = fledge(home.path(), &corpus, &words);
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report).unwrap()).unwrap();
    let jobs = report["jobs"].as_array().unwrap();
    assert_eq!((run.status.code(), jobs.len()), (Some(6), table.len()), "{}", said(&run));
    for (project, job) in table.iter().zip(jobs) {
        let name = project["name"].as_str().unwrap();
        let folder = corpus.join("projects").join(name);
        assert_eq!(job["repository"], folder.canonicalize().unwrap().to_str().unwrap());
        assert_eq!(job["exit_code"], project["ends"]["exit_code"], "{name}:\n{}", said(&run));
        let branches = git(&folder, &["for-each-ref", "--no-merged", "HEAD", "refs/heads/fledge/"]);
        assert_eq!(branches.lines().count(), usize::from(job["exit_code"] == 0), "{name}: {branches}");
        assert_eq!(git(&folder, &["status", "--porcelain"]), "", "{name}: the checkout is left alone");
    }
}

#[test]
fn a_seed_names_the_projects_down_to_their_commits_and_another_asks_for_other_cases() {
    if !Need::has_program("python3") {
        return;
    }
    let heads = |seed: &str, globs: &[&str]| {
        let (home, table) = written(globs, seed);
        let head = |project: &Value| {
            let name = project["name"].as_str().unwrap();
            let home = home.path().join("corpus");
            let task = std::fs::read_to_string(home.join("tasks").join(format!("{name}.md"))).unwrap();
            (name.to_owned(), git(&home.join("projects").join(name), &["rev-parse", "HEAD"]), task)
        };
        let languages: BTreeSet<String> = table.iter().map(|project| project["language"].to_string()).collect();
        (table.iter().map(head).collect::<Vec<_>>(), languages.len())
    };
    let some = amount(&["shell-*", "c-*"][..], &["*"][..]);
    let (first, again, other) = (heads("7", &["*"]), heads("7", some), heads("8", some));
    let is_wanted = |name: &str| is_whole() || name.starts_with("shell-") || name.starts_with("c-");
    let wanted: Vec<_> = first.0.iter().filter(|(name, ..)| is_wanted(name)).cloned().collect();
    assert_eq!(wanted, again.0);
    assert!(first.0.len() >= 20 && first.1 >= 6, "{} projects in {} languages", first.0.len(), first.1);
    assert_eq!(again.0.len(), other.0.len());
    assert!(again.0.iter().zip(&other.0).all(|(one, two)| one.0 == two.0 && one.1 != two.1 && one.2 == two.2));
}
