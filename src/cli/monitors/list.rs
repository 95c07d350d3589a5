//! `fledge monitors list` and `show`. The history of a monitor is a strip of signs, with the newest
//! at the end.

use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::steps::StyledLine;
use super::{MONITORS_SCHEMA_VERSION, MonitorsContext};
use crate::duration::show_duration;
use crate::report::ago;
use crate::scheduler::{CheckInData, MonitorData, STRIP};
use crate::store::{CheckInRow, MonitorRow};
use serde_json::json;
use std::time::Duration;

/// The maximum number of check-ins shown one by one.
const TOLD: usize = 10;

/// Lists the monitors; returns the exit code.
pub(super) fn list(place: &MonitorsContext) -> Result<u8, CliError> {
    let mut all = Vec::new();
    if let Some(store) = place.existing()? {
        for row in store.monitors().map_err(CliError::own)? {
            let data = MonitorData::from_row(&store, &row, STRIP, place.now).map_err(CliError::own)?;
            all.push((row, data));
        }
    }
    if place.json {
        let monitors: Vec<MonitorData> = all.into_iter().map(|(_, data)| data).collect();
        let all = json!({ "schema_version": MONITORS_SCHEMA_VERSION, "monitors": monitors });
        return print_json(&all.to_string()).map_err(no_output).map(|()| 0);
    }
    if all.is_empty() {
        paint::line(&[(Tone::Plain, format!("no monitors in {}", place.project.display()))]);
        return Ok(0);
    }
    let lines: Vec<StyledLine> = all.iter().flat_map(|(row, data)| head(place, row, data)).collect();
    print_data(&paint::page(&lines)).map_err(no_output)?;
    Ok(0)
}

/// Shows a monitor; returns the exit code.
pub(super) fn show(place: &MonitorsContext, slug: &str) -> Result<u8, CliError> {
    let (store, row) = place.find(slug)?;
    let data = MonitorData::from_row(&store, &row, STRIP, place.now).map_err(CliError::own)?;
    if place.json {
        let all = json!({ "schema_version": MONITORS_SCHEMA_VERSION, "monitor": data });
        return print_json(&all.to_string()).map_err(no_output).map(|()| 0);
    }
    let mut lines = head(place, &row, &data);
    let length = |ms: i64| show_duration(Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
    let most = row.max_runtime_ms.map(|ms| format!(", runtime at most {}", length(ms))).unwrap_or_default();
    lines.push(vec![(Tone::Faint, format!("  margin {}{most}", length(row.margin_ms)))]);
    lines.extend(data.next_expected_at.as_ref().map(|next| vec![(Tone::Faint, format!("  expected {next}"))]));
    let gone =
        if data.task_gone { ", whose file is missing: no check-ins are expected until it exists again" } else { "" };
    let whose = data.task.as_ref().map(|task| format!("of the scheduled task {task}{gone}"));
    let tells = data.on_change.map(|how| format!("changes of health are sent to a {how}"));
    lines.extend(
        [whose, tells].into_iter().flatten().map(|says| vec![(Tone::Faint, format!("  {}", paint::one_line(&says)))]),
    );
    let heard = store.check_ins(&row.slug, u32::MAX).map_err(CliError::own)?;
    lines.extend(together(heard).iter().take(TOLD).map(|one| check_in_line(&CheckInData::from_row(one))));
    print_data(&paint::page(&lines)).map_err(no_output)?;
    Ok(0)
}

/// Combines consecutive missed check-ins into the newest of them.
fn together(heard: Vec<CheckInRow>) -> Vec<CheckInRow> {
    let mut all: Vec<CheckInRow> = Vec::new();
    for one in heard {
        match all.last_mut() {
            Some(last) if last.status == "missed" && one.status == "missed" => last.count += one.count,
            Some(_) | None => all.push(one),
        }
    }
    all
}

fn head(place: &MonitorsContext, row: &MonitorRow, data: &MonitorData) -> Vec<StyledLine> {
    let tone = match data.health.as_str() {
        "healthy" => Tone::Good,
        "late" => Tone::Warn,
        _ => Tone::Bad,
    };
    let zone = if data.zone == "UTC" { String::new() } else { format!(" {}", data.zone) };
    let name = if data.name == data.slug { String::new() } else { format!("  {}", paint::one_line(&data.name)) };
    let first = vec![
        (Tone::Strong, data.slug.clone()),
        (tone, format!("  {}", data.health)),
        (Tone::Faint, format!(" since {}", ago(place.now.as_millisecond(), row.since_ms))),
        (Tone::Plain, format!("  {}{zone}", data.schedule)),
        (Tone::Faint, format!("{name}{}", if data.task_gone { "  its task is gone" } else { "" })),
    ];
    let strip: StyledLine = data.strip.iter().rev().map(|one| (tone_of(one), sign(one).to_owned())).collect();
    let strip = [vec![(Tone::Plain, "  ".to_owned())], strip].concat();
    if data.strip.is_empty() { vec![first] } else { vec![first, strip] }
}

fn check_in_line(one: &CheckInData) -> StyledLine {
    let took = one
        .duration_ms
        .and_then(|ms| u64::try_from(ms).ok())
        .map(|ms| format!("  {}", show_duration(Duration::from_millis(ms))));
    let many = if one.count > 1 { format!("  and {} before it", one.count - 1) } else { String::new() };
    vec![
        (tone_of(one), format!("  {} ", sign(one))),
        (Tone::Plain, one.at.clone()),
        (tone_of(one), format!("  {:<11}  ", one.status)),
        (Tone::Faint, format!("{}{}{many}", one.source, took.unwrap_or_default())),
    ]
}

fn sign(one: &CheckInData) -> &'static str {
    match one.status.as_str() {
        "ok" => "✓",
        "error" => "✗",
        "missed" => "·",
        "timeout" => "t",
        _ => "…",
    }
}

fn tone_of(one: &CheckInData) -> Tone {
    match one.status.as_str() {
        "ok" => Tone::Good,
        "error" | "timeout" => Tone::Bad,
        "missed" => Tone::Warn,
        _ => Tone::Plain,
    }
}
