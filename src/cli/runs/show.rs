//! `fledge runs show`: a run as a story, from its journal. Also shows a run under way or
//! interrupted.

use super::super::display;
use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::steps::StyledLine;
use super::export::pending_calls;
use super::scenes::{DetailLevel, quoted, scene_lines};
use super::{RunsContext, data, failed, story};
use crate::chat::ToolCall;
use crate::report::runs::{doing, story_as_json as as_json};
use crate::report::story::{RunStory, TimePart};
use crate::report::{SummaryFact, seconds};
use crate::store::{RunRow, StoredRunState};
use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge runs show\n  fledge runs show last-failed --full")]
pub(in crate::cli) struct ShowRunArguments {
    /// Run: the start of its id, its run key, `last`, or `last-failed`
    #[arg(value_name = "RUN", default_value = "last")]
    run: String,
    /// Print JSON to standard output, always in full
    #[arg(long)]
    json: bool,
    /// Show all texts in full, without cuts
    #[arg(long)]
    full: bool,
}

/// The longest bar of the times, in columns.
const BAR: usize = 60;

/// Shows a run; returns the exit code. If the journal is damaged, shows what precedes the damage.
pub(super) fn show(shelf: &RunsContext, arguments: &ShowRunArguments) -> Result<u8, CliError> {
    let (store, row) = shelf.find(&arguments.run)?;
    let row = row.seen_at(shelf.now_ms);
    let (story, failure) = story(&store, &row);
    if arguments.json {
        failure.map_or(Ok(()), Err)?;
        let short = store.short(&row.head.id).map_err(failed)?;
        print_json(&as_json(&row, &short, &story).to_string()).map_err(no_output)?;
        return Ok(0);
    }
    let scale = DetailLevel { is_full: arguments.full, width: width() };
    let mut lines = opening(&row, shelf.now_ms);
    lines.extend(story.scenes.iter().flat_map(|scene| scene_lines(scene, &scale)));
    if failure.is_none() {
        lines.extend(ending(&row, &story, &scale, shelf.now_ms));
    }
    print_data(&paint::page(&lines)).map_err(no_output)?;
    failure.map_or(Ok(0), Err)
}

/// Returns the width of the terminal on standard output, if it is one.
pub(super) fn width() -> Option<usize> {
    paint::columns(&std::io::stdout()).map(|columns| columns.max(40))
}

/// Returns the lines that need no journal.
fn opening(row: &RunRow, now_ms: i64) -> Vec<StyledLine> {
    let head = &row.head;
    let outcome = format!("  {}", paint::one_line(data::outcome(row)));
    let key = head.run_key.as_ref().map(|key| format!(" (key {key})")).unwrap_or_default();
    let parent = head.parent.as_ref().map(|parent| format!(", continues {parent}")).unwrap_or_default();
    let mut lines = vec![vec![(Tone::Strong, paint::one_line(&head.title)), (data::tone(row), outcome)]];
    let began = format!("{}, {}", data::rfc3339(head.started_at_ms), data::ago(now_ms, head.started_at_ms));
    let facts = [
        ("run", format!("{}{key}{parent}", head.id)),
        ("task", head.source.clone()),
        ("folder", head.workspace.clone()),
        ("models", head.models.join(", ")),
        ("began", format!("{began}, by fledge {}", head.fledge)),
    ];
    lines.extend(facts.map(|(about, says)| display::fact(&SummaryFact { about, says })));
    lines
}

/// Returns the last activity of the run, and the calls without a result.
fn busy(story: &RunStory) -> String {
    let calls = pending_calls(story);
    let named = |call: &ToolCall| {
        let gist = display::gist_of_args(&call.input.to_value());
        paint::one_line(format!("{} {gist}", call.name).trim_end())
    };
    let calls: Vec<String> = calls.iter().map(named).collect();
    if calls.is_empty() { doing(story) } else { format!("{} ({})", doing(story), calls.join("; ")) }
}

/// Returns the lines about the end or the current activity, and the times.
fn ending(row: &RunRow, story: &RunStory, scale: &DetailLevel, now_ms: i64) -> Vec<StyledLine> {
    let mut lines = Vec::new();
    match (story.run.result(), &row.state) {
        (Some(result), StoredRunState::Ended(_)) => {
            let mut closing = display::closing(&result, false, None);
            if let Some(first) = closing.first_mut() {
                first.insert(0, (Tone::Strong, "● ".into()));
            }
            lines.append(&mut closing);
            let summary = result.summary.trim();
            if scale.is_full && !summary.is_empty() {
                lines.push(vec![(Tone::Faint, "  summary".into())]);
                lines.extend(quoted(summary, scale));
            }
        }
        (_, StoredRunState::Running { holder }) if row.is_lost => {
            let heard = row.heard_at_ms.map(|heard| data::ago(now_ms, heard)).unwrap_or_default();
            let what = format!("lost: {}; {} was last heard {heard}", busy(story), paint::one_line(holder));
            lines.push(vec![(Tone::Warn, format!("● {what}"))]);
        }
        (_, StoredRunState::Running { holder }) => {
            let what = format!("running: {}, driven by {}", busy(story), paint::one_line(holder));
            lines.push(vec![(Tone::Strong, format!("● {what}"))]);
        }
        (_, StoredRunState::Interrupted) => {
            let what = format!("interrupted: {}, {} after the start", busy(story), seconds(story.total_ms()));
            lines.push(vec![(Tone::Warn, format!("● {what}"))]);
        }
        (None, StoredRunState::Ended(end)) => {
            lines.push(vec![(Tone::Bad, format!("● {}: {}", data::outcome(row), paint::one_line(&end.summary)))]);
        }
    }
    lines.extend(activity_bar(story, scale));
    lines
}

/// Returns a bar of the activities from start to end, and the time of each activity.
fn activity_bar(story: &RunStory, scale: &DetailLevel) -> Vec<StyledLine> {
    let columns = scale.width.map_or(BAR, |width| width.saturating_sub(12).min(BAR));
    let bar = story.main_activities(columns as u64);
    if bar.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![vec![(Tone::Faint, "  course   ".to_owned())], vec![(Tone::Faint, " ".repeat(11))]];
    lines[0].extend(bar.iter().map(|part| (tone(*part), mark(*part).to_owned())));
    for part in TimePart::ALL.into_iter().filter(|part| story.spent_ms(*part) > 0) {
        let spent = format!(" {} {}   ", part.as_str(), seconds(story.spent_ms(part)));
        lines[1].extend([(tone(part), mark(part).to_owned()), (Tone::Plain, spent)]);
    }
    lines
}

fn mark(part: TimePart) -> &'static str {
    match part {
        TimePart::Model => "█",
        TimePart::Tools => "▓",
        TimePart::Gate => "▒",
        TimePart::Waiting => "░",
        TimePart::Other => "·",
    }
}

fn tone(part: TimePart) -> Tone {
    match part {
        TimePart::Model => Tone::Plain,
        TimePart::Tools => Tone::Warn,
        TimePart::Gate => Tone::Good,
        TimePart::Waiting => Tone::Bad,
        TimePart::Other => Tone::Faint,
    }
}
