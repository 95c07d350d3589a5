//! The whole program in the middle of a fault: stopped, killed and resumed, and with an unreliable
//! wall clock.

use crate::faults::play::{KEY, halved};
use crate::faults::rows::{Case, rows};
use crate::faults::server::{Act, Server};
use crate::faults::voice::{WIRES, Wire, say, status};
use crate::support::{Need, PATIENCE, SOON, becomes, draw, is_whole, record_time, wanted_rows};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The number of cells that an ordinary run tries.
const SAMPLE: usize = 6;

#[test]
fn a_run_that_is_stopped_in_the_middle_of_a_fault_is_over_within_a_second() {
    each("SIGTERM", &stopped);
}

#[test]
fn a_run_that_is_killed_during_a_fault_repeats_its_request_and_pays_once() {
    long_test!();
    each("SIGKILL", &killed);
}

#[test]
fn a_wall_clock_that_jumps_by_days_changes_no_pause() {
    let folder = crate::support::temp_dir();
    let Some(shim) = jumping_clock(folder.path()) else {
        return Need::CCompiler.lacks("no `cc`");
    };
    std::thread::scope(|scope| {
        for wire in WIRES {
            let shim = &shim;
            scope.spawn(move || {
                let busy = status(429, &[("retry-after", "1")], wire.complaint("rate_limit_error", "slow").to_string());
                let place = Place::new(wire, Server::open(&[busy, wire.whole(&say("Done."))]));
                let begun = Instant::now();
                let ended = place.run(&["run", "task.md", "--no-verify"], Some(shim)).wait_with_output().unwrap();
                let took = begun.elapsed();
                let said = String::from_utf8_lossy(&ended.stderr);
                assert_eq!((ended.status.code(), place.server.count()), (Some(0), 2), "{wire:?}: {said}");
                assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(20), "{wire:?}: {took:?}");
            });
        }
    });
}

/// Tries every cell, or a sample of them, two at a time.
fn each(what: &str, trial: &(dyn Fn(Wire, &Case) -> Result<(), String> + Sync)) {
    record_time();
    let rows = rows();
    let cells = rows.iter().flat_map(|row| WIRES.map(|wire| (row.id, wire))).collect::<Vec<_>>();
    let all = is_whole() || wanted_rows().is_some();
    let wanted: Vec<(&str, Wire)> = if wanted_rows().is_some() { cells } else { draw(what, SAMPLE, cells) };
    let (count, begun, next, wrong) =
        (wanted.len(), Instant::now(), Mutex::new(wanted.into_iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((id, wire)) = { next.lock().unwrap().next() } {
                    let row = rows.iter().find(|row| row.id == id).unwrap();
                    // A case without a listening server has no middle.
                    for case in (row.cases)(wire).into_iter().filter(|case| case.address.is_none()).take(if all {
                        usize::MAX
                    } else {
                        1
                    }) {
                        if let Err(why) = trial(wire, &case) {
                            wrong.lock().unwrap().push(format!("{id} {} {wire:?}: {why}", case.name));
                        }
                    }
                }
            });
        }
    });
    println!("{what} in {count} cells in {:?}", begun.elapsed());
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn stopped(wire: Wire, case: &Case) -> Result<(), String> {
    let took = stopped_once(wire, case)?;
    if took < SOON { Ok(()) } else { Err(format!("it took {took:?}")) }
}

/// Stops a run in the middle of a fault and returns the time until its end.
fn stopped_once(wire: Wire, case: &Case) -> Result<Duration, String> {
    let place = Place::in_the_middle(wire, case);
    let child = place.run(&["run", "task.md", "--no-verify"], None);
    place.wait_for_the_middle();
    let begun = Instant::now();
    signal(&child, Signal::TERM);
    let ended = child.wait_with_output().unwrap();
    let took = begun.elapsed();
    let report = place.report();
    if ended.status.code() != Some(143) || report["reason"] != "cancelled" {
        return Err(format!("{:?} after {took:?}: {}", ended.status, report["reason"]));
    }
    paid(&report, case, case.fault_at as u64)?;
    place.is_clean(&ended).map(|()| took)
}

fn killed(wire: Wire, case: &Case) -> Result<(), String> {
    let place = Place::in_the_middle(wire, case);
    let child = place.run(&["run", "task.md", "--no-verify"], None);
    place.wait_for_the_middle();
    signal(&child, Signal::KILL);
    let ended = child.wait_with_output().unwrap();
    place.is_clean(&ended)?;
    let before = place.server.count();
    let ended = place.run(&["runs", "resume", "last"], None).wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    if ended.status.code() != Some(0) {
        return Err(format!("resumed, it ends {:?}: {said}", ended.status));
    }
    let asked = place.server.requests();
    if asked.len() <= before || asked[before] != asked[case.fault_at] {
        return Err(format!(
            "{} requests, of which {before} before it was killed; the next is another one",
            asked.len()
        ));
    }
    paid(&place.report(), case, case.fault_at as u64 + 1)?;
    place.is_clean(&ended)
}

/// Checks that the report charges this number of answers, and the interrupted one unless it was
/// already known as a refusal.
fn paid(report: &Value, case: &Case, answers: u64) -> Result<(), String> {
    let usage = &report["usage"];
    let script = halved(&case.scripts[case.fault_at]);
    let head = |bytes: &[u8]| bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4);
    // fledge reads only a limited part of a refusal, and then knows it as one.
    let is_known =
        |act: &Act| matches!(act, Act::Send(bytes) if head(bytes).is_some_and(|end| bytes.len() - end >= 4096));
    let is_known = case.is_refused(case.fault_at) && script.first().is_some_and(is_known);
    // If the connection is cut just before that point, fledge does not yet know the refusal.
    let all = if is_known { answers..=answers + 1 } else { answers + 1..=answers + 1 };
    let (requests, input) = (usage["requests"].as_u64(), usage["total"]["input_tokens"].as_u64().unwrap_or(0));
    if !requests.is_some_and(|requests| all.contains(&requests) && input >= 99 * answers + requests) {
        return Err(format!("for {answers} answers and what broke off this was booked: {usage}"));
    }
    Ok(())
}

fn signal(child: &std::process::Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// A workspace with a task, and a model for it.
struct Place {
    folder: TempDir,
    server: Server,
}

impl Place {
    fn new(wire: Wire, server: Server) -> Self {
        let folder = crate::support::temp_dir();
        let at = |path: &str| folder.path().join(path);
        fs::create_dir_all(at("home/.config/fledge")).unwrap();
        fs::create_dir(at("workspace")).unwrap();
        fs::write(at("workspace/task.md"), "Say that you are done.\n").unwrap();
        let (provider, url) = (wire.kind(), server.address());
        let model =
            format!("provider: {}, model: scripted, base_url: 'http://{url}/v1', api_key_env: MY_KEY", provider.name());
        fs::write(at("home/.config/fledge/config.yaml"), format!("default_model: m\nmodels:\n  m: {{ {model} }}\n"))
            .unwrap();
        Self { folder, server }
    }

    /// Returns a workspace whose fault stalls in its middle. The server answers all later requests
    /// well.
    fn in_the_middle(wire: Wire, case: &Case) -> Self {
        let mut scripts = case.scripts[..=case.fault_at].to_vec();
        scripts[case.fault_at] = halved(&scripts[case.fault_at]);
        scripts.push(wire.whole(&say("Done.")));
        Self::new(wire, Server::open(&scripts))
    }

    fn wait_for_the_middle(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime
            .block_on(async { tokio::time::timeout(PATIENCE, self.server.middle()).await })
            .expect("it comes to its middle");
    }

    fn run(&self, args: &[&str], preload: Option<&Path>) -> std::process::Child {
        let at = |path: &str| self.folder.path().join(path);
        let mut command = Command::new(env!("CARGO_BIN_EXE_fledge"));
        command.args(args).current_dir(at("workspace")).env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        command.env("HOME", at("home")).env("FLEDGE_STATE_DIR", at("state")).env("MY_KEY", KEY);
        if let Some(shim) = preload {
            command.env("LD_PRELOAD", shim);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the report of the one run.
    fn report(&self) -> Value {
        let below = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let runs = below(&self.folder.path().join("state"))
            .flat_map(|project| below(&project.join("runs")).collect::<Vec<_>>());
        let reports: Vec<PathBuf> = runs.map(|run| run.join("report.json")).filter(|path| path.exists()).collect();
        let [report] = reports.as_slice() else { return Value::Null };
        serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap()
    }

    /// Returns the command line of a process with this folder in its environment.
    fn left_behind(&self) -> Option<String> {
        let mark = self.folder.path().to_str().unwrap().as_bytes();
        let mut processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let is_ours = |path: &PathBuf| {
            fs::read(path.join("environ")).is_ok_and(|environ| environ.windows(mark.len()).any(|window| window == mark))
        };
        let line = |path: PathBuf| fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " ");
        processes.find(is_ours).map(line)
    }

    /// Checks that no started process is left, and that neither output nor files contain the key.
    fn is_clean(&self, ended: &Output) -> Result<(), String> {
        let holds = |bytes: &[u8], text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        // A child of a killed program needs a moment to notice the kill.
        if !becomes(|| self.left_behind().is_none()) {
            return Err(format!("a process is left: {:?}", self.left_behind()));
        }
        let mut folders = vec![self.folder.path().join("state")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false if holds(&fs::read(entry.path()).unwrap_or_default(), KEY.as_bytes()) => {
                        return Err(format!("the key is in {}", entry.path().display()));
                    }
                    false => {}
                }
            }
        }
        match holds(&[&ended.stdout[..], &ended.stderr[..]].concat(), KEY.as_bytes()) {
            true => Err("the key was printed".into()),
            false => Ok(()),
        }
    }
}

/// Returns a library that makes each reading of the wall clock return a different day; `None` if it
/// cannot be built.
fn jumping_clock(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    let text = "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
        int clock_gettime(clockid_t id, struct timespec *at) {\n  static int looks;\n  int done = syscall(SYS_clock_gettime, id, at);\n\
        if (id == CLOCK_REALTIME) at->tv_sec += (looks++ % 3 - 1) * 86400;\n  return done;\n}\n";
    fs::write(&source, text).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    made.is_ok_and(|status| status.success()).then_some(library)
}
