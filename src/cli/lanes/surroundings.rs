//! The surroundings of a lane's steps in a clean room, as far as they are known in advance:
//! programs, installed dependencies, ignored files, caches, network and variables.

use super::super::paint;
use crate::config::EnvironmentLayer;
use crate::driver::StopToken;
use crate::gate::{self, RoomContents};
use crate::lane::Lane;
use crate::lane_runner::OFFLINE;
use crate::process::find_program;
use crate::workspace::listed_paths;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Variables that name private folders in a room.
const PRIVATE: [&str; 2] = ["HOME", "TMPDIR"];

/// The surroundings of steps in a clean room.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// The programs that steps name, with their paths for a run by hand.
    programs: BTreeMap<String, Option<PathBuf>>,
    contents: RoomContents,
    has_network: bool,
    has_setup: bool,
    /// The variables that only steps run by hand have.
    removed: Vec<String>,
    /// The variables that only steps behind a sandbox have.
    added: Vec<String>,
}

impl Surroundings {
    /// Examines the project and the search path. Starts no program but git.
    pub(super) async fn look(root: &Path, lane: &Lane, environment: &EnvironmentLayer, stop: &StopToken) -> Self {
        let env: Vec<(String, String)> = environment.hand_env().into_iter().collect();
        let steps = environment.step_env();
        let path = steps.get("PATH").map_or("", String::as_str);
        let paths = listed_paths(root, &env, stop.token()).await;
        let named = lane.setup.iter().chain(&lane.steps).flat_map(|step| step.programs());
        let offline = OFFLINE.iter().filter(|(name, _)| !lane.network && !steps.contains_key(*name));
        let offline = offline.map(|(name, value)| format!("{name}={value}"));
        Self {
            programs: named.map(|name| (name.to_owned(), find_program(name, path))).collect(),
            contents: gate::room_contents(root, lane, &paths),
            has_network: lane.network,
            has_setup: !lane.setup.is_empty(),
            removed: environment.kept_from_steps().map(str::to_owned).collect(),
            added: PRIVATE.map(str::to_owned).into_iter().chain(offline).collect(),
        }
    }

    /// Formats the surroundings for people.
    pub(super) fn text(&self) -> String {
        let program = |(name, place): (&String, &Option<PathBuf>)| match place {
            Some(place) => format!("{name} ({})", place.display()),
            None if name.contains('/') => name.clone(),
            None => format!("{name} (not found)"),
        };
        let programs: Vec<String> = self.programs.iter().map(program).collect();
        let network = match (self.has_network, self.has_setup) {
            (true, _) => "yes",
            (false, true) => "for the setup only",
            (false, false) => "none",
        };
        let RoomContents { dependencies, files, caches } = &self.contents;
        let lines = [
            ("programs of its steps", programs.as_slice()),
            ("installed dependencies in its room", dependencies),
            ("ignored files in its room", files),
            ("caches in its room", caches),
            ("network", &[network.to_owned()]),
            ("variables hidden from its steps", &self.removed),
            ("variables set for its steps in a sandbox", &self.added),
        ];
        let line = |(what, all): (&str, &[String])| {
            let all = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
            format!("  {what}: {}\n", paint::one_line(&all))
        };
        lines.into_iter().map(line).collect()
    }

    /// Adds the surroundings to the data of a planned lane.
    pub(super) fn add_to(&self, data: &mut Value) {
        let RoomContents { dependencies, files, caches } = &self.contents;
        data["environment"] = json!({ "removed": self.removed, "added": self.added });
        data["room"] = json!({
            "programs": self.programs, "dependencies": dependencies, "ignored_files": files, "caches": caches, "network": self.has_network,
        });
    }
}
