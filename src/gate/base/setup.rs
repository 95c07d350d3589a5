//! The setup of a lane, in its room.

use super::BaseFault;
use crate::gate::Site;
use crate::lane::Lane;
use crate::lane_runner::{LaneOutcome, LaneRuling, Room};
use crate::verdict::StepProgress;
use tokio_util::sync::CancellationToken;

/// Runs the setup of a lane in its room, with network access.
pub(in crate::gate) async fn set_up(
    lane: &Lane,
    site: &Site,
    mut place: Room,
    stop: &CancellationToken,
    on_step: &(dyn Fn(StepProgress) + Send + Sync),
) -> Result<(), BaseFault> {
    let Some(setup) = lane.setup_lane() else { return Ok(()) };
    place.behind.iter_mut().for_each(|behind| behind.holes.network = true);
    let outcome = site.run(&setup, place, stop, on_step).await;
    if outcome.ruling == LaneRuling::Passed { Ok(()) } else { Err(not_ready(lane, &outcome)) }
}

fn not_ready(lane: &Lane, outcome: &LaneOutcome) -> BaseFault {
    if outcome.ruling == LaneRuling::Cancelled {
        return BaseFault::Stopped;
    }
    let step = outcome.steps.iter().find(|step| step.status.is_failure());
    BaseFault::Setup {
        lane: lane.name.clone(),
        step: step.map(|step| step.step.clone()).unwrap_or_default(),
        why: step.map(|step| [step.note.trim(), step.excerpt.trim()].join("\n").trim().to_owned()).unwrap_or_default(),
    }
}
