//! `/v1/runs/{id}/artifacts`: the files of a run. They are sent as downloads, never as pages.

use super::super::AppState;
use super::super::engine::LARGEST;
use super::super::http::{ApiOperation, HttpProblem};
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

/// The limits of the log listing: the number of entries, and the depth (`attempt-1/LANE/LOG`).
const MOST: usize = 1000;
const DEEP: usize = 3;
/// The size in bytes above which a file is sent in pieces, and the size of a piece. A large file
/// stays in memory until its reader has received it.
const LARGE: usize = 1024 * 1024;
const PIECE: usize = 64 * 1024;
/// The longest wait of a request while other large files are sent.
const WAIT: Duration = Duration::from_secs(10);
const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";
const REPORT: &str = "report.json";
const PAGE: &str = "report.md";
const JOURNAL: &str = "journal.jsonl";
const PATCH: &str = "diff.patch";
/// The prefix of log names.
const LOGS: &str = "logs/";

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/v1/runs/{id}/artifacts", get(list)).route("/v1/runs/{id}/artifacts/{*name}", get(give))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/v1/runs/{id}/artifacts", "List the files of a run").answers::<Artifacts>(200, "Artifacts"),
        ApiOperation::get(
            "/v1/runs/{id}/artifacts/{*name}",
            "Get a file of a run: its report as data or in Markdown, its journal, \
             a patch of its changes, or a log of its gate",
        )
        .sends(200, "The file", TEXT)
        .sends(200, "The file", JSON)
        .refuses(503, "Too many large files are being sent"),
    ]
}

/// The files of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Artifacts {
    /// The files, by name.
    artifacts: Vec<Artifact>,
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(super) struct Artifact {
    /// The name, as it appears in the file's path.
    name: String,
    /// The size in bytes; null for a file that is generated on request.
    bytes: Option<u64>,
    /// The media type.
    #[serde(rename = "type")]
    media: &'static str,
}

/// Lists all files of a run.
pub(super) async fn all(app_state: &Arc<AppState>, run: &RunId) -> Result<Vec<Artifact>, HttpProblem> {
    let run = run.clone();
    app_state
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

/// Describes a regular file. Symbolic links are skipped.
fn artifact(name: &str, path: &FilePath, media: &'static str) -> Option<Artifact> {
    let meta = path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    Some(Artifact { name: name.into(), bytes: Some(meta.len()), media })
}

async fn list(
    State(app_state): State<Arc<AppState>>,
    Path(name): Path<String>,
) -> Result<Json<Artifacts>, HttpProblem> {
    let run = app_state.engine.find(&name).await?;
    Ok(Json(Artifacts { artifacts: all(&app_state, &run).await? }))
}

async fn give(
    State(app_state): State<Arc<AppState>>,
    Path((name, wanted)): Path<(String, String)>,
) -> Result<Response, HttpProblem> {
    let run = app_state.engine.find(&name).await?;
    let none = || HttpProblem::not_found(format!("run {run} has no file `{wanted}`"));
    // Only listed names are served, so no name can lead to another file.
    let artifact =
        all(&app_state, &run).await?.into_iter().find(|artifact| artifact.name == wanted).ok_or_else(none)?;
    let too_large = || {
        HttpProblem::unprocessable(format!(
            "`{wanted}` is larger than {LARGEST} bytes: use `fledge runs` on the machine"
        ))
    };
    let large = match artifact.bytes {
        Some(bytes) if bytes <= LARGE as u64 => None,
        Some(_) | None => Some(wait_for_room(&app_state).await?),
    };
    let bytes = match artifact.name.as_str() {
        PAGE => app_state.engine.page(&run).await?.ok_or_else(none)?.into_bytes(),
        JOURNAL => app_state.engine.journal(&run).await?.ok_or_else(too_large)?.into_bytes(),
        PATCH => app_state.engine.patch(&run).await?.ok_or_else(none)?,
        _ if artifact.bytes.is_some_and(|bytes| bytes > LARGEST as u64) => return Err(too_large()),
        file => {
            let (run, log) = (run.clone(), file.strip_prefix(LOGS).map(str::to_owned));
            let read = app_state.stored(move |store| {
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

async fn wait_for_room(app_state: &AppState) -> Result<OwnedSemaphorePermit, HttpProblem> {
    match timeout(WAIT, Arc::clone(&app_state.large).acquire_owned()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(HttpProblem::unavailable("too many large files are being sent: try again later")),
    }
}

/// Returns a body that keeps its permit for large files until the last piece is taken.
fn in_pieces(bytes: Bytes, permit: OwnedSemaphorePermit) -> Body {
    let pieces = stream::unfold((bytes, permit), |(mut left, permit)| async move {
        let piece = left.split_to(left.len().min(PIECE));
        (!piece.is_empty()).then_some((Ok::<_, Infallible>(piece), (left, permit)))
    });
    Body::from_stream(pieces)
}
