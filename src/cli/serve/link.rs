//! `fledge serve link`: creates a link for a browser. It needs no request to the server that
//! accepts it.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data};
use super::{ServedProject, failed};
use crate::serve::{LoginLink, ServeError, ServeLease};

/// Prints a link; returns the exit code.
pub(super) fn link(site: &ServedProject) -> Result<u8, CliError> {
    let none = || failed(ServeError::NoServer { project: site.project.display().to_string() });
    let url = ServeLease::address(&site.folder).ok_or_else(none)?;
    let code = LoginLink::make(&site.folder, jiff::Timestamp::now()).map_err(failed)?;
    print_data(&at(&url, &code)).map_err(no_output)?;
    Ok(0)
}

/// Returns the complete link.
pub(super) fn at(url: &str, code: &str) -> String {
    format!("{url}/enter?code={code}")
}
