//! A lane being run, as a machine: it is told what ended and says what to do next. Pure; whoever drives it starts the processes.
//!
//! Order is held as a set of steps that each step waits for, so what a file can say about order (sequence and groups now) only
//! fills these sets.

use super::Lane;
use crate::verdict::StepStatus;
use serde::{Deserialize, Serialize};

/// What to do next. Steps are named by their number, see [`Lane::all_steps`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Start this step.
    Start(usize),
    /// Stop this one; its end is to be told like any other.
    Stop(usize),
    /// It is over. Always the last order, and given once.
    Done(LaneRuling),
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
    /// No step was to run. Nothing was checked, so this is no pass.
    NothingRan,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    steps: Vec<Plan>,
    jobs: usize,
    fail_fast: bool,
    halt: Option<Halt>,
    done: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Plan {
    /// The steps that must have ended before this one starts.
    after: Vec<usize>,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Waiting,
    Running,
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
    /// The course of a lane, with at most `jobs` steps at a time (one at least).
    pub fn new(lane: &Lane, jobs: usize) -> Self {
        let mut steps = Vec::new();
        let mut after: Vec<usize> = Vec::new();
        for item in &lane.steps {
            let first = steps.len();
            steps.extend(item.steps().iter().map(|_| Plan { after: after.clone(), at: At::Waiting }));
            after = (first..steps.len()).collect();
        }
        Self { steps, jobs: jobs.max(1), fail_fast: lane.fail_fast, halt: None, done: false }
    }

    /// The first orders.
    pub fn start(&mut self) -> Vec<Order> {
        self.advance()
    }

    /// Takes in that a step has ended. Steps that were not running are not listened to.
    pub fn ended(&mut self, step: usize, status: StepStatus) -> Vec<Order> {
        let Some(plan) = self.steps.get_mut(step).filter(|plan| matches!(plan.at, At::Running | At::Stopping)) else {
            return Vec::new();
        };
        plan.at = At::Ended(status);
        if self.fail_fast && is_failure(status) {
            self.halt.get_or_insert(Halt::Failure);
        }
        self.advance()
    }

    /// Takes in that somebody wants it to stop.
    pub fn cancel(&mut self) -> Vec<Order> {
        self.halt = Some(Halt::Cancel);
        self.advance()
    }

    /// Takes in that its time is over.
    pub fn expire(&mut self) -> Vec<Order> {
        self.halt.get_or_insert(Halt::Timeout);
        self.advance()
    }

    /// What a step is that was ended by an order to stop.
    pub fn status_of_stopped(&self) -> StepStatus {
        match self.halt {
            Some(Halt::Timeout) => StepStatus::TimedOut,
            Some(Halt::Failure | Halt::Cancel) | None => StepStatus::Cancelled,
        }
    }

    fn advance(&mut self) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.halt.is_some() {
            self.wind_down(&mut orders);
        } else {
            self.start_ready(&mut orders);
        }
        if !self.done && self.steps.iter().all(|plan| matches!(plan.at, At::Ended(_))) {
            self.done = true;
            orders.push(Order::Done(self.ruling()));
        }
        orders
    }

    fn wind_down(&mut self, orders: &mut Vec<Order>) {
        for (number, plan) in self.steps.iter_mut().enumerate() {
            match plan.at {
                At::Waiting => plan.at = At::Ended(StepStatus::Skipped),
                At::Running => {
                    plan.at = At::Stopping;
                    orders.push(Order::Stop(number));
                }
                At::Stopping | At::Ended(_) => {}
            }
        }
    }

    fn start_ready(&mut self, orders: &mut Vec<Order>) {
        let mut busy = self.steps.iter().filter(|plan| matches!(plan.at, At::Running | At::Stopping)).count();
        for number in 0..self.steps.len() {
            let plan = &self.steps[number];
            let is_ready = plan.at == At::Waiting
                && plan.after.iter().all(|earlier| matches!(self.steps[*earlier].at, At::Ended(_)));
            if is_ready && busy < self.jobs {
                busy += 1;
                self.steps[number].at = At::Running;
                orders.push(Order::Start(number));
            }
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
        } else if any(|status| status == StepStatus::Cancelled) {
            LaneRuling::Cancelled
        } else if any(|status| status == StepStatus::Passed) {
            LaneRuling::Passed
        } else {
            LaneRuling::NothingRan
        }
    }
}

/// Whether this status ends a lane that ends at the first failure.
fn is_failure(status: StepStatus) -> bool {
    match status {
        StepStatus::Failed | StepStatus::TimedOut | StepStatus::Errored => true,
        StepStatus::Passed | StepStatus::Cancelled | StepStatus::Skipped => false,
    }
}

#[cfg(test)]
#[path = "course_tests.rs"]
mod tests;
