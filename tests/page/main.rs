//! The page as people meet it: a real browser, driven by its WebDriver, against the built program with a scripted model on loopback.
//!
//! Needs `chromedriver` and Chromium; where they are not, each test says that it was skipped, and fails where
//! `FLEDGE_TEST_REQUIRE_BROWSER=1`. `FLEDGE_PAGE_SHOTS=FOLDER` has pictures of every view left there, at two widths, in light and in dark.
#![expect(clippy::disallowed_methods, reason = "tests start programs, read PATH and look at clocks")]
#![expect(clippy::print_stderr, reason = "what is not tried is said")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod browser;
mod forms;
mod hostile;
mod keys;
mod looks;
mod place;
mod runs;
mod stories;
#[path = "../it/support/mod.rs"]
#[expect(dead_code, unused_imports, reason = "what only the other tests need")]
mod support;
mod watched;
mod wire;

pub(crate) use browser::{Browser, browser};
pub(crate) use place::Place;
