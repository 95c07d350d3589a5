//! The runtime on which a verb waits.

use super::failure::CliError;

/// Runs a future on a single-threaded runtime: a run is one loop, and its effects wait more than
/// they compute.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CliError::own(anyhow::Error::new(error).context("cannot start the runtime")))?;
    let done = runtime.block_on(future);
    runtime.shutdown_background(); // do not wait for blocking reads of a dead network file system
    Ok(done)
}
