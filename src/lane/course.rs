//! A lane being run, as a machine: it is told what ended and says what to do next. Pure; whoever drives it starts the processes.

use super::{Joint, Lane, Step};
use crate::verdict::StepStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// What to do next. Steps are named by their number, see [`Lane::steps`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start this step, or start it again; its end is to be told.
    Start(usize),
    /// Tell when this pause is over: then the step may be started again, and until then it takes no place.
    Rest(usize, Duration),
    /// This one is not tried again after all: what its last try came to is its last word.
    GiveUp(usize),
    /// Stop this one; its end is to be told like any other.
    Stop(usize),
    /// This one will not be started: what that makes it, and why.
    Leave(usize, StepStatus, String),
    /// It is over. Always the last order, and given once.
    Done(LaneRuling),
}

/// Whether a step that has ended is tried again: at once by an [`Order::Start`], or after an [`Order::Rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// It is.
    Again,
    /// It is not: what it came to is its last word.
    Over,
}

/// What a lane said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneRuling {
    /// Every step that was to run passed, and one at least ran.
    Passed,
    /// A step said no, or time ran out.
    Failed,
    /// A step could not be run, and none said no.
    Errored,
    /// It was stopped from outside before it was over.
    Cancelled,
    /// No step ran. Nothing was checked, so this is no pass.
    NothingRan,
}

/// The machine.
#[derive(Debug, Clone)]
pub struct Course {
    steps: Vec<Plan>,
    joints: Vec<Knot>,
    /// Steps that may start, the longest first, then in the order of the file.
    ready: BTreeSet<(std::cmp::Reverse<Duration>, usize)>,
    jobs: usize,
    fail_fast: bool,
    halt: Option<Halt>,
    busy: usize,
    open: usize,
    done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    name: String,
    /// How many steps must still end before this one starts.
    missing: usize,
    /// The steps that wait for this one, and whether they need its success.
    followers: Vec<(usize, bool)>,
    /// The joints that it is a part of.
    joints: Vec<usize>,
    retries_left: u32,
    retry_delay: Duration,
    tries: u32,
    allow_failure: bool,
    expected: Duration,
    /// Why it is left out, whatever becomes of others.
    left_out: Option<String>,
    /// The step that it needs and that did not pass.
    falls_with: Option<String>,
    at: At,
}

impl Plan {
    /// What it is when it does not run, and why: what was said of itself counts before what became of others.
    fn is_left(&self) -> Option<(StepStatus, String)> {
        let own = self.left_out.clone().map(|reason| (StepStatus::Skipped, reason));
        let fallen = |name: &String| (StepStatus::NotRun, format!("it needs `{name}`, which did not pass"));
        own.or_else(|| self.falls_with.as_ref().map(fallen))
    }
}

/// A joint: how many of its parts must still end, and who waits for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Knot {
    missing: usize,
    steps: Vec<usize>,
    joints: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Waiting,
    Running,
    /// Its last try came to this, and the next one has not begun.
    BetweenTries(StepStatus),
    Stopping,
    Ended(StepStatus),
}

/// Why nothing new is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    Failure,
    Cancel,
    Timeout,
}

impl Course {
    /// The course of a lane, with at most `jobs` steps at a time (one at least). `left_out` has a reason for each step that is not
    /// to run, `expected` how long each is thought to take; both may be shorter than the lane.
    pub fn new(lane: &Lane, jobs: usize, left_out: &[Option<String>], expected: &[Duration]) -> Self {
        let plan = |(number, step): (usize, &Step)| Plan {
            name: step.name.clone(),
            missing: step.after.len() + step.joints.len(),
            followers: Vec::new(),
            joints: Vec::new(),
            retries_left: step.retries,
            retry_delay: step.retry_delay,
            tries: 0,
            allow_failure: step.allow_failure,
            expected: expected.get(number).copied().unwrap_or_default(),
            left_out: left_out.get(number).cloned().flatten(),
            falls_with: None,
            at: At::Waiting,
        };
        let mut steps: Vec<Plan> = lane.steps.iter().enumerate().map(plan).collect();
        for (number, step) in lane.steps.iter().enumerate() {
            for earlier in &step.after {
                steps[*earlier].followers.push((number, step.needs.binary_search(earlier).is_ok())); // both are sorted
            }
        }
        let joints = joints(lane, &mut steps);
        let open = steps.len();
        let (ready, fail_fast) = (BTreeSet::new(), lane.fail_fast);
        Self { steps, joints, ready, jobs: jobs.max(1), fail_fast, halt: None, busy: 0, open, done: false }
    }

    /// The first orders.
    pub fn start(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        let first: Vec<usize> = (0..self.steps.len()).filter(|number| self.steps[*number].missing == 0).collect();
        for number in first {
            self.may_start(number, &mut orders);
        }
        self.go_on(orders)
    }

    /// Takes in that a step has ended, with what it came to by itself. Gives that status as the lane sees it, whether the step is
    /// over, and the next orders. Steps that were not running are not listened to.
    pub fn ended(&mut self, step: usize, status: StepStatus) -> (StepStatus, Next, Vec<Order>) {
        let Some(plan) = self.steps.get_mut(step).filter(|plan| matches!(plan.at, At::Running | At::Stopping)) else {
            return (status, Next::Over, Vec::new());
        };
        plan.tries += 1;
        self.busy -= 1;
        let says_no = matches!(status, StepStatus::Failed | StepStatus::TimedOut);
        if self.halt.is_none() && plan.retries_left > 0 && (says_no || status == StepStatus::Errored) {
            plan.retries_left -= 1;
            let pause = plan.retry_delay;
            let order = if pause.is_zero() {
                self.busy += 1;
                Order::Start(step)
            } else {
                plan.at = At::BetweenTries(status);
                Order::Rest(step, pause)
            };
            return (status, Next::Again, self.go_on(vec![order]));
        }
        let status = match status {
            StepStatus::Passed if plan.tries > 1 => StepStatus::Flaky,
            StepStatus::Failed | StepStatus::TimedOut if plan.allow_failure && self.halt.is_none() => {
                StepStatus::AllowedFailure
            }
            status => status,
        };
        if self.fail_fast && status.is_failure() {
            self.halt.get_or_insert(Halt::Failure);
        }
        let mut orders = Vec::new();
        self.settle(step, status, &mut orders);
        (status, Next::Over, self.go_on(orders))
    }

    /// Takes in that the pause before another try of a step is over.
    pub fn rested(&mut self, step: usize) -> Vec<Order> {
        let Some(plan) = self.steps.get(step).filter(|plan| matches!(plan.at, At::BetweenTries(_))) else {
            return Vec::new();
        };
        self.ready.insert((std::cmp::Reverse(plan.expected), step));
        self.go_on(Vec::new())
    }

    /// Takes in that somebody wants it to stop.
    pub fn cancel(&mut self) -> Vec<Order> {
        self.halt = Some(Halt::Cancel);
        self.go_on(Vec::new())
    }

    /// Takes in that its time is over.
    pub fn expire(&mut self) -> Vec<Order> {
        self.halt.get_or_insert(Halt::Timeout);
        self.go_on(Vec::new())
    }

    /// What a step is that was ended by an order to stop.
    pub fn status_of_stopped(&self) -> StepStatus {
        match self.halt {
            Some(Halt::Timeout) => StepStatus::TimedOut,
            Some(Halt::Failure | Halt::Cancel) | None => StepStatus::Cancelled,
        }
    }

    fn go_on(&mut self, mut orders: Vec<Order>) -> Vec<Order> {
        match self.halt {
            Some(halt) => self.wind_down(halt, &mut orders),
            None => self.start_ready(&mut orders),
        }
        if self.open == 0 && !self.done {
            self.done = true;
            orders.push(Order::Done(self.ruling()));
        }
        orders
    }

    /// Everything that it waited for has ended: it may start, unless it is left out.
    fn may_start(&mut self, number: usize, orders: &mut Vec<Order>) {
        let plan = &self.steps[number];
        match plan.left_out.clone() {
            Some(reason) => {
                orders.push(Order::Leave(number, StepStatus::Skipped, reason));
                self.settle(number, StepStatus::Skipped, orders);
            }
            None => drop(self.ready.insert((std::cmp::Reverse(plan.expected), number))),
        }
    }

    /// A step has its last status: those that waited for it come nearer, and those that need its success fall with it.
    fn settle(&mut self, number: usize, status: StepStatus, orders: &mut Vec<Order>) {
        let mut settled = vec![(number, status, status.is_failure())];
        while let Some((number, status, falls)) = settled.pop() {
            self.steps[number].at = At::Ended(status);
            self.open -= 1;
            if self.halt.is_some() {
                continue; // nothing more is started, and what waits is wound down
            }
            let name = self.steps[number].name.clone();
            let direct = std::mem::take(&mut self.steps[number].followers); // it ends once
            let through_joints = self.let_go(number).into_iter().map(|follower| (follower, false));
            for (follower, needs) in direct.into_iter().chain(through_joints) {
                let plan = &mut self.steps[follower];
                plan.missing -= 1;
                if falls && needs {
                    plan.falls_with.get_or_insert_with(|| name.clone());
                }
                if plan.missing > 0 {
                    continue;
                }
                match plan.is_left() {
                    Some((status, reason)) => {
                        let falls = plan.falls_with.is_some();
                        orders.push(Order::Leave(follower, status, reason));
                        settled.push((follower, status, falls));
                    }
                    None => drop(self.ready.insert((std::cmp::Reverse(plan.expected), follower))),
                }
            }
        }
    }

    /// The steps that waited for joints of which this step was the last.
    fn let_go(&mut self, step: usize) -> Vec<usize> {
        let (mut steps, mut open) = (Vec::new(), std::mem::take(&mut self.steps[step].joints));
        while let Some(joint) = open.pop() {
            let knot = &mut self.joints[joint];
            knot.missing -= 1;
            if knot.missing == 0 {
                steps.append(&mut knot.steps);
                open.append(&mut knot.joints);
            }
        }
        steps
    }

    fn wind_down(&mut self, halt: Halt, orders: &mut Vec<Order>) {
        let why = match halt {
            Halt::Failure => "another step failed before",
            Halt::Cancel => "the lane was stopped",
            Halt::Timeout => "the lane ran out of its time",
        };
        self.ready.clear();
        for (number, plan) in self.steps.iter_mut().enumerate() {
            match plan.at {
                At::Waiting => {
                    let (status, why) = plan.is_left().unwrap_or_else(|| (StepStatus::NotRun, why.into()));
                    plan.at = At::Ended(status);
                    self.open -= 1;
                    orders.push(Order::Leave(number, status, why));
                }
                At::BetweenTries(status) => {
                    plan.at = At::Ended(status);
                    self.open -= 1;
                    orders.push(Order::GiveUp(number));
                }
                At::Running => {
                    plan.at = At::Stopping;
                    orders.push(Order::Stop(number));
                }
                At::Stopping | At::Ended(_) => {}
            }
        }
    }

    fn start_ready(&mut self, orders: &mut Vec<Order>) {
        while self.busy < self.jobs
            && let Some((_, number)) = self.ready.pop_first()
        {
            self.busy += 1;
            self.steps[number].at = At::Running;
            orders.push(Order::Start(number));
        }
    }

    fn ruling(&self) -> LaneRuling {
        let any = |wanted: fn(StepStatus) -> bool| {
            self.steps.iter().any(|plan| matches!(plan.at, At::Ended(status) if wanted(status)))
        };
        if self.halt == Some(Halt::Cancel) {
            LaneRuling::Cancelled
        } else if self.halt == Some(Halt::Timeout) || any(|s| matches!(s, StepStatus::Failed | StepStatus::TimedOut)) {
            LaneRuling::Failed
        } else if any(|status| status == StepStatus::Errored) {
            LaneRuling::Errored
        } else if any(|status| matches!(status, StepStatus::Passed | StepStatus::Flaky)) {
            LaneRuling::Passed
        } else if any(|status| status == StepStatus::Cancelled) {
            LaneRuling::Cancelled
        } else {
            LaneRuling::NothingRan
        }
    }
}

/// The joints of a lane, each known to its parts.
fn joints(lane: &Lane, steps: &mut [Plan]) -> Vec<Knot> {
    let missing = |joint: &Joint| joint.steps.len() + joint.joints.len();
    let mut joints: Vec<Knot> =
        lane.joints.iter().map(|joint| Knot { missing: missing(joint), ..Knot::default() }).collect();
    for (number, joint) in lane.joints.iter().enumerate() {
        joint.steps.iter().for_each(|step| steps[*step].joints.push(number));
        joint.joints.iter().for_each(|part| joints[*part].joints.push(number));
    }
    for (number, step) in lane.steps.iter().enumerate() {
        step.joints.iter().for_each(|joint| joints[*joint].steps.push(number));
    }
    joints
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
