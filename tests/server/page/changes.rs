//! Tests of the page of a run: its changes, its time, and the logs of its gate.

use crate::server::page::Place;
use crate::support::{Model, git, say, write};

#[test]
fn the_changes_view_has_a_file_tree_line_numbers_colours_and_two_columns() {
    long_test!();
    let code = "//! Notes.\npub fn answer() -> u64 {\n    42 // <b>that</b>\n}\n";
    // Carriage returns in a file, and file names that are properties of JavaScript objects, must
    // not hide later changes.
    let hidden = write("src/deep/a.constructor", "harmless\rdiff --git a/other b/other\nbackdoor\n");
    let model = Model::new([write("src/deep/notes.rs", code), hidden, write("done", "yes\n"), say("Done.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "verified");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".tree", "src/deep/");
    browser.until_text(".changes", "3 files +7 −0");
    browser.until_text(".file[open]:last-child table.code.sides", "pub fn answer()");
    browser.until_text(".file[open]:nth-last-child(2)", "backdoor");
    let numbers = "return [...document.querySelectorAll('table.code tr')].map((row) => row.lastChild.previousSibling?.dataset?.no).filter(Boolean)";
    let numbers = browser.js(numbers);
    assert!(numbers.as_array().unwrap().iter().any(|number| number == "4"), "{numbers}");
    let kinds =
        "return ['keyword', 'digit', 'comment'].map((kind) => document.querySelector(`.code .${kind}`)?.innerText)";
    assert_eq!(browser.js(kinds), serde_json::json!(["pub", "42", "//! Notes."]));
    browser.until_text(".files", "// <b>that</b>");
    assert_eq!(browser.js("return document.querySelectorAll('.code b').length"), 0);
    browser.js("document.querySelector('[name=sides]').click()");
    browser.until("!document.querySelector('table.code.sides') && document.querySelector('table.code')");
    browser.click(".tree button", "notes.rs");
    browser.until(
        "document.activeElement.matches('details.file') && document.activeElement.innerText.includes('notes.rs')",
    );
    browser.js("document.querySelector('[name=sides]').click()");
    browser.screen(700, "light");
    browser.until("!document.querySelector('table.code.sides') && !document.querySelector('[name=sides]').checked");
    browser.screen(1280, "light");
    browser.until("document.querySelector('table.code.sides')");
    // What is folded is open before the event returns, because the print begins then.
    let all = "[...document.querySelectorAll('main details')]";
    let print = format!(
        "window.dispatchEvent(new Event('beforeprint')); return {all}.every((part) => part.open && part.children.length > 1)"
    );
    assert_eq!(browser.js(&print), true);
    browser.print();
    let hidden = "return [...document.querySelectorAll('main table.code, main pre')].filter((part) =>
        !part.hidden && part.textContent.trim() && (part.offsetHeight === 0 || part.scrollHeight > part.clientHeight + 1)).map((part) => part.outerHTML.slice(0, 200))";
    assert_eq!(browser.js(hidden), serde_json::json!([]));
    browser.js("window.dispatchEvent(new Event('afterprint'))");
    browser.until(&format!("!{all}.every((part) => part.open)"));
    browser.must_be_silent();
}

#[test]
fn turns_and_gates_are_bars_over_time_that_lead_to_their_place_in_the_story() {
    long_test!();
    let model = Model::new([say("I think that I am done."), write("done", "yes\n"), say("Now I am.")]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "verified");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until_text(".timeline .names", "Attempt 2");
    let bars =
        "return [...document.querySelectorAll('.bar')].map((bar) => bar.getAttribute('aria-label').split(' · ')[0])";
    let expected = ["Turn 1", "Gate failed", "Turn 2", "Turn 3", "Gate passed"];
    assert_eq!(browser.js(bars), serde_json::json!(expected));
    browser.js("document.querySelectorAll('.bar')[1].dispatchEvent(new MouseEvent('click'))");
    browser.until("document.activeElement.matches('.gate.lead[data-state=failed]')");
    browser.js("document.querySelector('.bar[tabindex=\"0\"]').focus()");
    browser.press("\u{e014}\u{e014}\u{e007}"); // right arrow, twice, and Enter
    browser
        .until("document.activeElement.matches('.turn.lead') && document.activeElement.innerText.includes('Turn 2')");
    browser.until("document.querySelector('.spending').getAttribute('aria-label').includes('over time')");
    browser.must_be_silent();
}

#[test]
fn a_log_has_its_colours_is_searched_and_each_of_its_lines_has_an_address() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([write("done", "yes\n"), say("Done.")])) else { return };
    let colours = r"\033[1;31mred <b>\033[0m plain \033[41;97mlabel\033[0m \033[7mturned\033[27m \033[38;5;46mgreen\033[38;2;255;140;0morange\033[0m";
    let command = format!("printf '{colours}\\n'; seq 1 300; test -e done");
    place.file("lanes/verify.yaml", &format!("steps:\n  - name: there\n    run: |\n      {command}\n"));
    git(&place.project(), &["commit", "-qam", "A talkative lane"]);
    let id = place.begin("# Make the file `done`");
    browser.until_text(".runs", "verified");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.click(".gate[data-state=passed] summary", "verify / there");
    browser.click(".gate[data-state=passed] a", "Whole log");
    browser.until_text(".log .ink-1.bold", "red <b>");
    let coloured = ["on-1", "on-ink", "ink-2", "ink-3"].map(|class| browser.text(&format!(".log .{class}")));
    assert_eq!(coloured, ["label", "turned", "green", "orange"]);
    assert_eq!(browser.js("return document.querySelectorAll('.log b').length"), 0);
    browser.js("document.querySelector('[name=q]').focus()");
    browser.press("25");
    browser.until_text(".log .hit", "25");
    browser.until_text("form [role=status]", "1 of 13 matching lines");
    let painted = "return [...CSS.highlights.get('found')].map(String).join()";
    assert_eq!(browser.js(painted), vec!["25"; 13].join(","));
    browser.click("form button", "Next");
    browser.until_text(".log .hit", "125");
    browser.js("document.querySelector('.log li:nth-child(7) a').click()");
    browser.until("location.hash.endsWith('.log?line=7')");
    browser.js("location.reload()");
    browser.until("document.querySelector('.log li:nth-child(7)')?.matches('.hit')");
    browser.picture("log");
    browser.must_be_silent();
}
