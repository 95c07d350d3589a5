//! The page as people meet it: a real browser, driven by its WebDriver, against the built program with a scripted model on loopback.
//!
//! Needs `chromedriver` and Chromium; where they are not, each test says that it was skipped, and
//! fails where `FLEDGE_TEST_REQUIRE_BROWSER=1`. `FLEDGE_TEST_SHOTS=FOLDER` has pictures of every
//! view left there, at two widths, in light and in dark.

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
