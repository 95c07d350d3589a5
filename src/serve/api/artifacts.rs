//! `/v1/runs/{id}/artifacts`: what a run leaves, as files. Nothing of them is ever shown as a page.

use super::super::House;
use super::super::engine::LARGEST;
use super::super::http::{Operation, Problem};
use crate::id::RunId;
use axum::extract::{Path, State};
use axum::http::{HeaderName, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use schemars::JsonSchema;
use serde::Serialize;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;

/// Logs that are listed.
const MOST: usize = 1000;
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const REPORT: &str = "report.json";
const PAGE: &str = "report.md";
const JOURNAL: &str = "journal.jsonl";
const PATCH: &str = "diff.patch";
/// How the names of logs begin.
const LOGS: &str = "logs/";

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/v1/runs/{id}/artifacts", get(list)).route("/v1/runs/{id}/artifacts/{*name}", get(give))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/v1/runs/{id}/artifacts", "What a run has left, as files").answers::<Artifacts>(200, "They"),
        Operation::get(
            "/v1/runs/{id}/artifacts/{*name}",
            "One of them: its report as data or in Markdown, its journal, a patch of what \
             it has changed, a log of its gate",
        )
        .sends(200, "The file", TEXT)
        .sends(200, "The file", JSON),
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
    /// Its size; null for one that is made when it is asked for.
    bytes: Option<u64>,
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
            let mut all: Vec<Artifact> = artifact(REPORT, &folder.report(), JSON).into_iter().collect();
            let made = |name: &str| Artifact { name: name.into(), bytes: None, media: TEXT };
            if !all.is_empty() {
                all.extend([PAGE, PATCH].map(made));
            }
            if folder.path().exists() {
                all.push(made(JOURNAL));
            }
            let mut logs: Vec<Artifact> = Vec::new();
            for entry in fs::read_dir(folder.logs()).into_iter().flatten().flatten().take(MOST) {
                let name = entry.file_name();
                logs.extend(name.to_str().and_then(|name| artifact(&format!("{LOGS}{name}"), &entry.path(), TEXT)));
            }
            logs.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(all.into_iter().chain(logs).collect())
        })
        .await
}

/// A plain file; links are none.
fn artifact(name: &str, path: &FilePath, media: &'static str) -> Option<Artifact> {
    let meta = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    Some(Artifact { name: name.into(), bytes: Some(meta.len()), media })
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
    let none = || Problem::not_found(format!("run {run} has left no `{wanted}`"));
    // Only what is listed is given, so that no name leads anywhere else.
    let artifact = all(&house, &run).await?.into_iter().find(|artifact| artifact.name == wanted).ok_or_else(none)?;
    let too_large = || {
        Problem::unprocessable(format!(
            "`{wanted}` is larger than {LARGEST} bytes: `fledge runs` gives it on the machine"
        ))
    };
    let bytes = match artifact.name.as_str() {
        PAGE => house.engine.page(&run).await?.ok_or_else(none)?.into_bytes(),
        JOURNAL => house.engine.journal(&run).await?.ok_or_else(too_large)?.into_bytes(),
        PATCH => house.engine.patch(&run).await?.ok_or_else(none)?,
        _ if artifact.bytes.is_some_and(|bytes| bytes > LARGEST as u64) => return Err(too_large()),
        file => {
            let (run, log) = (run.clone(), file.strip_prefix(LOGS).map(str::to_owned));
            let read = house.stored(move |store| {
                let folder = store.folder(&run);
                Ok(fs::read(log.map_or_else(|| folder.report(), |log| folder.logs().join(log))))
            });
            read.await?.map_err(|_| none())?
        }
    };
    let headers: [(HeaderName, &str); 2] =
        [(header::CONTENT_TYPE, artifact.media), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, bytes).into_response())
}
