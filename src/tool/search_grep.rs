//! `search-grep`: finds lines that match a regular expression.

use super::tool_context::ToolContext;
use super::walk::{FileWalk, unread_note};
use super::{Call, LOOKS, Run, Tool, ToolError, bound};
use crate::chat::ToolOutcome;
use crate::pattern::{self, PatternError, Patterns};
use crate::workspace::jail::{FinalLink, JailError, LocatedPath};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use tokio_util::sync::CancellationToken;

/// The default and the maximum number of matching lines.
const MAX_MATCHES: (usize, usize) = (200, 2000);
/// The maximum number of context lines before and after a match.
const MAX_CONTEXT: usize = 20;
/// The maximum number of bytes shown of one line.
const MAX_LINE: usize = 400;
/// The maximum memory for one line while searching, in bytes. A file with a longer line is skipped.
const MAX_HEAP: usize = 8 * 1024 * 1024;

/// The maximum size of the result, in bytes. With long paths and much context, the number of
/// matches does not limit the size.
const MAX_LINES: usize = 2 * 1024 * 1024;

pub(super) const TOOL: Tool = Tool {
    name: "search-grep",
    description: "Search files by regex, below `path`. Gives path:line:text. Ignored, hidden and binary files are left out.",
    flags: LOOKS,
    schema,
    run: Run::Files(run),
};

fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["pattern"], "properties": {
        "pattern": {"type": "string"},
        "path": {"type": "string"},
        "glob": {"type": "string", "description": "only files that fit"},
        "context": {"type": "integer", "minimum": 0, "description": "lines around"},
        "ignore_case": {"type": "boolean"},
        "max": {"type": "integer", "minimum": 1, "description": "matches"}
    }})
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    context: Option<usize>,
    #[serde(default)]
    ignore_case: bool,
    max: Option<NonZeroUsize>,
}

fn run(tool_context: &ToolContext, call: &Call) -> Result<ToolOutcome, ToolError> {
    let arguments: Arguments = call.arguments()?;
    let globs = arguments.glob.as_deref().map(Patterns::files).transpose()?;
    let mut search = Search::new(&arguments, &call.stop)?;
    let path = tool_context.jail.path(arguments.path.as_deref().unwrap_or("."))?;
    let unread = match tool_context.jail.find(&path, FinalLink::Follow)? {
        LocatedPath::Place(place) => {
            let searched = search.file(place.real().as_str(), place.open()?);
            if call.stop.is_cancelled() {
                return Err(ToolError::Stopped);
            }
            searched.map_err(|source| JailError::Io { path: place.real().clone(), source })?;
            0
        }
        LocatedPath::Folder(folder, at) => {
            let below = if at.as_str().is_empty() { 0 } else { at.as_str().len() + 1 };
            let hidden = arguments.glob.as_deref().is_some_and(pattern::names_hidden);
            let walk = FileWalk { jail: &tool_context.jail, hidden, stop: &call.stop };
            walk.files(&folder, &at, &mut |path, folder, name| {
                let fits = |globs: &Patterns| path.get(below..).is_some_and(|path| globs.fit(path));
                if globs.as_ref().is_none_or(fits) {
                    let searched = folder.file(name).and_then(|file| search.file(path, file));
                    search.unsearched += usize::from(searched.is_err());
                }
                if search.is_full() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?
        }
    };
    Ok(ToolOutcome::ok(search.report() + &unread_note(unread)))
}

/// A search over any number of files.
struct Search<'s> {
    matcher: RegexMatcher,
    searcher: Searcher,
    stop: &'s CancellationToken,
    context: usize,
    max: usize,
    lines: String,
    matches: usize,
    /// The number of files that could not be searched.
    unsearched: usize,
}

impl<'s> Search<'s> {
    fn new(arguments: &Arguments, stop: &'s CancellationToken) -> Result<Self, ToolError> {
        let matcher = matcher(&arguments.pattern, arguments.ignore_case)?;
        let context = arguments.context.unwrap_or(0).min(MAX_CONTEXT);
        let searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_HEAP))
            .build();
        let max = arguments.max.map_or(MAX_MATCHES.0, |max| max.get().min(MAX_MATCHES.1));
        Ok(Self { matcher, searcher, stop, context, max, lines: String::new(), matches: 0, unsearched: 0 })
    }

    fn file(&mut self, path: &str, file: File) -> io::Result<()> {
        let start = (self.lines.len(), self.matches);
        let mut sink = Lines {
            path,
            start,
            context: self.context,
            max: self.max,
            lines: &mut self.lines,
            matches: &mut self.matches,
        };
        self.searcher.search_reader(&self.matcher, Stoppable { file, stop: self.stop }, &mut sink)
    }

    fn is_full(&self) -> bool {
        self.matches >= self.max || self.lines.len() >= MAX_LINES
    }

    fn report(self) -> String {
        let full = self.is_full();
        let mut report = self.lines;
        if self.matches == 0 {
            report.push_str("no matches\n");
        }
        if full {
            report.push_str(&format!("[stopped at {} matches: narrow the search or raise `max`]\n", self.matches));
        }
        if self.unsearched > 0 {
            report.push_str(&format!("[{} files could not be searched]\n", self.unsearched));
        }
        report
    }
}

/// Compiles a regular expression that is matched line by line.
///
/// # Errors
/// [`ToolError::Pattern`] if the expression is invalid.
pub(super) fn matcher(pattern: &str, ignore_case: bool) -> Result<RegexMatcher, ToolError> {
    let matcher = RegexMatcherBuilder::new().case_insensitive(ignore_case).line_terminator(Some(b'\n')).build(pattern);
    Ok(matcher.map_err(|error| PatternError { pattern: pattern.into(), problem: error.to_string() })?)
}

/// A sink that collects the lines of one file.
struct Lines<'l> {
    path: &'l str,
    /// The number of bytes and the number of matches before this file.
    start: (usize, usize),
    context: usize,
    max: usize,
    lines: &'l mut String,
    matches: &'l mut usize,
}

impl Lines<'_> {
    fn push(&mut self, mark: char, number: Option<u64>, bytes: &[u8]) {
        if self.context > 0 && self.lines.len() == self.start.0 && self.start.0 > 0 {
            self.lines.push_str("--\n");
        }
        let text = String::from_utf8_lossy(bytes);
        let text = bound::line(text.trim_end_matches(['\r', '\n']), MAX_LINE);
        self.lines.push_str(&format!("{}{mark}{}{mark}{text}\n", self.path, number.unwrap_or(0)));
    }
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if *self.matches >= self.max {
            return Ok(false); // only context was still missing
        }
        self.push(':', found.line_number(), found.bytes());
        *self.matches += 1;
        Ok((*self.matches < self.max || self.context > 0) && self.lines.len() < MAX_LINES)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.push('-', around.line_number(), around.bytes());
        Ok(self.lines.len() < MAX_LINES)
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.lines.push_str("--\n");
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        if end.binary_byte_offset().is_some() {
            self.lines.truncate(self.start.0);
            *self.matches = self.start.1;
        }
        Ok(())
    }
}

/// A file whose reads fail when the run is cancelled: one file may be too large to wait for.
struct Stoppable<'s> {
    file: File,
    stop: &'s CancellationToken,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the run was cancelled"));
        }
        self.file.read(buffer)
    }
}
