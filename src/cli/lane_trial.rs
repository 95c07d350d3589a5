//! Trial of a lane that is about to be written: by hand, and in the clean room of a gate.

use super::clean_gate::{CleanGate, failed, lost};
use super::failure::CliError;
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::gate;
use crate::lane::{Lane, RoomKind};
use crate::lane_files::{self, LoadedLane};
use crate::lane_runner::{LaneRoom, run_lane};
use crate::process::cores;
use crate::store::{self, LaneDir};
use crate::tool::SecretMask;
use crate::verdict::StepReport;
use anyhow::anyhow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest time of one trial.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The result of a lane in a clean room.
#[derive(Debug)]
pub(super) struct RoomResult {
    /// The steps, or the reason why there was no room.
    pub(super) steps: Result<Vec<StepReport>, String>,
    /// The reasons why the gate would not accept a pass.
    pub(super) doubts: Vec<String>,
    /// Failed steps, each with the ignored files and folders that it names and the room lacks.
    pub(super) lacked: Vec<(String, Vec<String>)>,
}

/// The context of a trial.
#[derive(Debug)]
pub(super) struct LaneTrial<'t> {
    root: &'t Path,
    environment: &'t EnvironmentLayer,
    stop: &'t StopToken,
    state: PathBuf,
    project: PathBuf,
    logs: LaneDir,
}

impl<'t> LaneTrial<'t> {
    /// Creates a folder for the logs.
    ///
    /// # Errors
    /// When logs cannot be stored.
    pub(super) fn start(
        root: &'t Path,
        environment: &'t EnvironmentLayer,
        stop: &'t StopToken,
    ) -> Result<Self, CliError> {
        let state = environment.state_dir().map_err(CliError::input)?;
        let project = store::project_dir(&state, root);
        let logs = LaneDir::create(&project, &uuid::Uuid::now_v7().to_string()).map_err(CliError::own)?;
        Ok(Self { root, environment, stop, state, project, logs })
    }

    /// Runs all steps of a lane by hand, even after a failure. `name` names the folder of the logs.
    ///
    /// # Errors
    /// When the user stops the trial.
    pub(super) async fn by_hand(&self, lane: Lane, name: &str) -> Result<Vec<StepReport>, CliError> {
        let env = self.environment.own_env().into_iter().collect();
        let room = LaneRoom::new(self.root.to_owned(), env, self.logs.path().join(name), cores());
        let steps = run_lane(&whole(lane), &room, self.stop.token(), &|_| {}).await.steps;
        self.mask_logs().await?;
        Ok(steps)
    }

    /// Runs all steps of a lane in a clean room, even after a failure.
    ///
    /// # Errors
    /// When the lane cannot be read, or the user stops the trial.
    pub(super) async fn in_room(&self, name: &str) -> Result<RoomResult, CliError> {
        let env = self.environment.own_env();
        let path = env.get("PATH").map_or("", String::as_str);
        let LoadedLane { lane, .. } = lane_files::load(self.root, name, path).map_err(failed)?;
        let ran = match store::is_inside(&self.state, self.root) {
            true => Err(format!("the state folder {} is inside the project", self.state.display())),
            false => self.clean(whole(lane)).await.map_err(|failure| failure.message()),
        };
        self.mask_logs().await?;
        Ok(ran.unwrap_or_else(|why| RoomResult { steps: Err(why), doubts: Vec::new(), lacked: Vec::new() }))
    }

    async fn clean(&self, lane: Lane) -> Result<RoomResult, CliError> {
        let places = (self.project.as_path(), &self.logs);
        let court = CleanGate::open(self.root, &lane.name, None, self.environment, places, self.stop).await?;
        let lane = Lane { room: RoomKind::Clean, ..lane };
        let stop = self.stop.token();
        let entered = court.gate.enter(lane.clone(), &court.site, stop).await.map_err(lost(self.stop))?;
        let outcome = run_lane(&lane, &entered.room(), stop, &|_| {}).await;
        let doubts = entered.leave(&outcome, true, stop).await.map_err(lost(self.stop))?;
        let ignored = court.ignored(self.environment, self.stop).await;
        let failed = outcome.steps.iter().filter(|step| step.status.is_failure());
        let lacked = failed.map(|step| (step.step.clone(), gate::lacked_files(step, &lane, self.root, &ignored)));
        let lacked = lacked.filter(|(_, files)| !files.is_empty()).collect();
        Ok(RoomResult { steps: Ok(outcome.steps), doubts, lacked })
    }

    /// Hides secrets in the logs.
    ///
    /// # Errors
    /// When the user stopped the trial.
    async fn mask_logs(&self) -> Result<(), CliError> {
        gate::mask_logs(self.logs.path(), &SecretMask::of(self.environment.secrets())).await;
        match self.stop.token().is_cancelled() {
            true => Err(CliError::stopped(self.stop.cause(), anyhow!("stopped while running the checks"))),
            false => Ok(()),
        }
    }
}

fn whole(lane: Lane) -> Lane {
    Lane { fail_fast: false, timeout: lane.timeout.min(LONGEST), ..lane }
}
