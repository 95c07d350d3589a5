//! Tests of hostile text: the page shows all text of agents, models and tools as text.

use crate::server::page::Place;
use crate::support::{Model, say, shell, write};

const EVIL: &str = "<img src=x onerror='window.hacked=1'><script>window.hacked=2</script>";

#[test]
fn markup_in_titles_texts_arguments_and_output_stays_text_and_what_hides_is_shown() {
    long_test!();
    let printed = "printf '%s' \"<b id=evil>bold</b>\" | tee done; printf '\\033[31mred\\n'";
    let model = Model::new([
        shell(printed).saying(&format!("{EVIL} \u{202e}turned\u{200b}")),
        write(&format!("{EVIL}.txt").replace('/', "-"), "x\n"),
        say(EVIL),
    ]);
    let Some((place, browser)) = Place::open(model) else { return };
    let id = place.begin(&format!("# {EVIL} \u{202e}live\n\n{EVIL}"));
    browser.until_text(".runs", "onerror='window.hacked=1'");
    browser.until_text(".runs", "⟨U+202E⟩live");
    browser.go(&place.page(&format!("#/runs/{id}")));
    browser.until("document.querySelector('.story .end')");
    browser.js("document.querySelectorAll('details').forEach((d) => { d.open = true; })");
    browser.until_text(".story", "<b id=evil>bold</b>");
    browser.until_text(".story", "⟨U+202E⟩turned⟨U+200B⟩");
    browser.until_text("h1", "⟨U+202E⟩live");
    let made = "return document.querySelectorAll('main img, main script, #evil, main [onerror]').length + (window.hacked ?? 0)";
    assert_eq!(browser.js(made), 0);
    let hidden = "return /[\\u0000-\\u0008\\u000b-\\u001f\\u202a-\\u202e\\u2066-\\u2069]/.test(document.body.textContent + document.title)";
    assert_eq!(browser.js(hidden), false);
    browser.must_be_silent();
}

#[test]
fn the_page_runs_no_script_but_its_own() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([])) else { return };
    // The policy blocks each way to load a script. Some ways throw; the others report the violation
    // and do nothing.
    browser.js(
        "const script = (set) => { const made = document.createElement('script'); set(made); document.head.append(made); };
         const ways = [
           () => script((made) => { made.textContent = 'window.hacked = 1'; }),
           () => script((made) => { made.src = 'http://127.0.0.1:9/x.js'; }),
           () => { document.body.innerHTML = '<img src=x onerror=\"window.hacked = 2\">'; },
           () => { document.body.setAttribute('onclick', 'window.hacked = 3'); document.body.click(); },
         ];
         for (const way of ways) try { way(); } catch {}
         fetch('http://127.0.0.1:9/').catch(() => { window.refused = true; });",
    );
    browser.until("window.refused");
    assert_eq!(browser.js("return window.hacked ?? 0"), 0);
    let told = browser.console().join("\n");
    assert!(told.contains("Content Security Policy"), "{told}");
    drop(place);
}
