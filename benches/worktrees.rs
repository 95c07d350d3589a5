//! Benchmark of the worktree of a run, compared with `git worktree add` and `remove`, and with `cp
//! -a` and `rm -r` of the checkout.
//!
//! Prints medians of several rounds, each in another order. It then makes many worktrees, first in
//! sequence and then at once, and prints what remains of them. Run it with `cargo bench --bench
//! worktrees [-- FILES ROUNDS MANY]`. Git takes most of the time, so the profile hardly matters.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock and starts what it measures against")]
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement is printed, and may not fail")]

use fledge::id::RunId;
use fledge::workspace::worktree::{Worktree, WorktreeRecord};
use futures_util::future::join_all;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse::<usize>().ok());
    let (files, rounds, many) = (numbers.next().unwrap_or(10_000), numbers.next().unwrap_or(5), numbers.next());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(one(files, rounds));
    runtime.block_on(all(many.unwrap_or(1000)));
}

/// A repository, and the folder of its worktrees.
struct Scene {
    home: tempfile::TempDir,
    root: PathBuf,
    all: PathBuf,
    env: Vec<(String, String)>,
    stop: CancellationToken,
}

impl Scene {
    fn new(files: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (root, all) = (home.path().join("w"), home.path().join("s/worktrees"));
        for number in 0..files {
            let folder = root.join(format!("d{}/e{}", number / 2000, number / 50));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("f{number}.rs")), format!("fn f{number}() {{}}\n").repeat(40)).unwrap();
        }
        fs::create_dir_all(&all).unwrap();
        run(&root, &["git", "init", "-q", "."]);
        // Git would pack this many loose objects in the background after the commit, which would
        // slow down the first measurement.
        for key in ["gc.auto", "maintenance.auto"] {
            run(&root, &["git", "config", key, if key == "gc.auto" { "0" } else { "false" }]);
        }
        run(&root, &["git", "add", "-A"]);
        run(&root, &["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"]);
        let env = vec![("PATH".to_owned(), PATH.to_owned()), ("HOME".to_owned(), "/nonexistent".to_owned())];
        Self { home, root, all, env, stop: CancellationToken::new() }
    }

    async fn make(&self, number: usize) -> Worktree {
        let run = RunId::new(format!("run-{number:010}"));
        let worktree = Worktree::choose(&self.all, &run, "measure", None, &self.root, &self.root);
        worktree.make(&run, &self.env, self.home.path(), &self.stop).await.unwrap();
        worktree
    }

    async fn remove(&self, worktree: &Worktree) {
        let record = WorktreeRecord::read(&worktree.folder).unwrap().unwrap();
        let left = record.remove(false, &self.env, self.home.path(), &self.stop).await.unwrap();
        assert_eq!(left.stays, None);
    }

    fn left(&self) -> String {
        let count = |folder: &Path| fs::read_dir(folder).map_or(0, Iterator::count);
        let branches = Command::new("git").args(["branch", "--list", "fledge/*"]).current_dir(&self.root).output();
        let branches = String::from_utf8(branches.unwrap().stdout).unwrap().lines().count();
        let (folders, known) = (count(&self.all), count(&self.root.join(".git/worktrees")));
        format!("{folders} folders or files, {known} known to git, {branches} branches")
    }
}

async fn one(files: usize, rounds: usize) {
    let scene = Scene::new(files);
    let mut rows: [(&str, Vec<[Duration; 3]>); 2] = [("make", vec![]), ("remove", vec![])];
    let (theirs, copy) = (scene.home.path().join("theirs"), scene.home.path().join("copy"));
    let (theirs, copy) = (theirs.to_str().unwrap(), copy.to_str().unwrap());
    for round in 0..rounds {
        let add = || time(|| run(&scene.root, &["git", "worktree", "add", "-q", "-b", "x", theirs]));
        let drop = || time(|| run(&scene.root, &["git", "worktree", "remove", theirs]));
        let is_second = round % 2 == 1;
        let (mut made, mut gone) = (Duration::ZERO, Duration::ZERO);
        if is_second {
            made = add();
        }
        let clock = Instant::now();
        let worktree = scene.make(round).await;
        let ours = clock.elapsed();
        if !is_second {
            made = add();
        }
        rows[0].1.push([ours, made, time(|| run(&scene.root, &["cp", "-a", ".", copy]))]);
        if is_second {
            gone = drop();
        }
        let clock = Instant::now();
        scene.remove(&worktree).await;
        let ours = clock.elapsed();
        if !is_second {
            gone = drop();
        }
        rows[1].1.push([ours, gone, time(|| run(&scene.root, &["rm", "-r", copy]))]);
        run(&scene.root, &["git", "branch", "-qD", "x"]);
    }
    println!("{files} files, {rounds} rounds: ours, git's, cp -a and rm -r");
    for (name, times) in &mut rows {
        let mut median = |column: usize| {
            times.sort_by_key(|row| row[column]);
            times[times.len() / 2][column].as_millis()
        };
        println!("{name:<7} {:>6} ms {:>6} ms {:>6} ms", median(0), median(1), median(2));
    }
}

async fn all(many: usize) {
    let scene = Scene::new(100);
    let clock = Instant::now();
    let mut each = Vec::new();
    for number in 0..many {
        let clock = Instant::now();
        let worktree = scene.make(number).await;
        scene.remove(&worktree).await;
        each.push(clock.elapsed());
    }
    println!("{many} one after the other: {:?}; left: {}", clock.elapsed(), scene.left());
    for hundred in each.chunks_mut(many.div_ceil(5).max(1)) {
        hundred.sort();
        println!("  median of the next {}: {} ms", hundred.len(), hundred[hundred.len() / 2].as_millis());
    }
    let clock = Instant::now();
    let worktrees = join_all((0..many / 4).map(|number| scene.make(number))).await;
    let made = clock.elapsed();
    join_all(worktrees.iter().map(|worktree| scene.remove(worktree))).await;
    println!("{} at once: made in {made:?}, gone in {:?}; left: {}", many / 4, clock.elapsed(), scene.left());
}

fn time(work: impl FnOnce()) -> Duration {
    let clock = Instant::now();
    work();
    clock.elapsed()
}

fn run(dir: &Path, command: &[&str]) {
    let mut program = Command::new(command[0]);
    let done = program.args(&command[1..]).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(done.unwrap().success(), "{command:?}");
}
