//! A run that is begun on the page.

use crate::server::page::Place;
use crate::support::{Model, say, write};

#[test]
fn a_task_with_mistakes_is_told_line_by_line_and_a_good_one_begins() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([write("done", "yes\n"), say("Done.")])) else { return };
    browser.click(".top a", "New run");
    browser.until("document.querySelector('[name=task]')");
    browser.click("form.begin button", "Begin");
    browser.until_text(".faults", "Give a task's text, or the path of one.");
    browser.js("document.querySelector('[name=task]').focus()");
    browser.press("---\nmax_retrys: 1\n---\n# Make the file");
    browser.click("form.begin button", "Begin");
    browser.until_text(".faults", "max_retrys");
    browser.click(".faults button", "line 2");
    let marked = "const t = document.activeElement; return t.value.slice(t.selectionStart, t.selectionEnd)";
    assert_eq!(browser.js(marked), "max_retrys: 1");
    browser.press("max_retries: 1");
    browser.click("form.begin button", "Begin");
    browser.until("location.hash.startsWith('#/runs/')");
    browser.until_text(".state", "verified");
    let told = browser.console();
    assert!(told.iter().all(|line| line.contains("422")), "{told:?}");
    drop(place);
}

#[test]
fn a_task_of_the_workspace_is_begun_by_its_path_and_none_from_elsewhere() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([write("done", "yes\n"), say("Done.")])) else { return };
    place.file("make.md", "---\nparams: { what: { required: true } }\n---\n# Make {{ what }}\n");
    browser.go(&place.page("#/new"));
    browser.until("document.querySelector('[name=path]')");
    browser.js("document.querySelector('[name=path]').focus()");
    browser.press("../../etc/passwd");
    browser.click("form.begin button", "Begin");
    browser.until_text(".faults", "../../etc/passwd");
    browser.js("document.querySelector('[name=path]').value = 'make.md'; document.querySelector('[name=params]').value = 'what=the file'");
    browser.click("form.begin button", "Begin");
    browser.until_text("h1", "Make the file");
    browser.until_text(".state", "verified");
}
