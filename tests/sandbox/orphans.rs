//! Tests that no process of a run outlives it by more than two seconds. The run is signalled,
//! killed or out of time at a random moment, and its children resist.
//!
//! An ordinary test run tries a sample.

use crate::support::{Dice, Fledge, Model, SOON, amount, dice, fleeing, say, shell, unique, until};
use rustix::process::Signal;
use std::fs;
use std::time::{Duration, Instant};

/// The number of cases in an ordinary test run.
const SAMPLE: usize = 4;

/// The phase of the run in which it ends.
#[derive(Debug, Clone, Copy)]
enum Scene {
    Tool,
    Gate,
    Base,
}

/// The way in which the run ends.
#[derive(Debug, Clone, Copy)]
enum Blow {
    Asked(Signal),
    Killed,
    StepOutOfTime,
    TaskOutOfTime,
}

#[derive(Debug)]
struct Case {
    scene: Scene,
    blow: Blow,
    sandbox: &'static str,
    /// True if `after` counts from the first sight of its children, false if from its start.
    is_seen: bool,
    after: Duration,
}

const SCENES: [Scene; 3] = [Scene::Tool, Scene::Gate, Scene::Base];
const BLOWS: [Blow; 5] =
    [Blow::Asked(Signal::INT), Blow::Asked(Signal::TERM), Blow::Killed, Blow::StepOutOfTime, Blow::TaskOutOfTime];

impl Case {
    /// Returns the case of this number. The kinds alternate, so that a sample has some of each; the
    /// moments are random.
    fn new(number: usize, dice: &mut Dice) -> Self {
        Self {
            scene: SCENES[number % 3],
            blow: BLOWS[number % 5],
            sandbox: ["--sandbox=auto", "--sandbox=off"][number / 3 % 2],
            is_seen: number % 4 != 3,
            after: Duration::from_millis(dice.below(if number % 4 == 3 { 1500 } else { 150 })),
        }
    }

    fn play(&self) {
        let number = unique();
        let model = match self.scene {
            Scene::Tool => Model::new([tool(self.blow, &number), say("Done.").always()]),
            Scene::Gate | Scene::Base => Model::new([say("Done.").always()]),
        };
        let run = self.fledge(&model, &number).start();
        self.wait(&number);
        let begun = Instant::now();
        match self.blow {
            Blow::Asked(signal) => drop(run.signal(signal)),
            Blow::Killed => drop(run.signal(Signal::KILL)),
            Blow::StepOutOfTime | Blow::TaskOutOfTime => {}
        }
        let ended = run.end();
        let from = if matches!(self.blow, Blow::Killed) { begun } else { Instant::now() };
        while !marked(&number).is_empty() {
            assert!(from.elapsed() < SOON, "{self:?}: alive: {:#?}\n{}", marked(&number), ended.story());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn fledge(&self, model: &Model, number: &str) -> Fledge {
        let time = if matches!(self.blow, Blow::TaskOutOfTime) { "budget: { time: 10s }\n" } else { "" };
        let baseline = if matches!(self.scene, Scene::Base) { "always" } else { "never" };
        let timeout = if matches!(self.blow, Blow::StepOutOfTime) { "1s" } else { "10m" };
        let run = match self.scene {
            Scene::Tool => "true".to_owned(),
            Scene::Gate | Scene::Base => command(number),
        };
        let lane = format!("steps:\n  - name: stay\n    timeout: {timeout}\n    run: |\n      {run}\n");
        let task = format!("---\nmax_retries: 0\nbaseline: {baseline}\n{time}---\nDo it.");
        Fledge::new().lane("verify", &lane).task(&task).anthropic(model).arg(self.sandbox)
    }

    /// Waits until the moment of the end. If a time limit ends the run, or if `is_seen`, this first
    /// waits until its children run.
    fn wait(&self, number: &str) {
        let comes_by_itself = matches!(self.blow, Blow::StepOutOfTime | Blow::TaskOutOfTime);
        if self.is_seen || comes_by_itself {
            until(&format!("what {self:?} starts"), || !marked(number).is_empty());
        }
        if !comes_by_itself {
            std::thread::sleep(self.after); // the random moment
        }
    }
}

/// Returns a call of a tool that does not end.
fn tool(blow: Blow, number: &str) -> crate::support::Turn {
    match blow {
        Blow::StepOutOfTime => {
            crate::support::call("shell-exec", serde_json::json!({"command": command(number), "timeout": 1}))
        }
        Blow::Asked(_) | Blow::Killed | Blow::TaskOutOfTime => shell(&command(number)),
    }
}

/// Returns a command whose processes detach, ignore signals, hide and restart.
fn command(number: &str) -> String {
    format!(
        "export ORPHAN={number}; {} (exec <&- >&- 2>&-; setsid sleep {number} &); \
         (trap '' TERM INT HUP; while :; do setsid sleep {number} & sleep 0.05; done) & \
         (setsid sh -c 'trap \"\" TERM; while :; do (sleep {number} &) ; sleep 0.05; done' >/dev/null 2>&1 &) ; \
         trap '' TERM INT; while :; do sleep {number}; done",
        fleeing(number)
    )
}

/// Returns the command lines of all live processes with this number in their arguments or
/// environment.
fn marked(number: &str) -> Vec<String> {
    let read =
        |path: std::path::PathBuf| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).replace('\0', " ");
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let alive = entries.filter(|path| {
        let status = fs::read_to_string(path.join("stat")).unwrap_or_default();
        status.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    });
    let lines = alive.map(|path| (read(path.join("cmdline")), read(path.join("environ"))));
    lines
        .filter(|(line, variables)| line.contains(number) || variables.contains(number))
        .map(|(line, _)| line)
        .collect()
}

#[test]
fn nothing_outlives_a_run_that_is_ended_at_a_random_moment() {
    let (count, mut dice) = (amount(SAMPLE, 200), dice("orphans"));
    let cases: Vec<Case> = (0..count).map(|number| Case::new(number, &mut dice)).collect();
    std::thread::scope(|scope| {
        for half in [0, 1] {
            let cases = &cases;
            scope.spawn(move || cases.iter().skip(half).step_by(2).for_each(Case::play));
        }
    });
}
