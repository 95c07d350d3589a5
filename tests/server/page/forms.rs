//! Tests of starting a run from the page.

use crate::server::page::{Browser, Place};
use crate::support::{Model, needs, say, write};

#[test]
fn a_task_with_mistakes_is_told_line_by_line_and_a_good_one_begins() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([write("done", "yes\n"), say("Done.")])) else { return };
    browser.click(".top a", "New run");
    browser.until("document.querySelector('[name=task]')");
    let asks = "document.querySelector('[name=params]').checkVisibility()";
    browser.until(&format!("!{asks}"));
    browser.js("document.querySelector('[name=task]').focus()");
    browser.press("---\nparams: {}");
    browser.until(asks);
    browser.js("const t = document.querySelector('[name=task]'); t.value = ''; t.dispatchEvent(new Event('input'))");
    browser.until(&format!("!{asks}"));
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=task] ~ .fault", "Describe what to do.");
    browser.js("document.querySelector('[name=task]').focus()");
    browser.press("---\nmax_retrys: 1\n---\n# Make the file");
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=task] ~ .fault", "max_retrys");
    browser.click(".fault button", "line 2");
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
    choose(&browser, "choice", "?");
    browser.js("document.querySelector('[name=path]').focus()");
    browser.press("../../etc/passwd");
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=path] ~ .fault", "../../etc/passwd");
    assert_eq!(browser.js("return document.activeElement.name"), "path", "one is led to what is wrong");
    fill(&browser, "path", "make.md");
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=params] ~ .fault", "the parameter `what` is required");
    fill(&browser, "params", "what=the file");
    browser.click("form.begin button", "Begin");
    browser.until_text("h1", "Make the file");
    browser.until_text(".state", "verified");
}

#[test]
fn the_form_selects_a_task_and_its_values_and_shows_each_fault_at_its_field() {
    long_test!();
    let Some((place, browser)) = Place::open(Model::new([write("done", "yes\n"), say("Done.")])) else { return };
    let params = "what: { required: true, description: Its name }, how: { choices: [well, badly], default: well }";
    place.file("tasks/make.md", &format!("---\nparams: {{ {params} }}\n---\n# Make {{{{ what }}}} {{{{ how }}}}\n"));
    place.file("tasks/dear.md", "---\nbudget: { usd: 2.50 }\n---\n# Make it\n");
    place.file("tasks/wrong.md", "---\nmax_retrys: 1\n---\n# Wrong\n");
    browser.go(&place.page("#/new"));
    choose(&browser, "choice", "tasks/wrong.md");
    browser.until_text("[name=choice] ~ .fault", "max_retrys");
    choose(&browser, "choice", "tasks/dear.md");
    let usual = |menu: &str| browser.js(&format!("return document.querySelector('[name={menu}]').options[0].text"));
    assert_eq!([usual("lane"), usual("budget")], ["Of the task: verify", "Of the task: at most $2.50"]);
    choose(&browser, "choice", "tasks/make.md");
    assert_eq!(usual("budget"), "No limit");
    assert!(usual("model").as_str().unwrap().starts_with("Default: "), "{}", usual("model"));
    browser.until("document.querySelector('[name=choice] ~ .fault').hidden");
    browser.until("!document.querySelector('[name=task]').checkVisibility()");
    browser.click("form.begin summary", "Text");
    browser.until_text("form.begin details pre", "# Make {{ what }} {{ how }}");
    browser.until_text("[name=param-what] ~ .help", "Its name");
    choose(&browser, "budget", "?");
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=param-what] ~ .fault", "This parameter needs a value.");
    browser.until_text("[name=usd] ~ .fault", "Enter an amount above 0.");
    assert_eq!(browser.js("return document.activeElement.name"), "param-what");
    assert_eq!(browser.js("return document.activeElement.getAttribute('aria-invalid')"), "true");
    browser.press("the file");
    choose(&browser, "budget", "");
    choose(&browser, "param-how", "badly");
    choose(&browser, "lane", "verify");
    let models = "return [...document.querySelector('[name=model]').options].map((one) => one.value)";
    let models = browser.js(models);
    let model = models[1].as_str().unwrap_or_else(|| panic!("{models}"));
    choose(&browser, "model", model);
    place.file("lanes/verify.yaml", "steps: [");
    browser.click("form.begin button", "Begin");
    browser.until_text("[name=lane] ~ .fault", "there is no lane `verify`");
    place.file("lanes/verify.yaml", &needs("done"));
    browser.click("form.begin button", "Begin");
    browser.until_text("h1", "Make the file badly");
    browser.until_text(".state", "verified");
    browser.until_text(".facts", model);
}

/// Chooses an option of a menu.
#[track_caller]
fn choose(browser: &Browser, menu: &str, value: &str) {
    browser.until(&format!("document.querySelector('[name={menu}] option[value=\"{value}\"]')"));
    browser.js(&format!(
        "const menu = document.querySelector('[name={menu}]'); menu.value = '{value}';
         ['input', 'change'].forEach((name) => menu.dispatchEvent(new Event(name, {{ bubbles: true }})))"
    ));
}

/// Types into a field.
#[track_caller]
fn fill(browser: &Browser, field: &str, text: &str) {
    browser.js(&format!("document.querySelector('[name={field}]').value = '{text}'"));
}
