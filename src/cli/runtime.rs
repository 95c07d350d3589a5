//! The runtime on which a verb waits, with or without signals that stop its work.

use super::failure::CliError;
use super::signals;
use crate::driver::StopToken;
use crate::process;
use anyhow::Context;
use tokio_util::sync::CancellationToken;

/// Runs a future on a single-threaded runtime: a run is one loop, and its effects wait more than
/// they compute.
pub(super) fn block_on<T>(future: impl Future<Output = T>) -> Result<T, CliError> {
    process::ensure_open_files().map_err(|error| CliError::own(error).hint("raise the limit: `ulimit -n 1024`"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime =
        runtime.map_err(|error| CliError::own(anyhow::Error::new(error).context("cannot start the runtime")))?;
    let done = runtime.block_on(future);
    runtime.shutdown_background(); // do not wait for blocking reads of a dead network file system
    Ok(done)
}

/// Does some work and lets a signal stop it; returns the exit code.
pub(super) fn heeding<W: Future<Output = Result<u8, CliError>>>(
    work: impl FnOnce(CancellationToken) -> W,
) -> Result<u8, CliError> {
    block_on(async {
        let stop = StopToken::default();
        let _listening = signals::listen(stop.clone()).context("cannot listen for signals").map_err(CliError::own)?;
        let done = work(stop.token().clone()).await;
        done.map_err(|failure| if stop.token().is_cancelled() { failure.stopped_by(stop.cause()) } else { failure })
    })?
}
