//! Tests of the layout: nothing is wider than a phone, and each text has enough contrast, in light
//! and in dark.

use crate::server::page::{Browser, Place};
use crate::support::{Model, say, shell, write};
use serde_json::json;

/// Finds texts with a contrast (WCAG 2.2, 1.4.3) below 4.5, or below 3 if they are large.
const FAINT: &str = "
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgb = (colour) => {
      canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
      return [...canvas.getImageData(0, 0, 1, 1).data];
    };
    const ground = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = rgb(getComputedStyle(at).backgroundColor);
        if (colour[3] > 250) return colour;
      }
      return [255, 255, 255, 255];
    };
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
      const element = walk.currentNode.parentElement;
      if (!walk.currentNode.data.trim() || !element.checkVisibility() || element.closest('.unseen, noscript, button:disabled, svg, option')) continue;
      const style = getComputedStyle(element);
      const [one, other] = [light(rgb(style.color)), light(ground(element))].sort((a, b) => b - a);
      const wanted = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
      if ((one + 0.05) / (other + 0.05) < wanted) found.push(`${walk.currentNode.data.trim()}: ${style.color} ${((one + 0.05) / (other + 0.05)).toFixed(2)}`);
    }
    return found;";

/// Finds elements that extend beyond the right edge.
const WIDE: &str = "
    const root = document.documentElement;
    if (root.scrollWidth <= root.clientWidth) return [];
    return [...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1).map((e) => e.outerHTML.slice(0, 200));";

/// Finds texts that a capture of the whole page does not show: the header covers them after
/// scrolling, or they are cut off.
const CUT: &str = "
    scrollTo(0, document.documentElement.scrollHeight);
    const moved = document.querySelector('.top').getBoundingClientRect().top + scrollY;
    if (moved !== 0) return [`the header is ${moved} pixels below the top`];
    return [...document.querySelectorAll('main pre')].filter((e) => e.checkVisibility() && !e.closest('.questions.stays')
      && e.scrollHeight > e.clientHeight + 1).map((e) => e.innerText.slice(0, 80));";

#[track_caller]
fn must_fit(browser: &Browser, view: &str) {
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })");
    for (width, scheme) in [(360, "light"), (360, "dark"), (1280, "light"), (1280, "dark")] {
        browser.screen(width, scheme);
        assert_eq!(browser.js(WIDE), json!([]), "{view} {width}: too wide");
        assert_eq!(browser.js(FAINT), json!([]), "{view} {scheme}: too faint");
        assert_eq!(browser.js(CUT), json!([]), "{view} {width}: cut off");
        browser.picture(&format!("{}-{width}-{scheme}", view.trim_start_matches("#/").replace(' ', "-")));
    }
    let ground = browser.js("return getComputedStyle(document.documentElement).backgroundColor");
    assert_ne!(ground, "rgb(255, 255, 255)", "dark is dark");
}

#[test]
fn every_view_fits_a_phone_and_can_be_read_in_light_and_dark() {
    long_test!();
    let long = "x".repeat(400);
    let model = Model::new([
        shell(&format!("echo {long}; seq 1 60; false")).saying(&format!("Look: {long}")),
        say("I am done, or so I think."),
        write("done", "yes\n"),
        say("Now."),
        shell("echo ask"),
    ]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin(&format!("# Make the file {long}"));
    browser.until_text(".runs", "verified");
    must_fit(&browser, "runs");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".story .end", "verified");
    browser.until_text(".gate[data-state=failed]", "attempt 1");
    must_fit(&browser, "a run");
    let asking = place.begin("---\napprove: { ask: [shell-exec] }\n---\n# Ask");
    browser.go(&place.page(&format!("#/runs/{asking}")));
    browser.until_text(".question", "echo ask");
    must_fit(&browser, "a question");
    for (slug, heard) in
        [("backup", ["ok", "ok", "error", "ok"]), ("certificates", ["ok", "in_progress", "ok", "error"])]
    {
        let monitor =
            json!({ "slug": slug, "name": format!("The {slug} of {}", &long[..150]), "schedule": "every 1h" });
        place.api("POST", "/v1/monitors", &monitor);
        for status in heard {
            let said = json!({ "status": status, "duration_ms": 1500 });
            place.api("POST", &format!("/v1/monitors/{slug}/checkins"), &said);
        }
    }
    for (view, shown) in
        [("#/waiting", "echo ask"), ("#/jobs", "Jobs"), ("#/monitors", "certificates"), ("#/new", "Budget")]
    {
        browser.go(&place.page(view));
        browser.until_text("main", shown);
        must_fit(&browser, view);
    }
}
