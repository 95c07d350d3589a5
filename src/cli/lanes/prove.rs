//! Tries a lane that was just written: by hand, and in the room that it has as a gate.

use super::super::failure::Failure;
use super::clean::{Court, lost};
use super::failed;
use crate::config::Environment;
use crate::driver::Stop;
use crate::gate::{self, Loaded};
use crate::lane::{Lane, RoomKind};
use crate::lane_runner::{Room, run_lane};
use crate::store::{self, LaneDir};
use crate::tool::Mask;
use crate::verdict::StepReport;
use anyhow::anyhow;
use std::path::Path;
use std::time::Duration;

/// The longest that either half may take.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// The steps of a lane as they ended.
#[derive(Debug)]
pub(in crate::cli) struct Proof {
    /// By hand.
    pub(in crate::cli) by_hand: Vec<StepReport>,
    /// In a clean room, or the reason why there was none.
    pub(in crate::cli) in_room: Result<Vec<StepReport>, String>,
    /// Reasons for which the gate would not take a pass.
    pub(in crate::cli) doubts: Vec<String>,
}

/// Runs every step of a lane by hand and then in a clean room, also after a failure. `begin` is called before each half.
///
/// # Errors
/// A lane that cannot be read, no place for logs, and a stop.
pub(in crate::cli) async fn prove(
    root: &Path,
    name: &str,
    environment: &Environment,
    stop: &Stop,
    begin: impl Fn(&str),
) -> Result<Proof, Failure> {
    let env = environment.own_env();
    let Loaded { lane, .. } = gate::load(root, name, env.get("PATH").map_or("", String::as_str)).map_err(failed)?;
    let lane = Lane { fail_fast: false, timeout: lane.timeout.min(LONGEST), ..lane };
    let state = environment.state_dir().map_err(Failure::input)?;
    let project = store::project_dir(&state, root);
    let logs = LaneDir::create(&project, &uuid::Uuid::now_v7().to_string()).map_err(Failure::own)?;
    begin("by hand");
    let jobs = std::thread::available_parallelism().map_or(1, usize::from);
    let room = Room::new(root.to_owned(), env.into_iter().collect(), logs.path().join("by-hand"), jobs);
    let by_hand = run_lane(&lane, &room, stop.token(), &|_| {}).await.steps;
    let stopped = || Failure::stopped(stop.cause(), anyhow!("stopped while the checks were tried"));
    if stop.token().is_cancelled() {
        return Err(stopped());
    }
    begin("in a clean room");
    let in_room = match store::is_inside(&state, root) {
        true => Err(format!("the state folder {} is inside the project", state.display())),
        false => clean(root, lane, environment, (&project, &logs), stop).await.map_err(|failure| failure.message()),
    };
    gate::mask_logs(logs.path(), &Mask::of(environment.secrets())).await;
    if stop.token().is_cancelled() {
        return Err(stopped());
    }
    let (in_room, doubts) = match in_room {
        Ok((steps, doubts)) => (Ok(steps), doubts),
        Err(why) => (Err(why), Vec::new()),
    };
    Ok(Proof { by_hand, in_room, doubts })
}

async fn clean(
    root: &Path,
    lane: Lane,
    environment: &Environment,
    places: (&Path, &LaneDir),
    stop: &Stop,
) -> Result<(Vec<StepReport>, Vec<String>), Failure> {
    let court = Court::open(root, &lane.name, None, environment, places, stop).await?;
    let lane = Lane { room: RoomKind::Clean, ..lane };
    let entered = court.gate.enter(lane.clone(), &court.site, stop.token()).await.map_err(lost(stop))?;
    let outcome = run_lane(&lane, &entered.room(), stop.token(), &|_| {}).await;
    let doubts = entered.leave(&outcome, stop.token()).await.map_err(lost(stop))?;
    Ok((outcome.steps, doubts))
}
