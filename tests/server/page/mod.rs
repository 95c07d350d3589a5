//! Tests of the page in a real browser, driven by WebDriver, against the built program with a
//! scripted model on loopback.
//!
//! The tests need `chromedriver` and Chromium. Without them each test prints that it was skipped,
//! or fails if `FLEDGE_TEST_REQUIRE_BROWSER=1`. `FLEDGE_TEST_SHOTS=FOLDER` saves pictures of each
//! view in that folder, at two widths, in light and in dark.

mod actions;
mod browser;
mod changes;
mod entering;
mod forms;
mod hostile;
mod keys;
mod looks;
mod place;
mod runs;
mod stories;
mod watched;
mod wire;

pub(crate) use browser::{Browser, browser};
pub(crate) use place::Place;
