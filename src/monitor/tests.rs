//! Tests of met and missed moments, also with a clock that jumps.

use super::*;
use crate::schedule::Schedule;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn at(text: &str) -> Timestamp {
    format!("2026-03-01T{text}Z").parse().unwrap()
}

fn hourly() -> Monitor {
    let schedule = Schedule::cron("0 * * * *", None).unwrap();
    let (margin, max_runtime) = (Duration::from_secs(600), Some(Duration::from_secs(1800)));
    Monitor { slug: Slug::parse("backup").unwrap(), schedule, margin, max_runtime }
}

fn standing() -> MonitorHealth {
    MonitorHealth::new(at("00:30:00"))
}

#[test]
fn what_does_not_come_is_late_at_half_of_its_margin_and_missed_after_it() {
    let (monitor, seen) = (hourly(), MonitorHistory::default());
    let look = |now: &str| judge(&monitor, standing(), &seen, at(now));
    let health = |now: &str| look(now).standing.health;
    assert_eq!(
        [health("00:59:59"), health("01:05:00"), health("01:05:01")],
        [Health::Healthy, Health::Healthy, Health::Late]
    );
    assert_eq!(look("01:05:01").next, Some(at("01:00:00")));
    assert_eq!(look("01:09:59").missed, []);
    let judged = look("01:10:00");
    assert_eq!(judged.missed, [MissedMoments { due: at("01:00:00"), at: at("01:10:00"), count: 1 }]);
    let expected =
        MonitorHealth { base: Health::Missed, health: Health::Missed, since: at("01:10:00"), weighed: at("01:00:00") };
    assert_eq!((judged.standing, judged.next), (expected, Some(at("02:00:00"))));
    assert_eq!(judge(&monitor, judged.standing, &seen, at("01:11:00")).missed, [], "once");
}

#[test]
fn what_has_come_is_not_missed_and_what_takes_too_long_is_said_so() {
    let monitor = hourly();
    let seen = MonitorHistory { known: BTreeSet::from([at("01:00:00")]), open: vec![(7, at("01:02:00"))] };
    let judged = judge(&monitor, standing(), &seen, at("01:31:59"));
    assert_eq!((judged.missed, judged.timed_out, judged.standing.health), (vec![], vec![], Health::Healthy));
    let judged = judge(&monitor, standing(), &seen, at("01:40:00"));
    assert_eq!(judged.timed_out, [TimedOut { no: 7, at: at("01:32:00") }]);
    assert_eq!(judged.standing.health, Health::TimedOut);
}

#[test]
fn a_day_off_is_one_missed_check_in_for_each_moment_and_a_month_is_no_storm() {
    let (monitor, seen) = (hourly(), MonitorHistory::default());
    let day = judge(&monitor, standing(), &seen, "2026-03-02T00:30:00Z".parse().unwrap());
    assert_eq!((day.missed.len(), day.missed.iter().map(|one| one.count).sum::<u64>()), (24, 24));
    let month = judge(&monitor, standing(), &seen, "2026-03-31T00:30:00Z".parse().unwrap());
    assert_eq!((month.missed.len(), month.missed.iter().map(|one| one.count).sum::<u64>()), (NAMED_AND_ONE, 30 * 24));
    assert_eq!(month.missed[0].count, 30 * 24 - 50);
}

const NAMED_AND_ONE: usize = 51;

#[test]
fn what_came_before_the_last_look_hides_nothing_that_was_missed_since() {
    let monitor = hourly();
    let came: BTreeSet<Timestamp> =
        std::iter::successors(Some(at("00:00:00")), |due| monitor.schedule.previous(*due)).take(500).collect();
    let seen = MonitorHistory { known: came, open: Vec::new() };
    let month = judge(&monitor, standing(), &seen, "2026-03-31T00:30:00Z".parse().unwrap());
    assert_eq!(month.missed.iter().map(|one| one.count).sum::<u64>(), 30 * 24);
}

#[test]
fn a_clock_that_is_set_back_adds_no_check_in_and_drops_no_later_one() {
    let monitor = hourly();
    let ahead = judge(&monitor, standing(), &MonitorHistory::default(), at("05:30:00"));
    assert_eq!(ahead.missed.len(), 5);
    let seen = MonitorHistory { known: ahead.missed.iter().map(|one| one.due).collect(), open: Vec::new() };
    let back = judge(&monitor, ahead.standing, &seen, at("01:20:00"));
    assert_eq!((back.missed, back.standing.weighed), (vec![], at("01:20:00")));
    let again = judge(&monitor, back.standing, &seen, at("06:30:00"));
    assert_eq!(again.missed.iter().map(|one| one.due).collect::<Vec<_>>(), [at("06:00:00")]);
}

#[test]
fn a_check_in_meets_the_moment_that_it_is_near_and_never_two() {
    let monitor = hourly();
    let meets = |now: &str, met: &[&str]| {
        let met: Vec<Timestamp> = met.iter().map(|text| at(text)).collect();
        expected(&monitor, at(now), |due| met.contains(&due))
    };
    assert_eq!(meets("01:00:00", &[]), Some(at("01:00:00")));
    assert_eq!(meets("01:09:00", &[]), Some(at("01:00:00")));
    assert_eq!(meets("00:59:45", &[]), Some(at("01:00:00")), "its clock is ahead");
    assert_eq!(meets("00:59:00", &[]), None);
    assert_eq!(meets("01:10:01", &[]), None, "this check-in was missed");
    assert_eq!(meets("01:03:00", &["01:00:00"]), None, "another one by hand");
    let often = Monitor { schedule: Schedule::every(Duration::from_secs(20)).unwrap(), ..hourly() };
    assert_eq!(expected(&often, at("01:00:08"), |_| false), Some(at("01:00:00")));
    assert_eq!(expected(&often, at("01:00:12"), |_| false), Some(at("01:00:20")));
}

#[test]
fn health_is_what_was_heard_last() {
    use Health::{Failing, Healthy, Missed, TimedOut};
    let after = |health: Health| {
        [Status::InProgress, Status::Ok, Status::Error, Status::Missed, Status::Timeout]
            .map(|status| health.after(status))
    };
    assert_eq!(after(Healthy), [Healthy, Healthy, Failing, Missed, TimedOut]);
    assert_eq!(after(Missed), [Healthy, Healthy, Failing, Missed, TimedOut]);
    assert_eq!(after(Failing), [Failing, Healthy, Failing, Missed, TimedOut]);
    assert_eq!(after(TimedOut), [TimedOut, Healthy, Failing, Missed, TimedOut]);
}

#[test]
fn names_of_monitors_fit_into_addresses() {
    assert!(["backup", "a", "db-2_x"].iter().all(|text| Slug::parse(text).is_ok()));
    assert!(["", "Backup", "a b", "../x", "é", &"x".repeat(65)].iter().all(|text| Slug::parse(text).is_err()));
    let of = |path: &str| Slug::of_path(path).map(String::from);
    assert_eq!((of("nightly.md"), of("ci/Night ly.md")), (Ok("nightly".into()), Ok("ci-night-ly".into())));
    assert!(of("--.md").is_err());
}

proptest! {
    /// Every moment is evaluated once, however often and whenever the monitor is
    /// evaluated.
    #[test]
    fn every_moment_is_met_or_missed_once(
        looks in prop::collection::vec((0u64..150_000, any::<bool>()), 1..60),
        margin in 1u64..7200,
    ) {
        let monitor = Monitor { margin: Duration::from_secs(margin), max_runtime: None, ..hourly() };
        let start = at("00:30:00");
        let (mut standing, mut known, mut reported) = (MonitorHealth::new(start), BTreeSet::new(), 0);
        let mut latest = start;
        for (second, checks_in) in looks {
            let now = start + Duration::from_secs(second);
            latest = latest.max(now);
            if checks_in && let Some(due) = expected(&monitor, now, |due| known.contains(&due)) {
                known.insert(due);
                reported += u64::from(due > start);
            }
            let judged = judge(&monitor, standing, &MonitorHistory { known: known.clone(), open: Vec::new() }, now);
            for missed in &judged.missed {
                prop_assert!(known.insert(missed.due), "{} is missed and was known", missed.due);
                prop_assert!(missed.due + monitor.margin <= now);
                reported += missed.count;
            }
            standing = judged.standing;
        }
        // The last evaluation is late enough to cover every moment. Moments that share a check-in
        // are counted by its number.
        let end = latest + Duration::from_secs(2 * margin + 8000);
        let judged = judge(&monitor, standing, &MonitorHistory { known: known.clone(), open: Vec::new() }, end);
        reported += judged.missed.iter().map(|one| one.count).sum::<u64>();
        let due = monitor.schedule.due(start, end - monitor.margin, 1000).newest.len() as u64;
        prop_assert_eq!(reported, due);
    }
}
