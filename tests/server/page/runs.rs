//! Tests of the list of runs and its links.

use crate::server::page::Place;
use crate::support::{Model, say, write};
use rusqlite::Connection;
use serde_json::json;

/// The number of runs beside the one that ran.
const MANY: u32 = 10_000;

/// Returns a model that makes the file and ends, for any number of runs.
fn working() -> Model {
    Model::thinking(|_, count| {
        (Some(if count % 2 == 1 { write("done", "yes\n") } else { say("Made the file.") }), count)
    })
}

#[test]
fn runs_are_listed_searched_and_filtered_and_new_ones_come_in_by_themselves() {
    long_test!();
    let Some((place, browser)) = Place::open(working()) else { return };
    browser.until_text("main", "No run yet.");
    place.begin("# Make the first file");
    browser.until_text(".runs li:nth-child(1)", "Make the first file");
    browser.until_text(".runs li:nth-child(1)", "verified");
    place.begin("# Make another one");
    browser.until_text(".runs li:nth-child(1)", "Make another one");
    browser.until_text(".runs li:nth-child(1)", "verified");
    browser.until("document.querySelectorAll('.runs li').length === 2");
    browser.js("document.querySelector('[name=q]').focus()");
    browser.press("first");
    browser.until("document.querySelectorAll('.runs li').length === 1");
    browser.until_text(".runs", "Make the first file");
    browser.until("location.hash === '#/runs?q=first'");
    browser.go(&place.page("#/runs?state=failed"));
    browser.until_text("main", "No matching runs.");
    assert_eq!(browser.js("return document.querySelector('[name=state]').value"), "failed");
    browser.must_be_silent();
}

#[test]
fn the_run_table_has_searchable_columns_and_groups_the_runs_of_a_batch() {
    long_test!();
    let Some((place, browser)) = Place::open(working()) else { return };
    browser.until_text("main", "No run yet.");
    place.file("tasks/one.md", "# Make the first file\n");
    place.file("tasks/two.md", "# Make the second file\n");
    let ended = place.fledge(&["run", "tasks/one.md", "tasks/two.md", "--jobs", "1"]).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
    place.api("POST", "/v1/runs", &json!({ "task": "# Make another one", "key": "page-0123" }));
    browser.until_text(".runs > li:nth-child(1)", "verified");
    browser.until("document.querySelectorAll('.runs > li').length === 4");
    browser.until_text(".runs > li:nth-child(1) .title", "Make another one");
    browser.until_text(".runs > li:nth-child(1) .by", "this page");
    browser.until_text(".runs > li:nth-child(1) .branch", "fledge/make-another-one");
    browser.until_text(".runs > li:nth-child(1) .attempts", "1");
    place.begin("# Make the last one");
    browser.until_text(".runs > li:nth-child(1) .by", "API");
    browser.until_text(".runs > li:nth-child(1)", "verified");
    let alone = place.fledge(&["run", "tasks/one.md"]).output().unwrap();
    assert!(alone.status.success(), "{}", String::from_utf8_lossy(&alone.stdout));
    browser.js("location.reload()"); // a server sends no news of runs of other processes
    browser.until_text(".runs > li:nth-child(1) .by", "command line");
    browser.until_text(".batch summary", "2 runs · ✓ 2 verified");
    browser.until_text(".batch .runs > li:nth-child(1)", "Make the second file");
    browser.until_text(".batch .runs > li:nth-child(2) .task", "tasks/one.md");
    let model = browser.text(".batch .runs > li:nth-child(1) .model");
    assert!(!model.is_empty());
    let headings = browser.text(".columns");
    for heading in ["Run", "State", "Task", "Model", "Branch", "Started by", "Attempts", "Began", "Cost"] {
        assert!(headings.contains(heading), "{heading}: {headings}");
    }
    let searches = [
        ("tasks/one", 2),
        ("batch first one.md", 1),
        ("make-another-one-", 1),
        ("page-0123", 1),
        ("this page", 1),
        ("command line", 1),
        ("api-", 1),
        (model.as_str(), 5),
    ];
    for (searched, count) in searches {
        browser.js(&format!(
            "const q = document.querySelector('[name=q]'); q.value = '{searched}'; q.dispatchEvent(new Event('input'))"
        ));
        browser.until(&format!("new URLSearchParams(location.hash.split('?')[1]).get('q') === '{searched}'"));
        browser.until(&format!("document.querySelectorAll('.runs li[data-id]').length === {count}"));
    }
    browser.click(".batch .runs a", "Make the second file");
    browser.click(".facts a", "batch ");
    browser.until("document.querySelectorAll('.batch .runs li[data-id]').length === 2");
    browser.must_be_silent();
}

/// Browsers allow six connections to a server for all tabs. If each tab had its own event stream, a
/// seventh tab could send no requests.
#[test]
fn more_tabs_than_connections_get_all_events_even_after_the_listening_tab_closes() {
    long_test!();
    let Some((place, browser)) = Place::open(working()) else { return };
    browser.until_text("main", "No run yet.");
    let mut tabs = vec![browser.this_tab()];
    for _more in 1..9 {
        tabs.push(browser.tab());
        browser.go(&place.page("#/runs"));
        browser.until_text("main", "No run yet.");
    }
    for task in ["Make the first file", "Make another one"] {
        place.begin(&format!("# {task}"));
        for tab in &tabs {
            browser.look_at(tab);
            browser.until_text(".runs li:nth-child(1)", task);
            browser.until_text(".runs li:nth-child(1)", "verified");
            browser.must_be_silent();
        }
        browser.close(&tabs.remove(0)); // the first tab receives the events for all tabs
    }
    browser.look_at(&tabs[0]);
}

#[test]
fn a_finished_run_has_a_page_with_its_turns_tools_and_verdict() {
    long_test!();
    let Some((place, browser)) = Place::open(working()) else { return };
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "verified");
    browser.click(".runs a", "Make the file");
    browser.until("document.querySelector('.end')");
    assert_eq!(browser.js("return location.hash"), format!("#/runs/{id}"));
    assert_eq!(browser.js("return document.title"), "Make the file `done` · project · fledge");
    assert_eq!(browser.js("return document.activeElement.tagName"), "H1");
    let story = browser.text(".story");
    for part in [
        "Turn 1",
        "files-write",
        "created +1 −0",
        "Turn 2",
        "Made the file.",
        "The gate passed, attempt 1",
        "verify / there",
    ] {
        assert!(story.contains(part), "{part}: {story}");
    }
    browser.click(".tools summary", "files-write");
    browser.until_text(".tools", "content:");
    browser.go(&place.page("#/runs/nothing-of-this-name"));
    browser.until_text("main", "There is no such run.");
    let told = browser.console();
    assert!(told.iter().all(|line| line.contains("404")), "{told:?}");
}

#[test]
fn ten_thousand_runs_are_listed_at_once_and_paged_through_to_the_oldest() {
    long_test!();
    let Some((place, browser)) = Place::open(working()) else { return };
    place.begin("# The oldest run");
    browser.until_text(".runs", "verified");
    let db = Connection::open(place.database()).unwrap();
    let more = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
        INSERT INTO runs (id, title, source, task_digest, workspace, models, fledge, journal_version, started_at, ended_at, reason, exit_code,
            verified, cancelled, attempts, turns, tokens_in, tokens_out, tokens_cached, cost_micros, summary, bytes, safe_seq, safe_hash)
        SELECT printf('00000000-0000-7000-8000-%012d', i), 'Run ' || i, source, task_digest, workspace, models, fledge, journal_version,
            started_at + i, ended_at + i, reason, exit_code, verified, cancelled, attempts, turns, tokens_in, tokens_out, tokens_cached,
            cost_micros, summary, bytes, safe_seq, safe_hash FROM runs, n WHERE runs.no = (SELECT min(no) FROM runs)";
    assert_eq!(db.execute(more, [MANY]).unwrap(), MANY as usize);
    let mut times = Vec::new();
    for _ in 0..5 {
        browser.js("location.reload()");
        browser.until("performance.getEntriesByName('runs are there').length");
        let drawn = browser.js("return document.querySelectorAll('.runs li').length").as_u64().unwrap();
        assert!((1..=200).contains(&drawn), "of {MANY} runs, {drawn} are drawn before the page is scrolled");
        times.push(browser.js("return performance.getEntriesByName('runs are there')[0].startTime").as_f64().unwrap());
    }
    times.sort_by(f64::total_cmp);
    eprintln!("the first of {MANY} runs are there after {times:.0?} ms");
    browser.until_text(".runs li:nth-child(1)", "Run 10000");
    let seen = "(window.scrollTo(0, document.body.scrollHeight), document.querySelectorAll('.runs li').length)";
    browser.until(&format!("{seen} > 1000"));
    let drawn = "const at = performance.now(); document.body.offsetHeight; window.scrollBy(0, -500); document.body.offsetHeight; return performance.now() - at";
    eprintln!("they are drawn again in {} ms", browser.js(drawn));
    browser.js("document.querySelector('[name=q]').focus()");
    browser.press("oldest");
    browser.until_text(".runs li:nth-child(1)", "The oldest run");
    browser.until("document.querySelectorAll('.runs li').length === 1");
    browser.must_be_silent();
}
