//! Tests of the actions in the header of a run.

use crate::server::page::{Browser, Place};
use crate::support::{Model, say, write};

/// Waits until another run than this one is verified. Returns its address.
#[track_caller]
fn next_run(browser: &Browser, before: &str) -> String {
    browser.until(&format!("location.hash.startsWith('#/runs/') && location.hash !== '{before}'"));
    browser.until_text(".state", "verified");
    browser.js("return location.hash").as_str().unwrap().to_owned()
}

#[test]
fn a_run_is_run_again_and_gone_on_from_and_its_work_is_taken_away() {
    long_test!();
    let made = || write("done", "yes\n");
    let model = Model::new([made(), say("Made the file."), made(), say("Made it again."), say("I looked at it.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("---\nmax_retries: 1\n---\n# Make the file `done`");
    let first = format!("#/runs/{id}");
    browser.go(&place.page(&first));
    browser.until_text(".state", "verified");
    let patch = "[...document.querySelectorAll('.actions a')].find((a) => a.innerText === 'Download patch')";
    browser.until(&format!("{patch}?.hasAttribute('download')"));
    for (button, begins) in [("Copy branch", "fledge/make-the-file-done"), ("Copy apply command", "fledge apply ")] {
        browser.click(".actions button", button);
        // If the browser does not let the page copy, the page shows the text instead.
        let copied = "[...document.querySelectorAll('.actions button')].some((b) => b.innerText === 'Copied')";
        browser.until(&format!("{copied} || document.querySelector('dialog input')?.value.startsWith('{begins}')"));
        browser.js("document.querySelector('dialog')?.close()");
    }
    browser.click(".actions button", "Run again");
    let again = next_run(&browser, &first);
    browser.until_text("h1", "Make the file `done`");
    browser.until_text(".facts", "this page");
    browser.click(".actions button", "Continue…");
    browser.click("dialog button", "Begin");
    browser.until_text("dialog [role=alert]", "describe what to do");
    browser.js("document.querySelector('dialog [name=next]').value = '# Now look at it'");
    browser.click("dialog button", "Begin");
    let after = next_run(&browser, &again);
    assert_ne!(after, first);
    browser.until_text("h1", "Now look at it");
    browser.until_text(".facts", &format!("run {}", &again["#/runs/".len()..][..8]));
    let told = browser.console();
    assert!(told.iter().all(|line| line.contains("422")), "{told:?}");
}

#[test]
fn a_run_that_a_limit_ended_is_resumed_with_a_higher_limit() {
    long_test!();
    let model = Model::new([write("half", "1\n"), write("done", "2\n"), say("Made the file.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("---\nbudget: { turns: 1 }\n---\n# Make the file `done`");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".state", "turn limit");
    browser.click(".actions button", "Resume with a higher limit…");
    browser.until_text("dialog label", "Turns in all. The run has used 1 turn so far, which counts.");
    for (value, says) in [("", "Enter a value, e.g. 200."), ("1", "the turn limit was reached; raise max_turns")] {
        browser.js(&format!("document.querySelector('dialog [name=limit]').value = '{value}'"));
        browser.click("dialog button", "Resume");
        browser.until_text("dialog [role=alert]", says);
    }
    browser.js("document.querySelector('dialog [name=limit]').value = '9'");
    browser.click("dialog button", "Resume");
    browser.until_text(".state", "verified");
    browser.until_text(".story", "Made the file.");
    let told = browser.console();
    assert!(told.iter().all(|line| line.contains("422")), "{told:?}");
}
