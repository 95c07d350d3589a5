//! Tests of the page of jobs and monitors.

use crate::server::page::Place;
use crate::support::{Model, say, write};
use serde_json::json;

#[test]
fn a_monitor_shows_its_health_and_what_was_heard_as_a_strip_of_different_forms() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([])) else { return };
    browser.click(".top a", "Monitors");
    browser.until_text("main", "No monitors.");
    let name = "Backup <b>of</b> all";
    place.api(
        "POST",
        "/v1/monitors",
        &json!({ "slug": "backup", "name": name, "schedule": "every 1h", "margin_minutes": 10 }),
    );
    let hear = |status: &str| {
        place.api("POST", "/v1/monitors/backup/checkins", &json!({ "status": status, "duration_ms": 1500 }))
    };
    ["ok", "in_progress", "ok", "error"].into_iter().for_each(|status| drop(hear(status)));
    browser.until_text(".card h2", name);
    browser.until_text(".card .health", "✕ failing");
    browser.until_text(".card .facts", "every 1h");
    browser.js("location.reload()");
    browser.until("document.querySelector('.strip')");
    let marks = |status: &str| browser.js(&format!("return document.querySelectorAll('.strip .mark-{status}').length"));
    assert_eq!((marks("ok"), marks("error")), (json!(2), json!(1)));
    let forms = "const form = (s) => document.querySelector(`.legend .mark-${s}`).innerHTML;
        return new Set(['ok', 'error', 'missed', 'timeout', 'in_progress'].map(form)).size";
    assert_eq!(browser.js(forms), 5, "each looks different without its colour");
    let said = browser.js("return document.querySelector('.strip').getAttribute('aria-label')");
    assert!(said.as_str().unwrap().contains("2 ok, 1 error"), "{said}");
    browser.click(".card summary", "Check-ins");
    browser.until_text(".card tbody tr:first-child", "✕ error");
    hear("ok");
    browser.until_text(".card .health", "✓ healthy");
    browser.must_be_silent();
}

#[test]
fn jobs_are_listed_with_their_next_time_and_run_when_they_are_asked_to() {
    long_test!();
    let model = Model::new([write("done", "yes\n"), say("Done.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    browser.click(".top a", "Jobs");
    let card = "[...document.querySelectorAll('.card')].find((card) => card.querySelector('h2').innerText === 'journal-pruning')";
    browser.until(&format!("{card}?.innerText.includes('every')"));
    browser.until(&format!("{card}.closest('.system') !== null"));
    browser.until_text(".system summary", "System");
    browser.until_text("main", "No task has a schedule.");
    place.file("tasks/nightly.md", "---\nschedule: \"0 3 * * *\"\n---\n# Make the file\n");
    browser.until("[...document.querySelectorAll('main > .cards > .card h2')].some((h) => h.innerText === 'nightly')");
    browser.until("!document.querySelector('main').innerText.includes('No task has a schedule.')");
    browser.js(&format!("{card}.querySelector('button').click()"));
    browser.until(&format!("{card}.innerText.includes('✓ ok')"));
    browser.js(&format!("{card}.querySelector('details').open = true"));
    browser.until(&format!("{card}.querySelectorAll('details li').length > 0"));
    browser.must_be_silent();
    drop(place);
}
