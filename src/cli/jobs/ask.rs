//! `fledge jobs run`: asks the project's server, whose address is in the project's state folder.

use super::super::failure::CliError;
use super::super::output::{no_output, print_json};
use super::super::paint::{self, Tone};
use super::super::runtime::block_on;
use super::{JOBS_SCHEMA_VERSION, JobsContext, unknown};
use crate::config::EnvironmentLayer;
use crate::http::{Address, HttpClient, HttpRequest, HttpResponse, HttpSettings};
use crate::scheduler::{TaskFinding, scan};
use crate::serve::ServeLease;
use crate::store::read_text;
use crate::verdict::shell_word;
use anyhow::anyhow;
use serde_json::{Value, json};

/// The longest token, in bytes.
const LONGEST: usize = 2048;

/// Asks the server to run a job; returns the exit code.
pub(super) fn ask(place: &JobsContext, name: &str, environment: &EnvironmentLayer) -> Result<u8, CliError> {
    let jobs = place.jobs()?;
    if !jobs.iter().any(|(job, _)| job.name == name) {
        return Err(unknown(name, jobs.iter().map(|(job, _)| job.name.as_str())));
    }
    let Some(url) = ServeLease::address(&place.folder) else {
        let none = anyhow!("no server is running for {}", place.workspace.display());
        let alone = match scan(&place.workspace).get(name) {
            Some(TaskFinding::Scheduled(task)) => {
                format!(", or run the task alone with `fledge run {}`", shell_word(&task.path))
            }
            Some(TaskFinding::Broken(_)) | None => String::new(),
        };
        return Err(CliError::input(none).hint(format!("start a server with `fledge serve`{alone}")));
    };
    let answer = block_on(sent(&url, name, &token(place, environment)?))??;
    if answer.status != 202 {
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let detail = said["detail"]
            .as_str()
            .map_or_else(|| format!("the server answered with status {}", answer.status), str::to_owned);
        let failure = CliError::input(anyhow!("the server refused to run the job: {detail}"));
        let hint = "if the server uses --token-file, set FLEDGE_SERVE_TOKEN here to the same token";
        return Err(if answer.status == 401 { failure.hint(hint) } else { failure });
    }
    if place.json {
        let asked = json!({ "schema_version": JOBS_SCHEMA_VERSION, "name": name, "state": "asked" });
        print_json(&asked.to_string()).map_err(no_output)?;
    } else {
        paint::line(&[(Tone::Plain, format!("starting job `{name}`"))]);
    }
    Ok(0)
}

async fn sent(url: &str, name: &str, token: &str) -> Result<HttpResponse, CliError> {
    let address = Address::parse(url).map_err(CliError::own)?.join(&format!("v1/jobs/{name}/run"));
    let courier = HttpClient::to(address, &HttpSettings::default()).map_err(CliError::own)?;
    let letter = HttpRequest::json(b"{}".to_vec()).with("authorization", format!("Bearer {token}"));
    courier.send(&letter).await.map_err(CliError::own)
}

fn token(place: &JobsContext, environment: &EnvironmentLayer) -> Result<String, CliError> {
    if let Some(token) = environment.get("FLEDGE_SERVE_TOKEN") {
        return Ok(token.trim().to_owned());
    }
    let text = read_text(&place.folder.join("token"), LONGEST).map_err(CliError::own)?;
    let none =
        || CliError::input(anyhow!("cannot find the server's token")).hint("set FLEDGE_SERVE_TOKEN to the token");
    text.map(|text| text.trim().to_owned()).ok_or_else(none)
}
