//! The list of runs, and the run that it leads to.

use crate::Place;
use crate::support::{Model, say, write};

/// A model that makes the file and says so, however often it is asked.
fn working() -> Model {
    Model::thinking(|_, count| {
        (Some(if count % 2 == 1 { write("done", "yes\n") } else { say("Made the file.") }), count)
    })
}

#[test]
fn runs_are_listed_searched_and_filtered_and_new_ones_come_in_by_themselves() {
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
    assert!(browser.text(".runs").contains("Make the first file"));
    assert_eq!(browser.js("return location.hash"), "#/runs?q=first");
    browser.go(&place.page("#/runs?state=failed"));
    browser.until_text("main", "No run is like that.");
    assert_eq!(browser.js("return document.querySelector('[name=state]').value"), "failed");
    browser.must_be_silent();
}

#[test]
fn a_run_that_is_over_is_told_with_its_turns_tools_and_verdict_under_an_address_of_its_own() {
    let Some((place, browser)) = Place::open(working()) else { return };
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "verified");
    browser.click(".runs a", "Make the file");
    browser.until("document.querySelector('.end')");
    assert_eq!(browser.js("return location.hash"), format!("#/runs/{id}"));
    assert_eq!(browser.js("return document.title"), "Make the file `done` · fledge");
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
