//! A browser without a window, driven over the WebDriver protocol (W3C) as `chromedriver` speaks it.

use super::wire::exchange;
use crate::support::{Need, PATIENCE, becomes_by, place, record_time};
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Keys, as WebDriver names them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

/// The pause between two questions to a page.
const TICK: Duration = Duration::from_millis(20);

/// A browser; it is gone when it is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

/// Opens one; nothing where the machine has none.
pub(crate) fn browser() -> Option<Browser> {
    record_time();
    let (driver, program) =
        (found("chromedriver"), ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(found));
    let (Some(driver), Some(program)) = (driver, program) else {
        Need::Browser.lacks("there is no `chromedriver`, or no Chromium");
        return None;
    };
    // The port that it takes may be taken by another one meanwhile, often where many suites run.
    let mut driven = None;
    let begins = becomes_by(TICK, || {
        driven = started(&driver);
        driven.is_some()
    });
    assert!(begins, "chromedriver has not begun in {PATIENCE:?}");
    let (driver, address) = driven.unwrap();
    // Root may not build Chromium's own sandbox; there is little shared memory in containers.
    // What asks the network by itself is off.
    let args = [
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--window-size=1280,900",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        "--disable-sync",
        "--force-prefers-reduced-motion",
        "--no-first-run",
    ];
    let options = json!({ "args": args, "binary": program });
    let wanted =
        json!({ "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
    let mut browser = Browser { driver, address, session: String::new() };
    let begun = browser.ask("POST", "", &json!({ "capabilities": { "alwaysMatch": wanted } }));
    begun["sessionId"].as_str().unwrap().clone_into(&mut browser.session);
    Some(browser)
}

/// Starts the driver at a free port; nothing where that was not free.
fn started(program: &Path) -> Option<(Child, SocketAddr)> {
    let mut command = Command::new(program);
    command.env("TMPDIR", place()); // for the profile
    command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut driver = command.spawn().unwrap();
    let mut said = BufReader::new(driver.stdout.take().unwrap()).lines();
    let port = |line: String| {
        line.strip_prefix("ChromeDriver was started successfully on port ")?.trim_end_matches('.').parse().ok()
    };
    let Some(port) = said.find_map(|line| port(line.unwrap())) else {
        let _it_has_ended = driver.kill();
        let _its_end_says_nothing = driver.wait();
        return None;
    };
    std::thread::spawn(move || said.for_each(drop)); // it may go on talking
    Some((driver, SocketAddr::from(([127, 0, 0, 1], port))))
}

/// A program of the search path.
fn found(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|program| program.is_file())
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() || !self.session.is_empty() {
            let path = format!("/session/{}", self.session);
            let _it_may_be_gone =
                std::panic::catch_unwind(|| exchange(self.address, "DELETE", &path, None, &Value::Null));
        }
        let _it_may_have_ended = self.driver.kill();
        let _it_may_have_been_waited_for = self.driver.wait();
    }
}

impl Browser {
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let (status, value) = self.answer(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {value:#}");
        value
    }

    /// The status and the value of the driver's answer.
    fn answer(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let session = if self.session.is_empty() { String::new() } else { format!("/{}", self.session) };
        let (status, mut answer) = exchange(self.address, method, &format!("/session{session}{path}"), None, body);
        (status, answer["value"].take())
    }

    /// Goes to an address.
    #[track_caller]
    pub(crate) fn go(&self, url: &str) {
        self.ask("POST", "/url", &json!({ "url": url }));
    }

    /// Opens one more tab and looks at it; gives its name.
    #[track_caller]
    pub(crate) fn tab(&self) -> Value {
        let opened = self.ask("POST", "/window/new", &json!({ "type": "tab" }));
        self.look_at(&opened["handle"]);
        opened["handle"].clone()
    }

    /// The name of the tab that is looked at.
    #[track_caller]
    pub(crate) fn this_tab(&self) -> Value {
        self.ask("GET", "/window", &Value::Null)
    }

    /// Looks at another tab from now on.
    #[track_caller]
    pub(crate) fn look_at(&self, tab: &Value) {
        self.ask("POST", "/window", &json!({ "handle": tab }));
    }

    /// Closes a tab; none is looked at then.
    #[track_caller]
    pub(crate) fn close(&self, tab: &Value) {
        self.look_at(tab);
        self.ask("DELETE", "/window", &Value::Null);
    }

    /// Runs a function's body in the page; gives what it returns.
    #[track_caller]
    pub(crate) fn js(&self, body: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// Waits until an expression in the page is true.
    #[track_caller]
    pub(crate) fn until(&self, holds: &str) {
        // The page looks by itself, since each question from here wakes four processes. It looks for five seconds at a
        // time.
        let script = format!(
            "const [done] = arguments, begun = Date.now();
            const look = () => {{
                try {{
                    if ({holds}) return done(true);
                }} catch (error) {{
                    return done(String(error));
                }}
                if (Date.now() - begun > 5000) return done(false);
                setTimeout(look, 20);
            }};
            look();"
        );
        let body = json!({ "script": script, "args": [] });
        let looks = || match self.answer("POST", "/execute/async", &body) {
            (200, Value::String(error)) => panic!("{holds}: {error}"),
            // The page was left before it answered.
            (500, _) => false,
            (status, said) => {
                assert_eq!(status, 200, "{holds}: {said:#}");
                said == json!(true)
            }
        };
        if !becomes_by(TICK, looks) {
            panic!("it never was so that {holds}:\n{}\n{:#?}", self.text("body"), self.console());
        }
    }

    /// Waits until the text of an element has this in it.
    #[track_caller]
    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.until(&format!("document.querySelector({selector})?.innerText.includes({text})"));
    }

    /// What is to be read in an element.
    #[track_caller]
    pub(crate) fn text(&self, selector: &str) -> String {
        let said = self.js(&format!("return document.querySelector({})?.innerText", json!(selector)));
        said.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element that there is with this text, of those that the selector finds.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        let find = format!(
            "[...document.querySelectorAll({selector})].find((e) => e.innerText.includes({text}) && e.checkVisibility())"
        );
        self.until(&find);
        // Clear of the header, which stays at the top.
        let element =
            self.js(&format!("const found = {find}; found.scrollIntoView({{ block: 'center' }}); return found"));
        let id = element.as_object().and_then(|element| element.values().next()).and_then(Value::as_str).unwrap();
        self.ask("POST", &format!("/element/{id}/click"), &json!({}));
    }

    /// Types into the element that has the focus.
    #[track_caller]
    pub(crate) fn press(&self, keys: &str) {
        let strokes =
            |key: char| [json!({ "type": "keyDown", "value": key }), json!({ "type": "keyUp", "value": key })];
        let strokes: Vec<Value> = keys.chars().flat_map(strokes).collect();
        self.ask("POST", "/actions", &json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] }));
    }

    /// Sets what the browser is told of the screen and of its owner's wishes.
    #[track_caller]
    pub(crate) fn screen(&self, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let still = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }, still]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    #[track_caller]
    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.ask("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Leaves a picture of the whole page in the folder that `FLEDGE_TEST_SHOTS` names, where it
    /// names one.
    #[track_caller]
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("FLEDGE_TEST_SHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        // What is out of sight is not painted: all of it is brought into sight, and painted twice.
        let size = "return [document.documentElement.clientWidth, document.documentElement.scrollHeight]";
        let painted = "return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        for _until_it_is_as_tall_as_all_that_was_painted in 0..2 {
            let [width, height] = [0, 1].map(|at| self.js(size)[at].clone());
            let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
            self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
            self.js(painted);
        }
        let taken = self.devtools("Page.captureScreenshot", &json!({}));
        let bytes = base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().unwrap()).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), bytes).unwrap();
    }

    /// What the console has told since it was asked last: errors of scripts, of what was loaded, and of what the policy forbids.
    #[track_caller]
    pub(crate) fn console(&self) -> Vec<String> {
        let said = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let all = said.as_array().unwrap().iter();
        all.map(|entry| format!("{}: {}", entry["level"], entry["message"])).collect()
    }

    /// Fails where the console has told anything.
    #[track_caller]
    pub(crate) fn must_be_silent(&self) {
        assert_eq!(self.console(), Vec::<String>::new());
    }
}
