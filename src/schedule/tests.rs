//! Tests of schedules on ordinary days and on nights when clocks change, and properties of all
//! schedules.

use super::*;
use jiff::tz::TimeZone;
use proptest::prelude::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Returns the due moments of a period, as clocks of the time zone show them.
fn shown(text: &str, zone: &str, from: &str, to: &str) -> Vec<String> {
    let schedule = Schedule::cron(text, Some(zone)).unwrap();
    let due = schedule.due(at(from), at(to), 1000);
    assert_eq!(due.earlier, 0);
    let forward: Vec<Timestamp> = {
        let first = schedule.next(at(from));
        std::iter::successors(first, |last| schedule.next(*last)).take_while(|moment| *moment <= at(to)).collect()
    };
    assert_eq!(due.newest, forward, "{text} in {zone}: back and forth");
    let tz = TimeZone::get(zone).unwrap();
    due.newest.iter().map(|moment| moment.to_zoned(tz.clone()).strftime("%d %H:%M %:z").to_string()).collect()
}

#[test]
fn an_interval_counts_from_1970_so_that_all_machines_name_its_times_alike() {
    let half = Schedule::every(Duration::from_secs(1800)).unwrap();
    assert_eq!((half.text(), half.zone()), ("every 30m", "UTC"));
    assert_eq!(half.next(at("2026-03-01T10:07:03Z")), Some(at("2026-03-01T10:30:00Z")));
    assert_eq!(half.next(at("2026-03-01T10:30:00Z")), Some(at("2026-03-01T11:00:00Z")));
    assert_eq!(half.next(at("2026-03-01T10:29:59.999Z")), Some(at("2026-03-01T10:30:00Z")));
    assert_eq!(half.latest(at("2026-03-01T10:30:00Z")), Some(at("2026-03-01T10:30:00Z")));
    assert_eq!(half.previous(at("2026-03-01T10:30:00Z")), Some(at("2026-03-01T10:00:00Z")));
    assert_eq!(half.next(at("1969-12-31T23:59:59.5Z")), Some(at("1970-01-01T00:00:00Z")));
    assert_eq!(half.latest(at("1969-12-31T23:59:59.5Z")), Some(at("1969-12-31T23:30:00Z")));
    assert_eq!(half.next(Timestamp::MAX), None);
}

#[test]
fn a_time_that_the_clock_skips_is_due_once_right_after_the_gap() {
    let berlin = ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    let due = |text: &str| shown(text, "Europe/Berlin", berlin.0, berlin.1);
    assert_eq!(due("30 2 * * *"), ["29 03:00 +02:00", "30 02:30 +02:00"]);
    assert_eq!(due("0 3 * * *"), ["29 03:00 +02:00", "30 03:00 +02:00"]);
    assert_eq!(due("10,40 2 * * *"), ["29 03:00 +02:00", "30 02:10 +02:00", "30 02:40 +02:00"]);
    assert_eq!(
        due("0 2,14 * * *"),
        ["28 14:00 +01:00", "29 03:00 +02:00", "29 14:00 +02:00", "30 02:00 +02:00", "30 14:00 +02:00"]
    );
    let york = shown("30 2 * * *", "America/New_York", "2026-03-08T00:00:00Z", "2026-03-09T12:00:00Z");
    assert_eq!(york, ["08 03:00 -04:00", "09 02:30 -04:00"]);
    let howe = shown("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00Z", "2026-10-05T12:00:00Z");
    assert_eq!(howe, ["04 02:30 +11:00", "05 02:15 +11:00"]);
}

#[test]
fn a_time_that_comes_twice_is_due_once_the_first_time() {
    let berlin = shown("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    assert_eq!(berlin, ["25 02:30 +02:00", "26 02:30 +01:00"]);
    let twice = shown("0 2,14 * * *", "Europe/Berlin", "2026-10-24T12:30:00Z", "2026-10-25T14:00:00Z");
    assert_eq!(twice, ["25 02:00 +02:00", "25 14:00 +01:00"]);
    let york = shown("30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z");
    assert_eq!(york, ["01 01:30 -04:00", "02 01:30 -05:00"]);
    let howe = shown("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", "2026-04-06T00:00:00Z");
    assert_eq!(howe, ["05 01:45 +11:00", "06 01:45 +10:30"]);
}

#[test]
fn a_day_that_a_zone_has_left_out_is_due_at_its_end() {
    let apia = shown("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", "2011-12-31T18:00:00Z");
    assert_eq!(apia, ["29 09:00 -10:00", "31 00:00 +14:00", "31 09:00 +14:00"]);
}

#[test]
fn what_is_due_as_time_passes_is_due_in_both_hours_of_a_fold_and_never_in_a_gap() {
    let fold = shown("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z", "2026-10-25T02:00:00Z");
    let expected = ["25 02:00 +02:00", "25 02:30 +02:00", "25 02:00 +01:00", "25 02:30 +01:00", "25 03:00 +01:00"];
    assert_eq!(fold, expected);
    let gap = shown("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", "2026-03-29T01:30:00Z");
    assert_eq!(gap, ["29 01:30 +01:00", "29 03:00 +02:00", "29 03:30 +02:00"]);
}

#[test]
fn the_29th_of_february_is_due_every_fourth_year_and_what_no_year_has_is_refused() {
    let leap = Schedule::cron("0 0 29 2 *", None).unwrap();
    let years: Vec<String> = leap
        .due(at("2023-01-01T00:00:00Z"), at("2033-01-01T00:00:00Z"), 9)
        .newest
        .iter()
        .map(|at| at.to_string())
        .collect();
    assert_eq!(years, ["2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    assert_eq!(leap.next(at("2096-03-01T00:00:00Z")), Some(at("2104-02-29T00:00:00Z")), "2100 has none");
    for never in ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        assert_eq!(Schedule::cron(never, None), Err(ScheduleError::Never { text: never.into() }));
    }
}

#[test]
fn words_stand_for_expressions_and_names_of_zones_have_their_case_again() {
    let daily = Schedule::parse("@daily", Some("europe/berlin")).unwrap();
    assert_eq!(
        (daily.text(), daily.zone(), daily.to_string()),
        ("@daily", "Europe/Berlin", "@daily Europe/Berlin".into())
    );
    assert_eq!(daily.next(at("2026-01-01T00:00:00Z")), Some(at("2026-01-01T23:00:00Z")));
    assert_eq!(Schedule::parse("every 90s", None).unwrap().to_string(), "every 1m30s");
    assert_eq!(Schedule::parse(" 5  4 * * SUN ", None).unwrap().text(), "5 4 * * SUN");
}

#[test]
fn what_is_wrong_with_a_schedule_is_said() {
    let all = [
        ("", None),
        ("soon", None),
        ("* * * *", None),
        ("0 0 * * * *", None),
        ("61 * * * *", None),
        ("0 25 * * *", None),
        ("0 0 0 * *", None),
        ("0 0 * 13 *", None),
        ("0 0 * * 8", None),
        ("*/0 * * * *", None),
        ("0 0 * * FUNDAY", None),
        ("@reboot", None),
        ("@nightly", None),
        ("0 0 31 2 *", None),
        ("every 0s", None),
        ("every 10", None),
        ("every 100ms", None),
        ("every 400d", None),
        ("every 1h", Some("Europe/Berlin")),
        ("@daily", Some("Berlin")),
        ("@daily", Some("Europe/Belrin")),
        ("@daily", Some("New York")),
        ("@daily", Some("CET-1CEST")),
        ("@daily", Some("")),
        ("@daily", Some("../etc/passwd")),
    ];
    let message = all.map(|(text, zone)| match Schedule::parse(text, zone) {
        Ok(schedule) => format!("{text:?} {zone:?} is taken as {schedule}"),
        Err(fault) => format!("{fault} - {}", fault.hint()),
    });
    insta::assert_snapshot!(message.join("\n"));
}

#[test]
fn a_long_time_is_told_by_its_newest_moments_and_a_number() {
    let minutely = Schedule::cron("* * * * *", None).unwrap();
    let due = minutely.due(at("2026-01-01T00:00:00Z"), at("2026-01-01T02:00:00Z"), 3);
    assert_eq!(due.newest, [at("2026-01-01T01:58:00Z"), at("2026-01-01T01:59:00Z"), at("2026-01-01T02:00:00Z")]);
    assert_eq!(due.earlier, 117);
    assert_eq!(minutely.due(at("2026-01-01T00:00:00Z"), at("2026-01-01T00:00:00Z"), 3), DueMoments::default());
    assert_eq!(
        minutely.due(at("2026-01-02T00:00:00Z"), at("2026-01-01T00:00:00Z"), 3),
        DueMoments::default(),
        "back in time"
    );
}

/// Generates fields of cron expressions, common and uncommon ones.
fn field(least: u32, most: u32) -> impl Strategy<Value = String> {
    prop_oneof![
        3 => Just("*".to_owned()),
        3 => (least..=most).prop_map(|number| number.to_string()),
        1 => (2..=(most / 2).max(2)).prop_map(|step| format!("*/{step}")),
        1 => (least..most).prop_flat_map(move |from| (Just(from), from..=most)).prop_map(|(from, to)| format!("{from}-{to}")),
        1 => prop::collection::vec(least..=most, 1..4).prop_map(|all| all.iter().map(u32::to_string).collect::<Vec<_>>().join(",")),
    ]
}

const ZONES: [&str; 8] = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Pacific/Apia",
    "Africa/Casablanca",
    "America/St_Johns",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn the_next_moment_is_later_and_none_lies_between(
        fields in (field(0, 59), field(0, 23), field(1, 31), field(1, 12), field(0, 6)),
        zone in prop::sample::select(&ZONES[..]),
        second in 1_262_304_000i64..2_000_000_000,
    ) {
        let text = format!("{} {} {} {} {}", fields.0, fields.1, fields.2, fields.3, fields.4);
        let Ok(schedule) = Schedule::cron(&text, Some(zone)) else { return Ok(()) }; // there is no such day
        let from = Timestamp::from_second(second).unwrap();
        let next = schedule.next(from).unwrap();
        let after = schedule.next(next).unwrap();
        prop_assert!(from < next && next < after);
        // Every query between two due moments gives the same answer, so late or frequent queries
        // skip none.
        let middle = Timestamp::from_millisecond(next.as_millisecond().midpoint(after.as_millisecond())).unwrap();
        prop_assert_eq!(schedule.next(middle), Some(after), "{} in {} from {}", text, zone, middle);
        prop_assert_eq!(schedule.latest(middle), Some(next), "{} in {} at {}", text, zone, middle);
        prop_assert_eq!(schedule.latest(next), Some(next), "{} in {} at {}", text, zone, next);
        prop_assert_eq!(schedule.previous(after), Some(next), "{} in {} before {}", text, zone, after);
        let due = schedule.due(from, after, 5);
        prop_assert_eq!(due, DueMoments { newest: vec![next, after], earlier: 0 }, "{} in {} from {}", text, zone, from);
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,30}", zone in "\\PC{0,12}") {
        let _ = Schedule::parse(&text, None);
        let _ = Schedule::parse("@daily", Some(&zone));
    }
}
