//! A browser without a window, driven over the WebDriver protocol (W3C) as `chromedriver` speaks
//! it.

use super::wire::exchange;
use crate::support::{Need, PATIENCE, becomes_by, place, record_time};
use base64::Engine as _;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Keys, as WebDriver encodes them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";

/// The pause between two polls of a page.
const TICK: Duration = Duration::from_millis(20);

/// A browser, which is closed when it is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
}

/// Opens a browser. Returns `None` if the machine has none.
pub(crate) fn browser() -> Option<Browser> {
    record_time();
    let (driver, program) =
        (found("chromedriver"), ["chromium", "chromium-browser", "google-chrome"].into_iter().find_map(found));
    let (Some(driver), Some(program)) = (driver, program) else {
        Need::Browser.lacks("no `chromedriver`, or no Chromium");
        return None;
    };
    // Another program can take the free port first, often if many suites run at once.
    let mut driven = None;
    let begins = becomes_by(TICK, || {
        driven = started(&driver);
        driven.is_some()
    });
    assert!(begins, "chromedriver has not begun in {PATIENCE:?}");
    let (driver, address) = driven.unwrap();
    // Root may not start Chromium's own sandbox, and containers have little shared memory.
    // Background network requests are off.
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

/// Starts the driver at a free port. Returns `None` if another program took the port.
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
    std::thread::spawn(move || said.for_each(drop)); // drains the pipe, so that the driver never blocks
    Some((driver, SocketAddr::from(([127, 0, 0, 1], port))))
}

/// Returns the path of a program of the search path.
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

    /// Returns the status and the value of the driver's answer.
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

    /// Opens a tab and switches to it. Returns its name.
    #[track_caller]
    pub(crate) fn tab(&self) -> Value {
        let opened = self.ask("POST", "/window/new", &json!({ "type": "tab" }));
        self.look_at(&opened["handle"]);
        opened["handle"].clone()
    }

    /// Returns the name of the current tab.
    #[track_caller]
    pub(crate) fn this_tab(&self) -> Value {
        self.ask("GET", "/window", &Value::Null)
    }

    /// Switches to another tab.
    #[track_caller]
    pub(crate) fn look_at(&self, tab: &Value) {
        self.ask("POST", "/window", &json!({ "handle": tab }));
    }

    /// Closes a tab. No tab is current then.
    #[track_caller]
    pub(crate) fn close(&self, tab: &Value) {
        self.look_at(tab);
        self.ask("DELETE", "/window", &Value::Null);
    }

    /// Runs the body of a function in the page. Returns its result.
    #[track_caller]
    pub(crate) fn js(&self, body: &str) -> Value {
        self.ask("POST", "/execute/sync", &json!({ "script": body, "args": [] }))
    }

    /// Waits until an expression in the page is true.
    #[track_caller]
    pub(crate) fn until(&self, holds: &str) {
        // The page polls, since each request from here wakes four processes. One request polls for
        // five seconds.
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
            // The page changed before it answered.
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

    /// Waits until the text of an element contains this text.
    #[track_caller]
    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        self.until(&format!("document.querySelector({selector})?.innerText.includes({text})"));
    }

    /// Returns the visible text of an element.
    #[track_caller]
    pub(crate) fn text(&self, selector: &str) -> String {
        let said = self.js(&format!("return document.querySelector({})?.innerText", json!(selector)));
        said.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks the first element with this text among those that match the selector.
    #[track_caller]
    pub(crate) fn click(&self, selector: &str, text: &str) {
        let (selector, text) = (json!(selector), json!(text));
        let find = format!(
            "[...document.querySelectorAll({selector})].find((e) => e.innerText.includes({text}) && e.checkVisibility())"
        );
        self.until(&find);
        // The header stays at the top and would cover the element.
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

    /// Sets the width of the screen and the color scheme, and reduces motion.
    #[track_caller]
    pub(crate) fn screen(&self, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let still = json!({ "name": "prefers-reduced-motion", "value": "reduce" });
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }, still]);
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Shows the page as it is printed.
    #[track_caller]
    pub(crate) fn print(&self) {
        self.devtools("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
    }

    #[track_caller]
    fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.ask("POST", "/goog/cdp/execute", &json!({ "cmd": command, "params": parameters }))
    }

    /// Saves a picture of the whole page in the folder that `FLEDGE_TEST_SHOTS` names, if it is
    /// set.
    #[track_caller]
    pub(crate) fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("FLEDGE_TEST_SHOTS").map(PathBuf::from) else { return };
        std::fs::create_dir_all(&folder).unwrap();
        // Chromium does not paint beyond the screen, so the screen grows to the size of the page
        // and the page is painted twice.
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

    /// Returns the console messages since the last call: errors of scripts and of loading, and
    /// violations of the policy.
    #[track_caller]
    pub(crate) fn console(&self) -> Vec<String> {
        let said = self.ask("POST", "/se/log", &json!({ "type": "browser" }));
        let all = said.as_array().unwrap().iter();
        all.map(|entry| format!("{}: {}", entry["level"], entry["message"])).collect()
    }

    /// Fails if the console has messages.
    #[track_caller]
    pub(crate) fn must_be_silent(&self) {
        assert_eq!(self.console(), Vec::<String>::new());
    }
}
