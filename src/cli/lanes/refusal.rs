//! Output for a lane that was refused or lost before a verdict, in every requested form. Without
//! it, the files of an earlier run would be taken for the result of this one.

use super::super::failure::CliError;
use super::super::output::hear_out;
use super::super::paint;
use super::super::results::below_checkout;
use super::data::LaneData;
use super::files::{LaneResultFiles, OutputPlace};
use super::output::LaneOutputArguments;
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::gate::GateError;
use crate::report::lane::{LaneResult, github};
use crate::report::lane_data;
use std::path::Path;

/// The request that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refused<'a> {
    /// The name of the lane.
    pub(super) lane: &'a str,
    pub(super) root: &'a Path,
    pub(super) voice: &'a LaneOutputArguments,
    /// True for a dry run, which writes no files.
    pub(super) is_dry: bool,
}

impl Refused<'_> {
    /// Reports the failure. Prints errors of this report on standard error, because the failure
    /// itself determines the exit code.
    pub(super) async fn report(&self, failure: &CliError, environment: &EnvironmentLayer, stop: &StopToken) {
        let (word, data_word) = words(failure);
        let message = failure.message();
        let at = failure.cause::<GateError>().and_then(GateError::place);
        let result = LaneResult {
            lane: self.lane,
            word,
            passed: false,
            duration_ms: 0,
            steps: &[],
            retried: &[],
            why: &message,
            before: "",
            at,
        };
        let files = if self.is_dry { LaneResultFiles::default() } else { self.voice.sound_places(environment) };
        let data = LaneData::new(self.voice.json, files.are_wanted());
        data.ended(&[], || {
            let mut object = lane_data::unbegun(self.lane, data_word, failure.code(), &message);
            if self.is_dry {
                object["dry_run"] = true.into();
            }
            object
        });
        for (place, text) in files.texts(&result) {
            match place {
                OutputPlace::Stderr => paint::log(&text),
                OutputPlace::Stdout | OutputPlace::File(_) | OutputPlace::EndOf(_) => data.text(place, text),
            }
        }
        if paint::is_runner(environment) {
            let below = below_checkout(environment, self.root);
            github::annotations(&result, &below).iter().for_each(|command| paint::command(command));
        }
        hear_out(stop, data.wait_until_written()).await;
        if let Some(unwritten) = data.failure() {
            unwritten.show();
        }
    }
}

/// Returns the word for people and the word in JSON.
fn words(failure: &CliError) -> (&'static str, &'static str) {
    match failure.code() {
        2 => ("was refused", "refused"),
        130 | 143 => ("was cancelled before it began", "cancelled"),
        _ => ("could not run", "could_not_run"),
    }
}
