//! Benchmark of a state of the workspace, compared with the nearest git commands.
//!
//! The pairs are: `take` from nothing and `git add -A` into an empty index, `take` without changes
//! and `git status`, `export` and `cp -a`. Prints medians of several interleaved rounds, and the
//! ratios inside a round. Run it with `cargo bench --bench trees [-- FILES ROUNDS]`. Git takes most
//! of the time, so the profile hardly matters.
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock and starts what it measures against")]
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement is printed, and may not fail")]

use fledge::workspace::trees::Trees;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

fn main() {
    let mut numbers = std::env::args().filter_map(|arg| arg.parse::<usize>().ok());
    let (files, rounds) = (numbers.next(), numbers.next().unwrap_or(5));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for files in files.map_or(vec![10_000, 100_000], |files| vec![files]) {
        runtime.block_on(measure(files, rounds));
    }
}

async fn measure(files: usize, rounds: usize) {
    let home = tempfile::tempdir().unwrap();
    let root = home.path().join("w");
    for number in 0..files {
        let folder = root.join(format!("d{}/e{}", number / 2000, number / 50));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("f{number}.rs")), format!("fn f{number}() {{}}\n").repeat(40)).unwrap();
    }
    let stop = CancellationToken::new();
    let mut rows: [(&str, Vec<[Duration; 2]>); 4] =
        [("cold", vec![]), ("warm", vec![]), ("one changed", vec![]), ("export", vec![])];
    for round in 0..rounds {
        let (own, room, copy) = (home.path().join("t"), home.path().join("room"), home.path().join("copy"));
        for gone in [&own, &room, &copy, &root.join(".git")] {
            let _there_is_none_at_first = fs::remove_dir_all(gone);
        }
        run(&root, &["git", "init", "-q", "."]);
        let theirs = time(|| run(&root, &["git", "add", "-A"]));
        run(&root, &["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"]);
        let trees = Trees::open(&own, &root, PATH, &stop).await.unwrap();
        let clock = Instant::now();
        let base = trees.take(&stop).await.unwrap().tree;
        rows[0].1.push([clock.elapsed(), theirs]);

        for (row, is_changed) in [(1, false), (2, true)] {
            run(&root, &["git", "status", "--porcelain"]);
            trees.take(&stop).await.unwrap();
            if is_changed {
                fs::write(root.join("d0/e0/f0.rs"), round.to_string()).unwrap();
            }
            let clock = Instant::now();
            trees.take(&stop).await.unwrap();
            let ours = clock.elapsed();
            rows[row].1.push([ours, time(|| run(&root, &["git", "status", "--porcelain"]))]);
        }
        let clock = Instant::now();
        trees.export(&base, &base, &room, &stop).await.unwrap();
        rows[3].1.push([clock.elapsed(), time(|| run(&room, &["cp", "-a", ".", "../copy"]))]);
    }
    println!("{files} files: ours, theirs, ratio");
    for (name, times) in rows {
        let of = |value: fn(&[Duration; 2]) -> f64| median(times.iter().map(value).collect());
        let ratio = of(|[ours, theirs]| ours.as_secs_f64() / theirs.as_secs_f64());
        let [ours, theirs] = [of(|it| it[0].as_secs_f64()), of(|it| it[1].as_secs_f64())];
        println!("{name:>12}  {:>8.1} ms  {:>8.1} ms  {ratio:.2}", ours * 1000.0, theirs * 1000.0);
    }
}

fn run(dir: &Path, args: &[&str]) {
    let mut command = Command::new(args[0]);
    let status = command.args(&args[1..]).current_dir(dir).env("HOME", "/nonexistent").stdout(Stdio::null()).status();
    assert!(status.unwrap().success(), "{args:?}");
}

fn time(work: impl FnOnce()) -> Duration {
    let clock = Instant::now();
    work();
    clock.elapsed()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
