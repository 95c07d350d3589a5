//! 13. Any state survives serialization, and the machine continues from it unchanged.

use super::law;
use fledge::run::Run;

/// Returns the run after a round trip through JSON. The caller continues with this copy.
pub(crate) fn restore(run: &Run) -> Result<Run, String> {
    let text = serde_json::to_string(run).map_err(|error| format!("law 13: not written: {error}"))?;
    let back: Run = serde_json::from_str(&text).map_err(|error| format!("law 13: not read back: {error}"))?;
    law(13, back == *run, || format!("came back as another run: {text}")).map(|()| back)
}
