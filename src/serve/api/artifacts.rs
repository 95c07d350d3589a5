//! `/v1/runs/{id}/artifacts`: what a run leaves, as files. Nothing of them is ever shown as a page.

use super::super::House;
use super::super::engine::LARGEST;
use super::super::http::{Operation, Problem};
use crate::id::RunId;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures_util::stream;
use schemars::JsonSchema;
use serde::Serialize;
use std::convert::Infallible;
use std::fs;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;
use walkdir::WalkDir;

/// Entries of the folder of logs that are listed, and how deep: `attempt-1/LANE/LOG`.
const MOST: usize = 1000;
const DEEP: usize = 3;
/// Bytes of what is large, and of a piece of it: it stays in memory until its reader has it.
const LARGE: usize = 1024 * 1024;
const PIECE: usize = 64 * 1024;
/// How long somebody waits until another one has read to the end.
const WAIT: Duration = Duration::from_secs(10);
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
        .sends(200, "The file", JSON)
        .refuses(503, "Several large ones are being given out"),
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
            for entry in WalkDir::new(folder.logs()).min_depth(1).max_depth(DEEP).into_iter().flatten().take(MOST) {
                let name = entry.path().strip_prefix(folder.logs()).ok().and_then(FilePath::to_str);
                logs.extend(name.and_then(|name| artifact(&format!("{LOGS}{name}"), entry.path(), TEXT)));
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
    let large = match artifact.bytes {
        Some(bytes) if bytes <= LARGE as u64 => None,
        Some(_) | None => Some(wait_for_room(&house).await?),
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
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(artifact.media)),
        (header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (header::CONTENT_LENGTH, bytes.len().into()),
    ];
    match large.filter(|_| bytes.len() > LARGE) {
        Some(permit) => Ok((headers, in_pieces(bytes.into(), permit)).into_response()),
        None => Ok((headers, bytes).into_response()),
    }
}

async fn wait_for_room(house: &House) -> Result<OwnedSemaphorePermit, Problem> {
    match timeout(WAIT, Arc::clone(&house.large).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => {
            Err(Problem::unavailable("several large files are being given out: try again in a while"))
        }
    }
}

/// A body that keeps its place among the large ones until its last piece is taken.
fn in_pieces(bytes: Bytes, permit: OwnedSemaphorePermit) -> Body {
    let pieces = stream::unfold((bytes, permit), |(mut left, permit)| async move {
        let piece = left.split_to(left.len().min(PIECE));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (left, permit)))
    });
    Body::from_stream(pieces)
}
