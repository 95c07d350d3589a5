//! The web page. Its plain modules are part of the program: it has no build step and loads nothing
//! from other sites. It uses the public API, and shows all data as text.

use super::AppState;
use super::http::{ApiOperation, HttpProblem};
use crate::store::sha256;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use std::sync::{Arc, OnceLock};

/// A file of the page.
struct Asset {
    name: &'static str,
    text: &'static str,
}

/// The files of the page, by name.
macro_rules! assets {
    ($($name:literal)*) => {
        [$(Asset { name: $name, text: include_str!(concat!("assets/", $name)) }),*]
    };
}

const INDEX: &str = include_str!("assets/index.html");
static ASSETS: [Asset; 33] = assets![
    "actions.js" "ansi.js" "api.js" "begin.js" "bell.js" "blocks.js" "changes.js" "chart.js" "code.css" "diff.js"
    "dom.js" "fields.js" "fold.js" "icon.svg" "jobs.js" "log.js" "main.js" "monitors.js" "page.css" "parts.css"
    "project.js" "questions.js" "row.js" "run.js" "runs.js" "scenes.js" "story.css" "story.js" "stream.js" "syntax.js"
    "timeline.js" "waiting.js" "words.js"
];

/// Returns the routes of this file.
pub(in crate::serve) fn routes() -> Router<Arc<AppState>> {
    Router::new().route("/", get(index)).route("/assets/{edition}/{name}", get(asset))
}

/// Returns the descriptions of the routes.
pub(in crate::serve) fn operations() -> Vec<ApiOperation> {
    vec![
        ApiOperation::get("/", "Get the page for browsers")
            .sends(200, "The page", "text/html")
            .nothing(304, "Not modified"),
        ApiOperation::get("/assets/{edition}/{name}", "Get a file of the page")
            .sends(200, "The file", "text/javascript")
            .refuses(404, "No such file in this edition"),
    ]
}

/// Returns the digest of all files together. It is part of each file's path, so browsers can cache
/// the files, and never mix those of two versions.
fn edition() -> &'static str {
    static EDITION: OnceLock<String> = OnceLock::new();
    EDITION.get_or_init(|| {
        let all: String = ASSETS.iter().map(|asset| asset.text).chain([INDEX]).collect();
        sha256(all.as_bytes())[..16].to_owned()
    })
}

/// Returns the page with the file paths of this edition.
async fn index(asked: HeaderMap) -> Response {
    let tag = format!("\"{}\"", edition());
    let head = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, "private, no-cache")];
    let known = asked.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
    if known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, head).into_response();
    }
    (head, Html(INDEX.replace("\"/assets/", &format!("\"/assets/{}/", edition())))).into_response()
}

async fn asset(Path((wanted, name)): Path<(String, String)>) -> Result<Response, HttpProblem> {
    let asset = ASSETS.iter().find(|asset| asset.name == name && wanted == edition());
    let asset = asset.ok_or_else(|| HttpProblem::not_found("the page has no file of that name"))?;
    let keep = "private, max-age=31536000, immutable";
    Ok(([(header::CONTENT_TYPE, asset.media()), (header::CACHE_CONTROL, keep)], asset.text).into_response())
}

impl Asset {
    fn media(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/javascript; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Reason;
    use axum::http::HeaderValue;
    use std::collections::BTreeSet;

    /// Returns every `"./x"` and `"/assets/x"` of a file.
    fn named(text: &str) -> BTreeSet<&str> {
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter_map(|text| text.strip_prefix("./").or_else(|| text.strip_prefix("/assets/"))).collect()
    }

    #[test]
    fn every_file_of_the_page_is_named_in_it_and_what_is_named_is_there() {
        let there: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        assert_eq!(named(INDEX), there);
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            let imports = asset.text.lines().filter(|line| line.starts_with("import "));
            for line in imports {
                assert!(named(line).is_subset(&there) && !named(line).is_empty(), "{}: {line}", asset.name);
            }
        }
    }

    #[test]
    fn no_shown_text_is_parsed_as_markup_or_written_into_the_page_source() {
        let writers = [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "srcdoc",
            "eval(",
            "new Function",
            "javascript:",
            "http://",
            "https://",
        ];
        for asset in ASSETS.iter().chain(&[Asset { name: "index.html", text: INDEX }]) {
            // The name of an XML namespace, which browsers do not fetch.
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            let found: Vec<_> = writers.iter().filter(|writer| text.contains(*writer)).collect();
            assert!(found.is_empty(), "{}: {found:?}", asset.name);
        }
        let index = INDEX;
        assert!(!index.contains("<style") && !index.contains(" style=") && !index.contains(" onclick"), "inline");
        assert_eq!(index.matches("<script").count(), index.matches("<script type=\"module\" src=\"/assets/").count());
    }

    #[test]
    fn the_page_names_the_reason_of_an_end_as_the_terminal_does() {
        let words = ASSETS.iter().find(|asset| asset.name == "words.js").unwrap().text;
        for reason in Reason::ALL {
            let row = format!("\n  {}: \"{}\",\n", reason.row().word, reason.label());
            assert!(words.contains(&row), "{row}");
        }
    }

    #[test]
    fn files_of_the_page_open_with_a_promise_and_are_short() {
        for asset in ASSETS.iter().filter(|asset| !asset.name.ends_with(".svg")) {
            assert!(asset.text.starts_with("// ") || asset.text.starts_with("/* "), "{}", asset.name);
            let (lines, widest) = (asset.text.lines().count(), asset.text.lines().map(str::len).max());
            assert!(lines <= 250 && widest <= Some(160), "{}: {lines} lines, up to {widest:?} wide", asset.name);
        }
    }

    #[tokio::test]
    async fn what_the_asker_has_is_not_sent_again_and_files_of_another_edition_are_not_given() {
        let mut headers = HeaderMap::new();
        let first = index(headers.clone()).await;
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        for (known, status) in
            [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("\"x\"".into(), 200), (String::new(), 200)]
        {
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(&known).unwrap());
            assert_eq!(index(headers.clone()).await.status().as_u16(), status, "{known}");
        }
        let given = async |edition: &str, name: &str| asset(Path((edition.into(), name.into()))).await.is_ok();
        assert!(given(edition(), "main.js").await);
        assert!(!given("another", "main.js").await && !given(edition(), "../mod.rs").await);
    }
}
