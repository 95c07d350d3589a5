//! `fledge runs attest`: a statement about a verified run, which common tools can sign.

use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::runtime::block_on;
use super::RunsContext;
use super::leftovers::{LeftRun, WorkspaceView};
use crate::config::EnvironmentLayer;
use crate::report::attest::statement;
use clap::Args;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Args)]
#[command(
    after_help = "Prints an in-toto Statement (v1) with the predicate test-result (v0.1), from the run's journal, for \
    the tree and its commit.\n\
    The statement proves nothing until you sign it. Exit code 1 if the run was not verified.\n\n\
    Examples:\n  fledge runs attest last > statement.json\n  fledge runs attest 0198f2 --url \"$RUN_URL\" > statement.json"
)]
pub(in crate::cli) struct AttestArguments {
    /// Run: the start of its id, its run key, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Address of a page about the run, to put into the statement
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Prints the statement; returns the exit code.
pub(super) fn attest(
    shelf: &RunsContext,
    arguments: &AttestArguments,
    environment: &EnvironmentLayer,
) -> Result<u8, CliError> {
    let statement = block_on(async {
        let verified =
            LeftRun::find(shelf, &arguments.run, WorkspaceView::WhereItWorked, environment, CancellationToken::new())
                .await?
                .verified()
                .await?;
        Ok::<_, CliError>(statement(&verified.result, &verified.proof, arguments.url.as_deref()))
    })??;
    print_json(&format!("{statement:#}")).map_err(no_output)?;
    Ok(0)
}
