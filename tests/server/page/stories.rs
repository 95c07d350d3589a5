//! Tests of the live page of a run: streamed text, questions, answers, the end, and a lost
//! connection.

use crate::server::page::Place;
use crate::support::{Model, call, say, shell, write};
use serde_json::json;
use std::sync::mpsc::channel;

#[test]
fn a_run_is_seen_as_it_happens_and_its_end_too() {
    long_test!();
    let (go, wait) = channel();
    let model = Model::thinking(move |_, count| match count {
        1 => (Some(write("done", "yes\n").saying("First I make the file.")), count),
        _ => {
            let _the_test_says_when = wait.recv();
            (Some(say("Now it is there.")), count)
        }
    });
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("---\nbaseline: never\n---\n# Make the file `done`");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story", "First I make the file.");
    browser.until_text(".story", "files-write");
    browser.until_text(".state", "running");
    browser.until_text(".state", "waiting for the model, turn 2");
    assert!(!browser.text(".story").contains("Now it is there."));
    go.send(()).unwrap();
    browser.until_text(".story", "Now it is there.");
    browser.until_text(".gate", "The gate passed, attempt 1");
    browser.until_text(".gate", "verify / there");
    browser.until_text(".state", "verified");
    browser.until("document.querySelectorAll('.story .end').length === 1");
    assert_eq!(browser.js("return document.querySelectorAll('.story .turn').length"), 2);
    assert!(browser.text("#news").contains("verified"), "the page announces the verdict");
    // The story from the journal is the same as the live one.
    let live = browser.text(".story");
    browser.js("location.reload()");
    browser.until("document.querySelector('.story .end') && document.querySelectorAll('.story .turn').length === 2");
    let again = browser.text(".story");
    let kept = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with("Turn ")).map(str::to_owned).collect()
    };
    assert_eq!(kept(&live), kept(&again));
    browser.must_be_silent();
}

#[test]
fn what_a_sub_agent_does_is_told_as_its_own_also_to_who_reads_it_later() {
    long_test!();
    let spawn = call("subagent-spawn", json!({ "task": "Make the file `done`.", "title": "The maker" }));
    let (go, wait) = channel();
    let model = Model::thinking(move |_, count| match count {
        1 => (Some(spawn.clone().saying("I have it made.")), count),
        2 => (Some(write("done", "yes\n").saying("I make it.")), count),
        3 => (Some(say("I made it.")), count),
        _ => {
            let _the_test_says_when = wait.recv();
            (Some(say("It was made.")), count)
        }
    });
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("# Have the file `done` made");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story", "I made it.");
    browser.until_text(".story", "The sub-agent ended");
    go.send(()).unwrap();
    browser.until_text(".state", "verified");
    let live = browser.text(".story");
    let order = [
        "I have it made.",
        "A sub-agent began",
        "I make it.",
        "files-write",
        "I made it.",
        "The sub-agent ended",
        "It was made.",
    ];
    let places: Vec<_> = order.map(|part| live.find(part).unwrap_or_else(|| panic!("{part}: {live}"))).into();
    assert!(places.is_sorted(), "{live}");
    let of_it = "return [...document.querySelectorAll('.story .turn.of')].map((turn) => turn.innerText).join('\\n')";
    let is_its_own =
        |told: &str| told.contains("I make it.") && told.contains("files-write") && !told.contains("It was made.");
    assert!(is_its_own(browser.js(of_it).as_str().unwrap()), "{live}");
    let ends = "return document.querySelectorAll('.story .end').length";
    browser.until("document.querySelector('.story .end')");
    assert_eq!(browser.js(ends), 1, "{}", browser.text(".story"));
    browser.js("location.reload()");
    browser.until("document.querySelector('.story .end')");
    assert_eq!(browser.js(ends), 1, "{}", browser.text(".story"));
    browser.click("summary", "The task");
    browser.until_text("main details pre", "# Have the file `done` made");
    assert!(is_its_own(browser.js(of_it).as_str().unwrap()), "{}", browser.text(".story"));
    browser.picture("sub-agent");
    browser.must_be_silent();
}

#[test]
fn who_comes_late_reads_what_was_said_before() {
    long_test!();
    let model = Model::new([
        write("done", "yes\n").saying("First I make the file."),
        say("Then I think aloud, and on and on").hanging(),
    ]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "waiting for the model, turn 2");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story", "First I make the file.");
    browser.until_text(".story", "Then I think aloud");
    assert_eq!(browser.js("return document.querySelectorAll('.story .turn').length"), 2);
    browser.must_be_silent();
}

#[test]
fn a_run_is_cancelled_once_that_is_confirmed() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([say("This takes long, and on and on").hanging()])) else {
        return;
    };
    let id = place.begin("# Wait");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story", "This takes long");
    browser.click("button", "Cancel the run…");
    browser.click("dialog button", "Keep running");
    browser.until("!document.querySelector('dialog')");
    browser.until_text(".state", "running");
    browser.click("button", "Cancel the run…");
    browser.click("dialog button", "Cancel the run");
    browser.until_text(".state", "cancelled");
    browser.until("![...document.querySelectorAll('main button')].some((b) => b.innerText.includes('Cancel') && b.checkVisibility())");
    browser.must_be_silent();
}

#[test]
fn what_a_run_asks_is_answered_on_the_page_with_yes_and_with_no_and_why() {
    long_test!();
    let model = Model::new([shell("echo one > one"), shell("echo two > two"), write("done", "yes\n"), say("Done.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("---\napprove: { ask: [shell-exec] }\n---\n# Make the file `done`");
    browser.until_text(".runs", "waits for you · 1 question");
    browser.until_text("#waiting", "1");
    browser.until("document.title.startsWith('(1) ')");
    browser.click(".top a", "Waiting");
    browser.until_text(".question", "echo one > one");
    browser.click(".question button", "Approve");
    browser.until_text("main", "echo two > two");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".question", "echo two > two");
    browser.js("document.querySelector('[name=why]').focus()");
    browser.press("one is enough");
    browser.click(".question button", "Deny");
    browser.until_text(".state", "verified");
    browser.until("!document.querySelector('.question') && document.getElementById('waiting').hidden");
    browser.until("!document.title.startsWith('(')");
    let story = browser.text(".story");
    assert!(story.contains("shell-exec was approved") && story.contains("shell-exec was denied"), "{story}");
    browser.until_text(".tools .why-not", "a person said no: one is enough");
    browser.click(".tools summary", "echo two");
    browser.until_text(".tools li details[open]", "a person said no: one is enough");
    browser.must_be_silent();
}

#[test]
fn a_lost_connection_is_seen_and_the_story_goes_on_when_the_server_is_back() {
    long_test!();
    let model = Model::new([
        write("done", "yes\n").saying("First I make the file."),
        say("Cut off in the middle of it").hanging(),
        say("Now it is there."),
    ]);
    let Some((mut place, browser)) = Place::open(model) else { return };
    let id = place.begin("# Make the file `done`");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story", "Cut off");
    place.stop();
    browser.until_text("#connection", "connection lost, trying again…");
    let position = "return getComputedStyle(document.getElementById('connection')).position";
    assert_eq!(browser.js(position), "fixed", "it is in view also after scrolling");
    place.serve();
    browser.until("document.getElementById('connection').dataset.state === 'live'");
    browser.until_text(".state", "verified");
    browser.until_text(".story", "Now it is there.");
    let story = browser.text(".story");
    assert_eq!(story.matches("First I make the file.").count(), 1, "{story}");
    assert_eq!(story.matches("Now it is there.").count(), 1, "{story}");
}
