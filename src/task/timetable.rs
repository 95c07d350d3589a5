//! The schedule of a recurring task, which a server runs for its project.

use super::TaskError;
use crate::schedule::Schedule;
use crate::yaml::{FilePlace, MarkdownDocument, Problem, Problems, TableReader, YamlNode, YamlValue, document};
use std::time::Duration;

/// The longest margin of a monitor, and the longest run that it may expect.
const LONGEST_MARGIN: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_RUN: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// The longest jitter.
const LONGEST_JITTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The schedule of a task and the terms of its monitor.
#[derive(Debug, Clone, PartialEq)]
pub struct Timetable {
    /// The schedule.
    pub schedule: Schedule,
    /// The maximum delay of a start, which spreads tasks with the same schedule.
    pub jitter: Duration,
    /// The terms of the task's monitor. `None` if the task has no monitor.
    pub monitor: Option<MonitorTerms>,
}

/// The expectations of a task's monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MonitorTerms {
    /// The allowed delay of a start. `None`: the default.
    pub margin: Option<Duration>,
    /// The longest allowed run. `None`: no limit.
    pub max_runtime: Option<Duration>,
}

/// Returns the timetable of a task; `None` if the task has none.
///
/// # Errors
/// [`TaskError`] if the front matter or its timetable is invalid. [`super::parse`] reports other
/// problems.
pub fn timetable(text: &str, source: &str) -> Result<Option<Timetable>, TaskError> {
    let fault = |problems: Problems| TaskError { file: source.into(), problems: problems.seen_in(text) };
    let MarkdownDocument { front, .. } = document(text).map_err(|problem| fault(problem.into()))?;
    let Some(YamlNode { value: YamlValue::Map(entries), .. }) = front else { return Ok(None) };
    let mut problems = Problems::default();
    let node = entries.iter().find(|(key, _)| key.text == "schedule").map(|(_, node)| node);
    let found = node.and_then(|node| read(node, &mut problems));
    if problems.is_empty() { Ok(found) } else { Err(fault(problems)) }
}

/// Reads `schedule` and reports all problems.
pub(super) fn read(node: &YamlNode, problems: &mut Problems) -> Option<Timetable> {
    let usual = |schedule| Timetable { schedule, jitter: Duration::ZERO, monitor: Some(MonitorTerms::default()) };
    match &node.value {
        YamlValue::Text(text) => schedule(text, None, node.place, problems).map(usual),
        YamlValue::Map(_) => read_map(node, problems),
        YamlValue::Null
        | YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float(_)
        | YamlValue::List(_)
        | YamlValue::Other(_) => {
            let wrong = format!("expected `schedule` to be a cron expression or a map, found {}", node.describe());
            problems.push(Problem::at(node.place, wrong).hint("write `schedule: \"0 3 * * *\"`"));
            None
        }
    }
}

fn read_map(node: &YamlNode, problems: &mut Problems) -> Option<Timetable> {
    let before = problems.len();
    let mut table = TableReader::open(node, "`schedule`", problems)?;
    let (cron, every) = (table.text("cron", problems), table.duration("every", problems));
    let zone = table.text("zone", problems);
    let place = |key: &str| table.place_of(key).unwrap_or(node.place);
    let (cron_at, every_at) = (table.place_of("cron"), table.place_of("every"));
    let schedule = match (cron, every, cron_at.is_some() && every_at.is_some()) {
        (_, _, true) => {
            let both = Problem::at(place("every"), "`schedule` has both `cron` and `every`");
            problems.push(both.hint("remove one of the two"));
            None
        }
        (Some(cron), _, _) => schedule(cron, zone, place("cron"), problems),
        (None, Some(_), _) if zone.is_some() => {
            let unused = Problem::at(place("zone"), "`zone` needs `cron`: an interval is the same in every time zone");
            problems.push(unused.hint("remove `zone`"));
            None
        }
        (None, Some(every), _) => checked_schedule(Schedule::every(every), place("every"), problems),
        (None, None, _) => {
            if cron_at.is_none() && every_at.is_none() {
                let none = Problem::at(node.place, "`schedule` has neither `cron` nor `every`");
                problems.push(none.hint("write `cron: \"0 3 * * *\"`, or `every: 30m`"));
            }
            None
        }
    };
    let jitter = bounded(&mut table, "jitter", LONGEST_JITTER, problems).unwrap_or_default();
    let monitor = match table.take("monitor") {
        Some(YamlNode { value: YamlValue::Bool(false), .. }) => None,
        None => Some(MonitorTerms::default()),
        Some(node) => {
            let mut terms = TableReader::open(node, "`monitor`", problems)?;
            let margin = bounded(&mut terms, "margin", LONGEST_MARGIN, problems);
            let max_runtime = bounded(&mut terms, "max_runtime", LONGEST_RUN, problems);
            terms.finish(problems);
            Some(MonitorTerms { margin, max_runtime })
        }
    };
    table.finish(problems);
    (problems.len() == before).then_some(schedule).flatten().map(|schedule| Timetable { schedule, jitter, monitor })
}

fn bounded(table: &mut TableReader<'_>, key: &str, most: Duration, problems: &mut Problems) -> Option<Duration> {
    let place = table.place_of(key);
    let found = table.duration(key, problems)?;
    if found <= most && found >= Duration::from_secs(1) {
        return Some(found);
    }
    let shown = crate::duration::show_duration(most);
    let wrong = Problem::at(place.unwrap_or(table.place), format!("`{key}` must be from `1s` to `{shown}`"));
    problems.push(wrong.hint("write a duration in that range"));
    None
}

fn schedule(text: &str, zone: Option<&str>, place: FilePlace, problems: &mut Problems) -> Option<Schedule> {
    checked_schedule(Schedule::parse(text, zone), place, problems)
}

fn checked_schedule(
    read: Result<Schedule, crate::schedule::ScheduleError>,
    place: FilePlace,
    problems: &mut Problems,
) -> Option<Schedule> {
    read.map_err(|fault| problems.push(Problem::at(place, format!("`schedule`: {fault}")).hint(fault.hint()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(front: &str) -> Result<Option<Timetable>, String> {
        timetable(&format!("---\n{front}\n---\ndo it"), "tasks/t.md").map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_task_says_when_it_comes_again_in_a_word_or_in_full() {
        assert_eq!(of("title: x"), Ok(None));
        let daily = of("schedule: \"0 3 * * *\"").unwrap().unwrap();
        assert_eq!(
            (daily.schedule.to_string(), daily.jitter, daily.monitor),
            ("0 3 * * *".into(), Duration::ZERO, Some(MonitorTerms::default()))
        );
        assert_eq!(of("schedule: every 30m").unwrap().unwrap().schedule.to_string(), "every 30m");
        let full = of(
            "schedule: { cron: \"@daily\", zone: Europe/Berlin, jitter: 10m, monitor: { margin: 15m, max_runtime: 2h } }",
        );
        let terms =
            MonitorTerms { margin: Some(Duration::from_secs(900)), max_runtime: Some(Duration::from_secs(7200)) };
        let full = full.unwrap().unwrap();
        assert_eq!(
            (full.schedule.to_string(), full.jitter, full.monitor),
            ("@daily Europe/Berlin".into(), Duration::from_secs(600), Some(terms))
        );
        assert_eq!(of("schedule: { every: 6h, monitor: false }").unwrap().unwrap().monitor, None);
    }

    #[test]
    fn what_is_wrong_with_a_timetable_is_said_where_it_stands() {
        let all = [
            "schedule: 5",
            "schedule: []",
            "schedule: {}",
            "schedule: { cron: \"* * *\" }",
            "schedule: { cron: \"@daily\", every: 1h }",
            "schedule: { every: 1h, zone: Europe/Berlin }",
            "schedule: { cron: \"@daily\", zone: Berlin }",
            "schedule: { every: 10 }",
            "schedule: { every: 10ms }",
            "schedule: { every: 1h, jitter: 2d }",
            "schedule: { every: 1h, monitor: true }",
            "schedule: { every: 1h, monitor: { margin: 3d, most: 1 } }",
            "schedule: { at: noon }",
        ];
        insta::assert_snapshot!(all.map(|front| format!("{front}\n{}", of(front).unwrap_err())).join("\n\n"));
    }
}
