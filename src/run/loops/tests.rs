//! Calls and results that are a loop, and others that are progress.

use super::*;
use serde_json::json;

fn opinions(calls: &[(Value, &str, bool)]) -> Vec<LoopOpinion> {
    let mut watch = LoopWatch::default();
    calls.iter().map(|(input, result, changed)| watch.note("t", input, result, *changed, 4)).collect()
}

#[test]
fn the_same_call_with_the_same_result_is_told_at_half_and_ended_at_the_threshold() {
    let call = (json!({"command": "make"}), "error", false);
    use LoopOpinion::{Fine, Loop, Repetitive};
    assert_eq!(opinions(&vec![call; 4]), [Fine, Repetitive, Fine, Loop]);
}

#[test]
fn paging_through_a_file_is_progress_even_when_pages_look_the_same() {
    let pages: Vec<_> = (0..9).map(|page| (json!({"path": "a", "offset": page}), "same", false)).collect();
    assert!(opinions(&pages).iter().all(|opinion| *opinion == LoopOpinion::Fine));
}

#[test]
fn calls_with_differing_results_are_progress() {
    let results = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let calls: Vec<_> = results.iter().map(|result| (json!({"command": "next"}), *result, false)).collect();
    assert!(opinions(&calls).iter().all(|opinion| *opinion == LoopOpinion::Fine));
}

#[test]
fn a_change_of_the_workspace_between_calls_is_progress() {
    let test = (json!({"command": "make test"}), "1 failed", false);
    let edit = (json!({"path": "a", "old": "x", "new": "y"}), "edited", true);
    let calls: Vec<_> = (0..6).flat_map(|_| [test.clone(), edit.clone()]).collect();
    assert!(opinions(&calls).iter().all(|opinion| *opinion == LoopOpinion::Fine));
}

#[test]
fn calls_that_agree_in_half_of_their_arguments_are_alike() {
    let calls: Vec<_> = (0..4).map(|n| (json!({"pattern": format!("p{n}"), "path": "src"}), "none", false)).collect();
    assert_eq!(opinions(&calls).last(), Some(&LoopOpinion::Loop));
}

/// Each row has four calls, the threshold for a loop, and states whether they are one.
#[test]
fn each_sentence_of_the_rule_has_its_case() {
    let same = |input: Value| (0..4).map(|_| (input.clone(), "same", false)).collect::<Vec<_>>();
    let each = |input: fn(usize) -> Value| (0..4).map(|n| (input(n), "same", false)).collect::<Vec<_>>();
    let results = |result: fn(usize) -> &'static str| (0..4).map(|n| (json!({"a": 1}), result(n), false)).collect();
    type Calls = Vec<(Value, &'static str, bool)>;
    let cases: Vec<(&str, Calls, bool)> = vec![
        ("the same arguments", same(json!({"a": 1, "b": 2})), true),
        ("no arguments", same(json!({})), true),
        ("nested arguments that agree", same(json!({"a": {"b": [1, 2]}})), true),
        ("half of two agree", each(|n| json!({"a": 1, "b": n})), true),
        ("two of four agree", each(|n| json!({"a": 1, "b": 2, "c": n, "d": n})), true),
        ("one of three agrees", each(|n| json!({"a": 1, "b": n, "c": n})), false),
        ("none agrees", each(|n| json!({"a": n})), false),
        ("other names with the same values", each(|n| json!({ format!("a{n}"): 1 })), false),
        ("only the offset differs", each(|n| json!({"path": "x", "offset": n})), false),
        ("only the cursor differs", each(|n| json!({"query": "x", "cursor": n.to_string()})), false),
        ("only the page and its size differ", each(|n| json!({"q": 1, "page": n, "page_size": n * 10})), false),
        ("only lines differ", each(|n| json!({"path": "x", "start_line": n, "end_line": n + 9})), false),
        ("the same page", same(json!({"path": "x", "offset": 7})), true),
        ("results differ", results(|n| ["w", "x", "y", "z"][n]), false),
        (
            "a time differs",
            results(|n| ["1 failed in 0.03s", "1 failed in 1.2s", "1 failed in 980ms", "1 failed in 1m 2s"][n]),
            true,
        ),
        ("a clock", results(|n| ["12:00:01 no", "12:00 no", "13:10:00 no", "2026-01-02 no"][n]), true),
        ("a clock of one form", results(|n| ["12:00:01 no", "12:00:02 no", "13:10:00 no", "13:10:01 no"][n]), true),
        ("a counter", results(|n| ["run 1: no", "run 2: no", "run 13: no", "run 14: no"][n]), true),
        ("an address", results(|n| ["at 0x7f01", "at 0x7fA2", "at 0x00", "at 0x12ab"][n]), true),
        ("a hash", results(|n| ["[main 3f2a1bc]", "[main 00000000]", "[main abcdef12]", "[main 1234567]"][n]), true),
        ("a temporary path", results(|n| ["/tmp/a.x: no", "/tmp/b: no", "/tmp/c/d: no", "/tmp/e: no"][n]), true),
        ("a path of the project", results(|n| ["src/a: no", "src/b: no", "src/c: no", "src/d: no"][n]), false),
        (
            "a process id",
            results(|n| ["killed (pid 17)", "killed (pid 4)", "killed (pid 9)", "killed (pid 99)"][n]),
            true,
        ),
        (
            "a large number of things done",
            results(|n| ["1000000 rows", "2000000 rows", "3000000 rows", "4000000 rows"][n]),
            false,
        ),
        ("a share done", results(|n| ["10% done", "20% done", "30% done", "40% done"][n]), false),
        ("a part of all", results(|n| ["1/4 done", "2/4 done", "3/4 done", "4/4 done"][n]), false),
        (
            "numbers of calls that are half alike",
            (0..4).map(|n| (json!({"a": 1, "b": n}), ["1", "2", "3", "4"][n], false)).collect(),
            false,
        ),
        ("two results by turns", results(|n| ["x", "y"][n % 2]), false),
        ("changes between", (0..4).map(|n| (json!({"a": 1}), "same", n % 2 == 1)).collect(), false),
    ];
    for (what, calls, is_loop) in cases {
        assert_eq!(opinions(&calls).contains(&LoopOpinion::Loop), is_loop, "{what}");
    }
}

/// Returns whether four equal calls with these results are a loop.
fn is_loop_of(results: [&'static str; 4]) -> bool {
    let calls = results.map(|result| (json!({"a": 1}), result, false));
    opinions(&calls).contains(&LoopOpinion::Loop)
}

#[test]
fn results_of_one_command_may_differ_in_figures_of_benchmarks() {
    for (results, is_loop) in [
        (["1,234 ns/iter (+/- 56)", "987 ns/iter (+/- 1,056)", "1.5 ns/iter (+/- 0.1)", "9 ns/iter (+/- 0)"], true),
        (["A-2  1000  1234 ns/op", "A-2  12  1.5 ns/op", "A-2  13  1 ns/op", "A-2  140000  98 ns/op"], true),
        (["BM_a  123 ns  120 ns  5812", "BM_a  12.5 ns  9 ns  7", "BM_a  1 us  1 us  90", "BM_a  1 ns  2 ns  3"], true),
        (
            [
                "x 1,234,567 ops/sec ±1.2% (85 runs sampled)",
                "x 997 ops/sec ±10.02% (5 runs sampled)",
                "x 1,234 ops/sec ±0.3% (91 runs sampled)",
                "x 12.5 ops/sec ±1% (1 run sampled)",
            ],
            true,
        ),
        (
            [
                "5.1 s (812k iterations), 5 outliers among 100 measurements (5.00%)\n  5 (5.00%) high mild",
                "5.0 s (1.2M iterations), 15 outliers among 100 measurements (15.00%)\n  15 (15.00%) high severe",
                "6 s (9 iterations), 2 outliers among 100 measurements (2%)\n  2 (2.00%) low mild",
                "5.9 s (81k iterations), 3 outliers among 100 measurements (3.00%)\n  3 (3.00%) high mild",
            ],
            true,
        ),
        (
            [
                "test_a  1.1251 (1.0)  1,932.5 (48.2)  1.1 (1.0)  7.1 (1.0)  9;17  151.75 (1.0)  1023  1",
                "test_a  0.9 (1.0)  2.5 (1.33)  1.2 (1.0)  6.9 (1.0)  71;7  98,151.7 (1.0)  99  1",
                "test_a  12.4 (1.0)  3.5 (2.1)  1.9 (1.0)  4.1 (1.0)  2;3  1.75 (1.0)  1  10",
                "test_a  5.1 (1.0)  4.5 (1.0)  2.1 (1.0)  4.9 (1.0)  0;0  17.51  23  1",
            ],
            true,
        ),
        (
            ["thrpt 5 123.4 ± 1.2 ops/s", "thrpt 5 99 ± 12 ops/s", "thrpt 5 1,0 ± 0,2 ops/s", "thrpt 5 7 ± 1 ops/s"],
            true,
        ),
        (["better by +1%", "better by +2%", "better by +3%", "better by +4%"], false),
        (["1000 iterations done", "2000 iterations done", "3000 iterations done", "4000 iterations done"], false),
        (
            [
                "[-1.2% +0.3% +2.0%] (p = 0.57 > 0.05)",
                "[-0.2% +0.1% +2.1%] (p = 0.07 > 0.05)",
                "[+1.2% +2.3% +3.0%] (p = 0.10 > 0.05)",
                "[-1.0% −0.3% +0.0%] (p = 0.33 > 0.05)",
            ],
            true,
        ),
    ] {
        assert_eq!(is_loop_of(results), is_loop, "{results:?}");
    }
}

#[test]
fn results_of_one_command_may_differ_in_times_and_numbers_of_processes() {
    for (results, is_loop) in [
        (["# duration_ms 101.1", "# duration_ms 9.2", "# duration_ms 3", "# duration_ms 12.25"], true),
        (["(0.02 usr  0.01 sys)", "(0.12 usr  0.01 sys)", "(0.02 usr  0.41 sys)", "(1.2 usr  3.1 sys)"], true),
        (["274.3 runs/s", "9 runs/s", "1.5 runs/s", "3333.1 runs/s"], true),
        (["sh[4]: no", "sh[5]: no", "sh[17]: no", "sh[9]: no"], true),
        (["thread 't' (56) ends", "thread 't' (7) ends", "thread 't' (61) ends", "thread 't' (101) ends"], true),
        (["real 0m1.23s", "real 0m1.3s", "real 1m05s", "real 1h2m3s"], true),
        (["127.0.0.1:41234", "127.0.0.1:80", "localhost:4123", "[::1]:5000"], true),
        (
            [
                "debug-2026-11-29T20_01_02_123Z.log",
                "debug-2026-11-29T20_01_03_001Z.log",
                "debug-2026-11-30T00_00_00_000Z.log",
                "debug-2026-11-29T20_01_09_999Z.log",
            ],
            true,
        ),
        (
            [
                "id 0b5e4c7a-1111-4222-8333-0123456789ab",
                "id 1b5e4c7a-1111-4222-8333-0123456789ab",
                "id 12345678-1234-1234-1234-123456789012",
                "id ffffffff-1111-4222-8333-0123456789ab",
            ],
            true,
        ),
        (["x @output/1", "x @output/2", "x @output/13", "x @output/4"], true),
        (["part[4]: no", "part[5]: no", "part[17]: no", "part[9]: no"], false),
    ] {
        assert_eq!(is_loop_of(results), is_loop, "{results:?}");
    }
}

#[test]
fn another_tool_between_does_not_hide_a_loop_and_another_tool_is_no_part_of_it() {
    let mut watch = LoopWatch::default();
    let mut note = |tool| watch.note(tool, &json!({"a": 1}), "same", false, 4);
    let opinions: Vec<_> = ["t", "u", "t", "u", "t", "u", "t"].map(&mut note).into();
    assert_eq!(opinions.iter().position(|opinion| *opinion == LoopOpinion::Loop), Some(6));
}

#[test]
fn an_edit_by_a_new_call_is_progress_and_a_repeated_call_that_writes_is_none() {
    let id = |number: usize| TreeId::parse(&format!("{number:040}")).unwrap();
    let ends = |commands: fn(usize) -> Vec<String>| {
        let mut watch = LoopWatch::default();
        (0..8).any(|turn| {
            watch.begin_turn();
            let mut note = |command: String| watch.note("shell", &json!({"command": command}), "no", false, 4);
            let is_loop = commands(turn).into_iter().any(|command| note(command) == LoopOpinion::Loop);
            is_loop || watch.arrive(&id(turn), 4) == LoopOpinion::Loop
        })
    };
    assert!(!ends(|turn| vec![format!("sed -i {turn} a"), "make test".into()]));
    assert!(!ends(|turn| vec![if turn % 4 == 3 { format!("sed -i {turn} a") } else { "make".into() }]));
    assert!(!ends(|turn| vec![if turn % 2 == 0 { format!("sed -i {turn} a") } else { "make test".into() }]));
    assert!(ends(|_| vec!["make test >>log".into()]));
    assert!(ends(|_| vec!["date >>log".into(), "make test".into()]));
}

#[test]
fn a_repeated_file_state_is_warned_of_at_half_and_a_loop_at_the_threshold() {
    let opinions = |trees: &[u8], threshold| -> Vec<LoopOpinion> {
        let mut watch = LoopWatch::default();
        let id = |digit: &u8| TreeId::parse(&digit.to_string().repeat(40)).unwrap();
        trees.iter().map(|tree| watch.arrive(&id(tree), threshold)).collect()
    };
    use LoopOpinion::{Fine, Loop, Repetitive};
    assert_eq!(opinions(&[1, 2, 1, 2, 1, 2, 1, 2], 4), [Fine, Fine, Fine, Repetitive, Fine, Fine, Fine, Loop]);
    assert_eq!(opinions(&[1, 2, 1, 2, 1], 2), [Fine, Fine, Fine, Repetitive, Loop], "the model gets a warning first");
    assert_eq!(opinions(&[1, 2, 1, 3, 1, 4, 1, 5, 1, 6, 1], 4), [Fine; 11], "each detour is another one");
    assert_eq!(opinions(&[1; 9], 4), [Fine; 9], "nothing was changed");
    assert_eq!(opinions(&[1, 2, 3, 4, 5, 6, 7, 8, 9], 4), [Fine; 9]);
}

#[test]
fn each_loop_is_told_once_and_an_attempt_begins_anew() {
    let mut watch = LoopWatch::default();
    let note = |watch: &mut LoopWatch, a: u64| watch.note("t", &json!({"a": a}), "same", false, 4);
    let warned = [1, 1, 2, 2].map(|a| note(&mut watch, a));
    assert_eq!(warned.iter().filter(|opinion| **opinion == LoopOpinion::Repetitive).count(), 2);
    watch.forget();
    assert_eq!([1, 1].map(|a| note(&mut watch, a)), [LoopOpinion::Fine, LoopOpinion::Repetitive]);
}

#[test]
fn calls_that_agree_in_nothing_are_not_alike() {
    let calls: Vec<_> = (0..8).map(|n| (json!({"command": format!("c{n}")}), "ok", false)).collect();
    assert!(opinions(&calls).iter().all(|opinion| *opinion == LoopOpinion::Fine));
}
