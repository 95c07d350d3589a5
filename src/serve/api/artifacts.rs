//! `/v1/runs/{id}/artifacts`: the files that a run leaves. Nothing of them is ever shown as a page.

use super::super::House;
use super::super::http::{Operation, Problem};
use crate::id::RunId;
use axum::Json;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

/// The largest file that is given out, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Logs that are listed.
const MOST: usize = 1000;
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/v1/runs/{id}/artifacts", get(list)).route("/v1/runs/{id}/artifacts/{*name}", get(give))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/v1/runs/{id}/artifacts", "The files that a run has left").answers::<Artifacts>(200, "They"),
        Operation::get("/v1/runs/{id}/artifacts/{*name}", "One of them, as it is").sends(200, "The file", TEXT),
    ]
}

/// The files of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Artifacts {
    /// By their names.
    artifacts: Vec<Artifact>,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Artifact {
    /// Its name, in the path that gives it.
    name: String,
    /// Its size.
    bytes: u64,
    /// Its media type.
    #[serde(rename = "type")]
    media: &'static str,
}

/// All of a run.
pub(super) async fn all(house: &Arc<House>, run: &RunId) -> Result<Vec<Artifact>, Problem> {
    let run = run.clone();
    house
        .stored(move |store| {
            let folder = store.folder(&run);
            let report = artifact("report.json", &folder.report(), JSON);
            let mut logs: Vec<Artifact> = Vec::new();
            for entry in fs::read_dir(folder.logs()).into_iter().flatten().flatten().take(MOST) {
                let name = entry.file_name();
                logs.extend(name.to_str().and_then(|name| artifact(&format!("logs/{name}"), &entry.path(), TEXT)));
            }
            logs.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(report.into_iter().chain(logs).collect())
        })
        .await
}

/// A plain file; links are none.
fn artifact(name: &str, path: &FilePath, media: &'static str) -> Option<Artifact> {
    let meta = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    Some(Artifact { name: name.into(), bytes: meta.len(), media })
}

async fn list(State(house): State<Arc<House>>, Path(name): Path<String>) -> Result<Json<Artifacts>, Problem> {
    let run = house.engine.find(&name).await?;
    Ok(Json(Artifacts { artifacts: all(&house, &run).await? }))
}

async fn give(
    State(house): State<Arc<House>>,
    Path((name, wanted)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let run = house.engine.find(&name).await?;
    // Only what is listed is given, so that no name leads anywhere else.
    let found = all(&house, &run).await?.into_iter().find(|artifact| artifact.name == wanted);
    let artifact = found.ok_or_else(|| Problem::not_found(format!("run {run} has left no `{wanted}`")))?;
    if artifact.bytes > LARGEST {
        return Err(Problem::unprocessable(format!(
            "`{wanted}` is larger than {LARGEST} bytes: read it on the machine"
        )));
    }
    let bytes = house.stored(move |store| {
        let folder = store.folder(&run);
        let path = match wanted.strip_prefix("logs/") {
            Some(log) => folder.logs().join(log),
            None => folder.report(),
        };
        Ok(fs::read(path))
    });
    let bytes = bytes.await?.map_err(|error| Problem::not_found(format!("it cannot be read: {error}")))?;
    let headers: [(HeaderName, &str); 2] =
        [(header::CONTENT_TYPE, artifact.media), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, bytes).into_response())
}
