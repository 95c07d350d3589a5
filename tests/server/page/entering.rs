//! Tests of entering by a link, and of the page without a session.

use crate::server::page::Place;
use crate::support::Model;

#[test]
fn a_used_link_enters_with_a_session_and_without_one_the_page_names_the_command() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([])) else { return };
    browser.until_text("#project", "project");
    browser.until("document.title === 'Runs · project · fledge'");
    let used = place.used_link();
    browser.go(&used);
    browser.until("location.pathname === '/' && document.getElementById('connection')?.dataset.state === 'live'");
    browser.must_be_silent();
    browser.click("#leave", "Sign out");
    browser.until_text("h1", "You are not signed in");
    let command = format!("fledge serve link -C {}", place.project().canonicalize().unwrap().display());
    assert_eq!(browser.text("pre"), command);
    let style = "const s = getComputedStyle(document.querySelector('pre')); return s.borderTopStyle + s.borderTopWidth";
    assert_eq!(browser.js(style), "solid1px", "the page has its style");
    assert_eq!(browser.js("return document.title"), "project · fledge");
    for (width, scheme) in [(360, "light"), (1280, "dark")] {
        browser.screen(width, scheme);
        browser.picture(&format!("locked-{width}-{scheme}"));
        let wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.js(wide), 0);
    }
    browser.go(&used);
    browser.until_text("h1", "This link no longer works");
    let made = place.fledge(&["serve", "link"]).output().unwrap();
    browser.go(String::from_utf8(made.stdout).unwrap().trim());
    browser.until("document.getElementById('connection')?.dataset.state === 'live'");
}
