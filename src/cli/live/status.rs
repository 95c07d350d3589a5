//! The status line of a run: attempt, turn, checks, tokens, cost, time, and the used part of the
//! budget.

use super::cells;
use crate::chat::Usage;
use crate::duration::milliseconds;
use crate::limits::Limits;
use crate::process::Stopwatch;

/// The parts of the status line.
#[derive(Debug, Clone)]
pub(in crate::cli) struct StatusLine {
    /// The current attempt and the maximum number of attempts; 0 before the first.
    pub(in crate::cli) attempt: (u32, u32),
    /// The turn of the model.
    pub(in crate::cli) turn: u64,
    /// Finished checks and all checks, while the gate runs.
    pub(in crate::cli) checks: Option<(usize, usize)>,
    pub(in crate::cli) usage: Usage,
    pub(in crate::cli) limits: Limits,
    /// The start of the clock.
    pub(in crate::cli) since: Stopwatch,
    /// Milliseconds that the run had taken before the clock started.
    pub(in crate::cli) before_ms: u64,
}

impl StatusLine {
    /// Returns as much of the status as fits into `room` columns. Always includes the time.
    pub(super) fn fitting(&self, room: usize) -> String {
        self.at(self.before_ms.saturating_add(milliseconds(self.since.read())), room)
    }

    fn at(&self, ms: u64, room: usize) -> String {
        let (attempt, attempts) = self.attempt;
        let Limits { turns, tokens, usd_micros, .. } = &self.limits;
        let about = if self.usage.estimated_tokens > 0 { "~" } else { "" };
        let of = |limit: Option<String>| limit.map(|limit| format!("/{limit}")).unwrap_or_default();
        let token = format!("{about}{}{}", short(self.usage.total()), of(tokens.map(short)));
        let cost = self.usage.cost_micros.filter(|micros| *micros > 0).or(usd_micros.map(|_| 0));
        let cost = cost.map(|micros| format!("{about}{}{}", dollars(micros), of(usd_micros.map(dollars))));
        let attempt = (attempt > 0).then(|| format!("{attempt}/{attempts}"));
        let turn = (self.turn > 0).then(|| format!("{}/{turns}", self.turn));
        let checks = self.checks.map(|(done, all)| format!("{done}/{all}"));
        // Each part with its words, and the rank in which parts are left out for lack of room.
        let parts = [
            (3, "attempt ", attempt, ""),
            (4, "turn ", turn, ""),
            (5, "checks ", checks, ""),
            (1, "", (self.usage.total() > 0).then_some(token), " tokens"),
            (2, "", cost, ""),
            (6, "", Some(clock(ms)), ""),
            (0, "", self.used(ms).filter(|percent| *percent > 0).map(|percent| format!("{percent}%")), " of budget"),
        ];
        let text = |with_words: bool, least: u32| {
            let one = |(rank, before, value, after): &(u32, &str, Option<String>, &str)| {
                let value = value.as_ref().filter(|_| *rank >= least)?;
                Some(if with_words { format!("{before}{value}{after}") } else { value.clone() })
            };
            parts.iter().filter_map(one).collect::<Vec<_>>().join(" · ")
        };
        let mut all = [text(true, 0), text(true, 1)].into_iter().chain((1..6).map(|least| text(false, least)));
        all.find(|text| cells(text) <= room).unwrap_or_else(|| clock(ms))
    }

    /// Returns the used part of the budget in percent, for the limit that is nearest to its end.
    fn used(&self, ms: u64) -> Option<u64> {
        let Limits { turns, tokens, usd_micros, time_ms, .. } = &self.limits;
        let share = |used: u64, limit: u64| used.saturating_mul(100).checked_div(limit);
        let all = [
            share(self.turn, *turns),
            tokens.and_then(|limit| share(self.usage.total(), limit)),
            usd_micros.and_then(|limit| share(self.usage.cost_micros.unwrap_or(0), limit)),
            share(ms, *time_ms),
        ];
        all.into_iter().flatten().max()
    }
}

/// Formats a number of tokens briefly: `950`, `1.2k`, `18k`, `1.2M`.
fn short(number: u64) -> String {
    let tenths = |unit: u64, name: &str| {
        let tenths = number / (unit / 10);
        if tenths < 100 { format!("{}.{}{name}", tenths / 10, tenths % 10) } else { format!("{}{name}", number / unit) }
    };
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => tenths(1_000, "k"),
        _ => tenths(1_000_000, "M"),
    }
}

/// Formats money to the cent.
fn dollars(micros: u64) -> String {
    match micros {
        1..10_000 => "<$0.01".to_owned(),
        _ => format!("${}.{:02}", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

/// Formats a time like a clock: `0:42`, `12:05`, `1:02:03`.
fn clock(ms: u64) -> String {
    let total = ms / 1000;
    let (hours, minutes, seconds) = (total / 3600, total % 3600 / 60, total % 60);
    if hours == 0 { format!("{minutes}:{seconds:02}") } else { format!("{hours}:{minutes:02}:{seconds:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> StatusLine {
        let usage = Usage { input_tokens: 17_000, output_tokens: 1_900, cost_micros: Some(31_000), ..Usage::default() };
        let limits = Limits { turns: 40, ..Limits::default() };
        StatusLine { attempt: (1, 4), turn: 5, checks: None, usage, limits, since: Stopwatch::start(), before_ms: 0 }
    }

    #[test]
    fn the_status_says_less_where_there_is_less_room() {
        let at = |room| status().at(42_000, room);
        assert_eq!(at(80), "attempt 1/4 · turn 5/40 · 18k tokens · $0.03 · 0:42 · 12% of budget");
        assert_eq!(at(60), "attempt 1/4 · turn 5/40 · 18k tokens · $0.03 · 0:42");
        assert_eq!(at(35), "1/4 · 5/40 · 18k · $0.03 · 0:42");
        assert_eq!(at(25), "1/4 · 5/40 · $0.03 · 0:42");
        assert_eq!([at(18), at(9), at(2)], ["1/4 · 5/40 · 0:42", "0:42", "0:42"]);
        assert!((0..100).all(|room| cells(&at(room)) <= room.max(4)));
    }

    #[test]
    fn limits_and_estimates_are_shown_beside_what_is_used() {
        let mut status = status();
        (status.limits.tokens, status.limits.usd_micros) = (Some(200_000), Some(1_000_000));
        (status.checks, status.usage.estimated_tokens) = (Some((2, 4)), 9);
        let all = status.at(3_723_000, 100);
        assert_eq!(
            all,
            "attempt 1/4 · turn 5/40 · checks 2/4 · ~18k/200k tokens · ~$0.03/$1.00 · 1:02:03 · 103% of budget"
        );
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([950, 1_250, 18_900, 999_999, 1_200_000].map(short), ["950", "1.2k", "18k", "999k", "1.2M"]);
        assert_eq!([0, 9_000, 1_239_999].map(dollars), ["$0.00", "<$0.01", "$1.23"]);
    }
}
