//! What people see: a page of plain modules that are part of the program, without a build step and without anything from elsewhere. It asks
//! the API as every other program does, and shows what comes as text alone.

use super::House;
use super::http::{Operation, Problem};
use crate::store::sha256;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::sync::{Arc, OnceLock};

/// A file of the page.
struct Asset {
    name: &'static str,
    text: &'static str,
    tag: OnceLock<String>,
}

/// Files of the page, by their names.
macro_rules! assets {
    ($($name:literal)*) => {
        [$(Asset { name: $name, text: include_str!(concat!("assets/", $name)), tag: OnceLock::new() }),*]
    };
}

static INDEX: [Asset; 1] = assets!["index.html"];
static ASSETS: [Asset; 23] = assets![
    "api.js" "begin.js" "bell.js" "blocks.js" "chart.js" "diff.js" "dom.js" "fold.js" "icon.svg" "jobs.js" "main.js" "monitors.js"
    "page.css" "parts.css" "questions.js" "run.js" "runs.js" "scenes.js" "story.css" "story.js" "stream.js" "waiting.js" "words.js"
];

/// What is answered here.
pub(in crate::serve) fn routes() -> Router<Arc<House>> {
    Router::new().route("/", get(index)).route("/assets/{name}", get(asset))
}

/// The same, described.
pub(in crate::serve) fn operations() -> Vec<Operation> {
    vec![
        Operation::get("/", "The page, for browsers").sends(200, "The page", "text/html"),
        Operation::get("/assets/{name}", "A file of the page")
            .sends(200, "The file", "text/javascript")
            .nothing(304, "It is the one that the asker has")
            .refuses(404, "There is none of that name"),
    ]
}

async fn index(headers: HeaderMap) -> Response {
    INDEX[0].answer(&headers)
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, Problem> {
    let asset = ASSETS.iter().find(|asset| asset.name == name);
    asset.map(|asset| asset.answer(&headers)).ok_or_else(|| Problem::not_found("the page has no file of that name"))
}

impl Asset {
    /// The file, or that the asker has it. It is asked for each time, so that a page is never made of the files of two programs.
    fn answer(&self, asked: &HeaderMap) -> Response {
        let tag = self.tag.get_or_init(|| format!("\"{}\"", &sha256(self.text.as_bytes())[..32]));
        let head = [(header::ETAG, tag.as_str()), (header::CACHE_CONTROL, "no-cache")];
        let known = asked.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok()).unwrap_or_default();
        if known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag) {
            return (StatusCode::NOT_MODIFIED, head).into_response();
        }
        (head, [(header::CONTENT_TYPE, self.media())], self.text).into_response()
    }

    fn media(&self) -> &'static str {
        match self.name.rsplit('.').next() {
            Some("css") => "text/css; charset=utf-8",
            Some("js") => "text/javascript; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use std::collections::BTreeSet;

    /// Every `"./x"` and `"/assets/x"` of a file.
    fn named(text: &str) -> BTreeSet<&str> {
        let quoted = text.split('"').skip(1).step_by(2);
        quoted.filter_map(|text| text.strip_prefix("./").or_else(|| text.strip_prefix("/assets/"))).collect()
    }

    #[test]
    fn every_file_of_the_page_is_named_in_it_and_what_is_named_is_there() {
        let there: BTreeSet<&str> = ASSETS.iter().map(|asset| asset.name).collect();
        assert_eq!(named(INDEX[0].text), there);
        for asset in ASSETS.iter().filter(|asset| asset.name.ends_with(".js")) {
            let imports = asset.text.lines().filter(|line| line.starts_with("import "));
            for line in imports {
                assert!(named(line).is_subset(&there) && !named(line).is_empty(), "{}: {line}", asset.name);
            }
        }
    }

    #[test]
    fn nothing_that_is_shown_is_read_as_markup_and_nothing_is_written_into_the_page_itself() {
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
        for asset in ASSETS.iter().chain(&INDEX) {
            // The name of a namespace, which nobody asks for.
            let text = asset.text.replace("http://www.w3.org/2000/svg", "");
            let found: Vec<_> = writers.iter().filter(|writer| text.contains(*writer)).collect();
            assert!(found.is_empty(), "{}: {found:?}", asset.name);
        }
        let index = INDEX[0].text;
        assert!(!index.contains("<style") && !index.contains(" style=") && !index.contains(" onclick"), "inline");
        assert_eq!(index.matches("<script").count(), index.matches("<script type=\"module\" src=\"/assets/").count());
    }

    #[test]
    fn files_of_the_page_open_with_a_promise_and_are_short() {
        for asset in ASSETS.iter().filter(|asset| !asset.name.ends_with(".svg")) {
            assert!(asset.text.starts_with("// ") || asset.text.starts_with("/* "), "{}", asset.name);
            let (lines, widest) = (asset.text.lines().count(), asset.text.lines().map(str::len).max());
            assert!(lines <= 250 && widest <= Some(160), "{}: {lines} lines, up to {widest:?} wide", asset.name);
        }
    }

    #[test]
    fn a_file_that_the_asker_has_is_not_sent_again() {
        let mut headers = HeaderMap::new();
        let first = INDEX[0].answer(&headers);
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[header::CONTENT_TYPE], "text/html; charset=utf-8");
        let tag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        for (known, status) in
            [(tag.clone(), 304), (format!("\"x\", W/{tag}"), 304), ("\"x\"".into(), 200), (String::new(), 200)]
        {
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_str(&known).unwrap());
            assert_eq!(INDEX[0].answer(&headers).status().as_u16(), status, "{known}");
        }
    }
}
