//! `fledge runs attest`: what a run's gate has passed, as a statement that the tools people use can sign.

use super::super::failure::Failure;
use super::super::{block_on, no_output, print_json};
use super::Shelf;
use super::left::{Left, Seen};
use crate::config::Environment;
use crate::report::attest::statement;
use clap::Args;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Args)]
#[command(
    after_help = "An in-toto Statement (v1) with the predicate test-result (v0.1), from the run's journal, for the tree and its commit.\n\
    It proves nothing before somebody signs it. Exit code 1 for a run that was not verified.\n\n\
    Examples:\n  fledge runs attest last > statement.json\n  fledge runs attest 0198f2 --url \"$RUN_URL\" > statement.json"
)]
pub(in crate::cli) struct AttestArguments {
    /// The run: the start of its id, its run key, or `last`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Where the run can be looked at
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Prints it; gives the exit code.
pub(super) fn attest(shelf: &Shelf, arguments: &AttestArguments, environment: &Environment) -> Result<u8, Failure> {
    let statement = block_on(async {
        let verified = Left::find(shelf, &arguments.run, Seen::WhereItWorked, environment, CancellationToken::new())
            .await?
            .verified()
            .await?;
        Ok::<_, Failure>(statement(&verified.result, &verified.proof, arguments.url.as_deref()))
    })??;
    print_json(&format!("{statement:#}")).map_err(no_output)?;
    Ok(0)
}
