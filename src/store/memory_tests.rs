//! Tests of memories: which are found and in which order, and which are forgotten. No text acts as
//! a query.

use super::*;
use proptest::prelude::*;
use std::path::Path;

fn open(home: &Path) -> Store {
    Store::open(home, Path::new("/a/app")).unwrap()
}

fn fact(text: &str, now_ms: i64) -> StoredMemory {
    StoredMemory::fact(text.into(), None, now_ms)
}

/// Returns the texts that are recalled.
fn recalled(store: &Store, text: &str, now_ms: i64) -> Vec<String> {
    store.recall(text, now_ms).unwrap().into_iter().map(|memory| memory.text).collect()
}

#[test]
fn what_has_more_of_the_rare_words_comes_first_and_of_equals_the_newest() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    for (text, now_ms) in [
        ("the parser of dates is in src/dates.rs", 1),
        ("the parser of numbers is in src/numbers.rs", 2),
        ("tests run in Berlin time", 3),
        ("deploys go out on Mondays (1)", 4),
        ("deploys go out on Mondays (2)", 5),
        ("the cache is in target", 6),
    ] {
        store.remember(&fact(text, now_ms)).unwrap();
    }
    let parsers = ["the parser of dates is in src/dates.rs", "the parser of numbers is in src/numbers.rs"];
    assert_eq!(recalled(&store, "Repair parsing: a date's Parser!", 9), parsers);
    assert_eq!(recalled(&store, "deploy", 9), ["deploys go out on Mondays (2)", "deploys go out on Mondays (1)"]);
    assert_eq!(recalled(&store, "where is the that", 9), Vec::<String>::new());
}

#[test]
fn the_same_text_is_one_memory_and_lives_as_long_as_the_longer_one() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    store.remember(&fact("dates are in UTC", 1).ephemeral(100)).unwrap();
    store.remember(&fact("dates are in UTC", 2)).unwrap();
    store.remember(&fact("dates are in UTC", 3).ephemeral(100)).unwrap();
    assert_eq!(store.memories().unwrap(), [fact("dates are in UTC", 3)]);
}

#[test]
fn a_run_has_one_memory_which_says_what_was_kept_last() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    let of = |outcome: &str, now_ms| note("t", outcome, "r", now_ms);
    let found_by_the_run = StoredMemory::fact("dates are in UTC".into(), Some(RunId::new("r")), 1);
    store.remember(&found_by_the_run).unwrap();
    store.remember(&of("failed", 2)).unwrap();
    store.remember(&of("verified", 3)).unwrap();
    assert_eq!(store.memories().unwrap(), [of("verified", 3), found_by_the_run]);
    assert_eq!((recalled(&store, "failed", 4).len(), recalled(&store, "verified", 4).len()), (0, 1));
}

/// Creates a note of how a run ended.
fn note(task: &str, outcome: &str, run: &str, now_ms: i64) -> StoredMemory {
    StoredMemory::of_task(task, outcome, RunId::new(run), format!("parser {task}: {outcome}"), now_ms).ephemeral(1000)
}

#[test]
fn a_task_has_one_note_for_each_outcome_and_the_newer_one_replaces_the_older() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    for number in 0..40 {
        let outcome = if number % 2 == 0 { "failed" } else { "verified" };
        store.remember(&note("a", outcome, &format!("r{number}"), number)).unwrap();
    }
    store.remember(&note("b", "failed", "other", 50)).unwrap();
    let left = [note("b", "failed", "other", 50), note("a", "verified", "r39", 39), note("a", "failed", "r38", 38)];
    assert_eq!(store.memories().unwrap(), left);
    assert_eq!(recalled(&store, "parser", 60), ["parser b: failed", "parser a: verified", "parser a: failed"]);
}

#[test]
fn memories_of_people_come_first_however_many_notes_have_the_same_words() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    store.db.execute_batch("PRAGMA synchronous = OFF").unwrap();
    store.remember(&fact("a person says that the parser of dates lives in Berlin, of all places", 1)).unwrap();
    for number in 0..150 {
        store.remember(&note(&format!("dates {number}"), "verified", &format!("r{number}"), 2)).unwrap();
    }
    for query in ["Repair the parser of dates", "parser"] {
        let all = recalled(&store, query, 3);
        assert!(all[0].starts_with("a person says") && all.len() > 100, "{all:?}");
    }
}

#[test]
fn what_a_person_keeps_stays_theirs_when_a_model_keeps_the_same() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    store.remember(&fact("the sky is grey", 1)).unwrap();
    store.remember(&StoredMemory::fact("the sky is grey".into(), Some(RunId::new("r")), 2)).unwrap();
    let runs: Vec<Option<RunId>> = store.memories().unwrap().into_iter().map(|memory| memory.run).collect();
    assert_eq!(runs, [None]);
}

#[test]
fn what_has_expired_is_not_recalled_and_goes_with_the_next_one_that_is_kept() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    store.remember(&fact("the sky is grey", 1).ephemeral(10)).unwrap();
    assert_eq!((recalled(&store, "sky", 10).len(), recalled(&store, "sky", 11).len()), (1, 0));
    store.remember(&fact("the sky is blue", 11)).unwrap();
    assert_eq!(store.memories().unwrap(), [fact("the sky is blue", 11)]);
    let forever = fact("x", i64::MAX - 1).ephemeral(u64::MAX);
    assert_eq!(forever.expires_at_ms, Some(i64::MAX));
}

#[test]
fn one_all_or_the_expired_ones_are_forgotten_and_their_words_too() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    let (a, b, c) = (fact("a red door", 1), fact("a red car", 2), fact("a red sky", 3).ephemeral(4));
    [&a, &b, &c].iter().for_each(|memory| store.remember(memory).unwrap());
    assert_eq!(
        [ForgetSelector::One(&a.id), ForgetSelector::One(&a.id), ForgetSelector::Expired(7)]
            .map(|f| store.forget(f).unwrap()),
        [1, 0, 1]
    );
    assert_eq!(recalled(&store, "red", 5), ["a red car"]);
    assert_eq!((store.forget(ForgetSelector::All).unwrap(), recalled(&store, "red", 5)), (1, Vec::new()));
}

#[test]
fn a_memory_is_called_by_the_start_of_its_id() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    let memory = fact("dates are in UTC", 1);
    store.remember(&memory).unwrap();
    store.remember(&fact("another", 2)).unwrap();
    let short = store.short_memory(&memory.id).unwrap();
    assert_eq!((memory.id.len(), short.len()), (32, 8));
    assert_eq!(store.memories_called(&short).unwrap(), [memory]);
    assert_eq!(store.memories_called("no such%").unwrap(), []);
}

#[test]
fn no_project_hears_of_another_ones_memory() {
    let home = crate::test_support::temp_dir();
    open(home.path()).remember(&fact("dates are in UTC", 1)).unwrap();
    let other = Store::open(home.path(), Path::new("/b/app")).unwrap();
    assert_eq!((recalled(&other, "dates", 2).len(), recalled(&open(home.path()), "dates", 2).len()), (0, 1));
}

#[test]
fn among_many_memories_a_rare_word_decides_and_of_a_common_one_the_newest_are_found() {
    let home = crate::test_support::temp_dir();
    let store = open(home.path());
    store.db.execute_batch("PRAGMA synchronous = OFF").unwrap();
    for number in 0..300 {
        store.remember(&fact(&format!("parser number{number}"), number)).unwrap();
    }
    let newest: Vec<String> = (200..300).rev().map(|number| format!("parser number{number}")).collect();
    assert_eq!(recalled(&store, "the parser", 9), newest);
    assert_eq!(recalled(&store, "parser number7", 9), ["parser number7"]);
    assert_eq!(recalled(&store, &format!("number7 {}", "\"NEAR(* ".repeat(100 * 1024)), 9), ["parser number7"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_text_is_a_wrong_query(text in "(\\PC|[\"'*^:(){}+-]|NEAR|AND|OR|NOT|\\x00|🦀| ){0,60}") {
        let home = crate::test_support::temp_dir();
        let store = open(home.path());
        store.remember(&fact("near and or not 🦀 a", 1)).unwrap();
        prop_assert!(store.recall(&text, 2).is_ok());
    }
}
