//! The setup of a lane, in its room.

use super::BaseError;
use crate::gate::GateSite;
use crate::lane::Lane;
use crate::lane_runner::{LaneOutcome, LaneRoom, LaneRuling};
use crate::verdict::StepProgress;
use tokio_util::sync::CancellationToken;

/// Runs the setup of a lane in its room, with network access.
pub(in crate::gate) async fn set_up(
    lane: &Lane,
    site: &GateSite,
    mut place: LaneRoom,
    stop: &CancellationToken,
    on_step: &(dyn Fn(StepProgress) + Send + Sync),
) -> Result<(), BaseError> {
    let Some(setup) = lane.setup_lane() else { return Ok(()) };
    place.behind.iter_mut().for_each(|behind| behind.rules.network = true);
    let outcome = site.run(&setup, place, stop, on_step).await;
    if outcome.ruling == LaneRuling::Passed { Ok(()) } else { Err(not_ready(lane, &outcome)) }
}

fn not_ready(lane: &Lane, outcome: &LaneOutcome) -> BaseError {
    if outcome.ruling == LaneRuling::Cancelled {
        return BaseError::Stopped;
    }
    let step = outcome.steps.iter().find(|step| step.status.is_failure());
    BaseError::Setup {
        lane: lane.name.clone(),
        step: step.map(|step| step.step.clone()).unwrap_or_default(),
        why: step.map(|step| [step.note.trim(), step.excerpt.trim()].join("\n").trim().to_owned()).unwrap_or_default(),
    }
}
