//! 13. Any state survives serialisation, and the machine goes on from it as if nothing had happened.

use super::law;
use fledge::run::Run;

/// The run as it comes back from JSON; whoever asks goes on with it.
pub(crate) fn restore(run: &Run) -> Result<Run, String> {
    let text = serde_json::to_string(run).map_err(|error| format!("law 13: not written: {error}"))?;
    let back: Run = serde_json::from_str(&text).map_err(|error| format!("law 13: not read back: {error}"))?;
    law(13, back == *run, || format!("came back as another run: {text}")).map(|()| back)
}
