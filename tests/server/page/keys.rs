//! Tests of the page by keyboard alone.

use crate::server::page::browser::{ENTER, TAB};
use crate::server::page::{Browser, Place};
use crate::support::{Model, say, shell, write};

/// Presses Tab until the focused element has this text; fails after too many.
#[track_caller]
fn tab_to(browser: &Browser, text: &str) {
    let focused =
        "const e = document.activeElement; return (e.getAttribute('aria-label') ?? '') + ' ' + (e.innerText ?? '')";
    let mut passed = Vec::new();
    for _ in 0..60 {
        browser.press(TAB);
        let at = browser.js(focused).as_str().unwrap_or_default().to_owned();
        if at.contains(text) {
            let outline = "return document.activeElement.matches(':focus-visible') && getComputedStyle(document.activeElement).outlineStyle";
            assert_eq!(browser.js(outline), "solid", "{at}: the focus is seen");
            return;
        }
        passed.push(at);
    }
    panic!("no way to {text:?}: {passed:#?}");
}

#[test]
fn a_run_is_found_looked_at_and_approved_without_a_mouse() {
    long_test!();
    let model = Model::new([shell("echo one"), write("done", "yes\n"), say("Done.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    place.begin("---\napprove: { ask: [shell-exec] }\n---\n# Make the file `done`");
    browser.until_text(".runs", "waits for you");
    browser.js("document.activeElement.blur(); scrollTo(0, 0)");
    tab_to(&browser, "Skip to the content");
    browser.press(ENTER);
    assert_eq!(browser.js("return document.activeElement.id"), "main");
    tab_to(&browser, "Make the file");
    browser.press(ENTER);
    browser.until_text(".question", "echo one");
    assert_eq!(browser.js("return document.activeElement.tagName"), "H1");
    tab_to(&browser, "Approve");
    browser.press(ENTER);
    browser.until_text(".state", "verified");
    tab_to(&browser, "files-write");
    browser.press(ENTER);
    browser.until_text(".tools li details[open]", "content: ");
    browser.must_be_silent();
}

#[test]
fn every_view_has_its_landmarks_one_heading_and_a_name_for_each_thing_to_use() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([])) else { return };
    for view in ["#/runs", "#/waiting", "#/jobs", "#/monitors", "#/new", "#/nothing"] {
        browser.go(&place.page(view));
        browser
            .until("document.querySelectorAll('main h1').length === 1 && document.querySelector('main h1').innerText");
        let count = |selector: &str| browser.js(&format!("return document.querySelectorAll('{selector}').length"));
        for landmark in ["main", "header nav[aria-label]", "html[lang]", "[aria-live=polite]"] {
            assert_eq!(count(landmark), 1, "{view}: {landmark}");
        }
        let nameless = "return [...document.querySelectorAll('a, button, input, select, textarea')].filter((e) => e.checkVisibility())
            .filter((e) => !e.innerText?.trim() && !e.getAttribute('aria-label') && !e.labels?.length).map((e) => e.outerHTML)";
        assert_eq!(browser.js(nameless), serde_json::json!([]), "{view}");
    }
}
