//! The state machine of a running lane. It receives the ends of steps and returns the next orders.
//! Pure; its caller starts the processes.

use super::{Joint, Lane, Step};
use crate::verdict::StepStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::Duration;

/// The next actions. Numbers of steps are those of [`Lane::steps`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneOrder {
    /// Start this step, or start it again. The caller must report its end.
    Start(usize),
    /// Report when this pause is over; then the step may start again. Until then it does not count
    /// as a running step.
    Rest(usize, Duration),
    /// Do not try this step again, although a try was planned. The result of its last try is final.
    GiveUp(usize),
    /// Stop this step. The caller must report its end as usual.
    Stop(usize),
    /// Do not start this step. Contains its status and the reason.
    Leave(usize, StepStatus, String),
    /// The lane is over. Always the last order, given once.
    Done(LaneRuling),
}

/// The decision whether an ended step is tried again: immediately by an [`LaneOrder::Start`], or
/// after an [`LaneOrder::Rest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The step is tried again.
    Again,
    /// The step is over, and its result is final.
    Over,
}

/// The result of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaneRuling {
    /// At least one step ran, and every step that was to run passed.
    Passed,
    /// A step failed, or the time ran out.
    Failed,
    /// A step could not run, and no step failed.
    Errored,
    /// The lane was stopped from outside before its end.
    Cancelled,
    /// No step ran. Nothing was checked, so this is not a pass.
    NothingRan,
}

/// The state machine of a lane.
#[derive(Debug, Clone)]
pub struct LaneMachine {
    steps: Vec<LaneGraph>,
    joints: Vec<JoinState>,
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
struct LaneGraph {
    name: String,
    /// The number of steps and joints that must end before this step starts.
    missing: usize,
    /// The steps that wait for this step, with true if they need its success.
    followers: Vec<(usize, bool)>,
    /// The joints that contain this step.
    joints: Vec<usize>,
    retries_left: u32,
    retry_delay: Duration,
    tries: u32,
    allow_failure: bool,
    expected: Duration,
    /// The reason for leaving the step out, independent of other steps.
    left_out: Option<String>,
    /// The step whose success this step needs, but which did not pass.
    falls_with: Option<String>,
    at: At,
}

impl LaneGraph {
    /// Returns the status and the reason of a step that does not run. The step's own reason
    /// precedes the result of other steps.
    fn is_left(&self) -> Option<(StepStatus, String)> {
        let own = self.left_out.clone().map(|reason| (StepStatus::Skipped, reason));
        let fallen = |name: &String| (StepStatus::NotRun, format!("it needs `{name}`, which did not pass"));
        own.or_else(|| self.falls_with.as_ref().map(fallen))
    }
}

/// The state of a joint: the number of its parts that must still end, and the steps and joints that
/// wait for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct JoinState {
    missing: usize,
    steps: Vec<usize>,
    joints: Vec<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Waiting,
    Running,
    /// The last try had this status, and the next try has not begun.
    BetweenTries(StepStatus),
    Stopping,
    Ended(StepStatus),
}

/// The reason for starting no further steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Halt {
    Failure,
    Cancel,
    Timeout,
}

impl LaneMachine {
    /// Creates the state machine of a lane, with at most `jobs` parallel steps (at least one).
    /// `left_out` has a reason for each step that must not run, and `expected` the expected
    /// duration of each step. Both may be shorter than the lane.
    pub fn new(lane: &Lane, jobs: usize, left_out: &[Option<String>], expected: &[Duration]) -> Self {
        let plan = |(number, step): (usize, &Step)| LaneGraph {
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
        let mut steps: Vec<LaneGraph> = lane.steps.iter().enumerate().map(plan).collect();
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

    /// Returns the first orders.
    pub fn start(&mut self) -> Vec<LaneOrder> {
        let mut orders = Vec::new();
        let first: Vec<usize> = (0..self.steps.len()).filter(|number| self.steps[*number].missing == 0).collect();
        for number in first {
            self.may_start(number, &mut orders);
        }
        self.start_ready_steps(orders)
    }

    /// Records the end of a step with its status. Returns the status after the lane's settings, the
    /// decision about another try, and the next orders. A step that is not running is ignored.
    pub fn ended(&mut self, step: usize, status: StepStatus) -> (StepStatus, RetryDecision, Vec<LaneOrder>) {
        let Some(plan) = self.steps.get_mut(step).filter(|plan| matches!(plan.at, At::Running | At::Stopping)) else {
            return (status, RetryDecision::Over, Vec::new());
        };
        plan.tries += 1;
        self.busy -= 1;
        let says_no = matches!(status, StepStatus::Failed | StepStatus::TimedOut);
        if self.halt.is_none() && plan.retries_left > 0 && (says_no || status == StepStatus::Errored) {
            plan.retries_left -= 1;
            let pause = plan.retry_delay;
            let order = if pause.is_zero() {
                self.busy += 1;
                LaneOrder::Start(step)
            } else {
                plan.at = At::BetweenTries(status);
                LaneOrder::Rest(step, pause)
            };
            return (status, RetryDecision::Again, self.start_ready_steps(vec![order]));
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
        (status, RetryDecision::Over, self.start_ready_steps(orders))
    }

    /// Records the end of the pause before another try of a step.
    pub fn rested(&mut self, step: usize) -> Vec<LaneOrder> {
        let Some(plan) = self.steps.get(step).filter(|plan| matches!(plan.at, At::BetweenTries(_))) else {
            return Vec::new();
        };
        self.ready.insert((std::cmp::Reverse(plan.expected), step));
        self.start_ready_steps(Vec::new())
    }

    /// Cancels the lane.
    pub fn cancel(&mut self) -> Vec<LaneOrder> {
        self.halt = Some(Halt::Cancel);
        self.start_ready_steps(Vec::new())
    }

    /// Records that the time of the lane is over.
    pub fn expire(&mut self) -> Vec<LaneOrder> {
        self.halt.get_or_insert(Halt::Timeout);
        self.start_ready_steps(Vec::new())
    }

    /// Returns the status of a step that an order to stop has ended.
    pub fn status_of_stopped(&self) -> StepStatus {
        match self.halt {
            Some(Halt::Timeout) => StepStatus::TimedOut,
            Some(Halt::Failure | Halt::Cancel) | None => StepStatus::Cancelled,
        }
    }

    fn start_ready_steps(&mut self, mut orders: Vec<LaneOrder>) -> Vec<LaneOrder> {
        match self.halt {
            Some(halt) => self.wind_down(halt, &mut orders),
            None => self.start_ready(&mut orders),
        }
        if self.open == 0 && !self.done {
            self.done = true;
            orders.push(LaneOrder::Done(self.ruling()));
        }
        orders
    }

    /// Marks a step as ready, or skips a step that is left out. All its dependencies have ended.
    fn may_start(&mut self, number: usize, orders: &mut Vec<LaneOrder>) {
        let plan = &self.steps[number];
        match plan.left_out.clone() {
            Some(reason) => {
                orders.push(LaneOrder::Leave(number, StepStatus::Skipped, reason));
                self.settle(number, StepStatus::Skipped, orders);
            }
            None => drop(self.ready.insert((std::cmp::Reverse(plan.expected), number))),
        }
    }

    /// Records the final status of a step. Steps that waited for it may become ready; steps that
    /// need its success do not run.
    fn settle(&mut self, number: usize, status: StepStatus, orders: &mut Vec<LaneOrder>) {
        let mut settled = vec![(number, status, status.is_failure())];
        while let Some((number, status, falls)) = settled.pop() {
            self.steps[number].at = At::Ended(status);
            self.open -= 1;
            if self.halt.is_some() {
                continue; // no further step starts; `wind_down` ends the waiting steps
            }
            let name = self.steps[number].name.clone();
            let direct = std::mem::take(&mut self.steps[number].followers); // a step ends only once
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
                        orders.push(LaneOrder::Leave(follower, status, reason));
                        settled.push((follower, status, falls));
                    }
                    None => drop(self.ready.insert((std::cmp::Reverse(plan.expected), follower))),
                }
            }
        }
    }

    /// Returns the steps whose joints are complete with the end of this step.
    fn let_go(&mut self, step: usize) -> Vec<usize> {
        let (mut steps, mut open) = (Vec::new(), std::mem::take(&mut self.steps[step].joints));
        while let Some(joint) = open.pop() {
            let join = &mut self.joints[joint];
            join.missing -= 1;
            if join.missing == 0 {
                steps.append(&mut join.steps);
                open.append(&mut join.joints);
            }
        }
        steps
    }

    fn wind_down(&mut self, halt: Halt, orders: &mut Vec<LaneOrder>) {
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
                    orders.push(LaneOrder::Leave(number, status, why));
                }
                At::BetweenTries(status) => {
                    plan.at = At::Ended(status);
                    self.open -= 1;
                    orders.push(LaneOrder::GiveUp(number));
                }
                At::Running => {
                    plan.at = At::Stopping;
                    orders.push(LaneOrder::Stop(number));
                }
                At::Stopping | At::Ended(_) => {}
            }
        }
    }

    fn start_ready(&mut self, orders: &mut Vec<LaneOrder>) {
        while self.busy < self.jobs
            && let Some((_, number)) = self.ready.pop_first()
        {
            self.busy += 1;
            self.steps[number].at = At::Running;
            orders.push(LaneOrder::Start(number));
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

/// Creates the joints of a lane, and registers each joint with its parts.
fn joints(lane: &Lane, steps: &mut [LaneGraph]) -> Vec<JoinState> {
    let missing = |joint: &Joint| joint.steps.len() + joint.joints.len();
    let mut joints: Vec<JoinState> =
        lane.joints.iter().map(|joint| JoinState { missing: missing(joint), ..JoinState::default() }).collect();
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
#[path = "lane_machine_tests.rs"]
mod tests;
