//! The settings of a lane as a gate: its room, the preparation and permissions of the room, and the
//! evidence that a pass requires.

use super::draft::{NamedSpan, StepItem, StepKind};
use super::reading::LaneReading;
use crate::task::check_hidden;
use crate::yaml::{FilePlace, Problem, TableReader, YamlNode, YamlValue, excerpt};
use serde::{Deserialize, Serialize};

/// The keys of a lane that this module reads.
pub(super) const TERMS: [&str; 9] =
    ["room", "setup", "cache", "network", "writes", "canary", "flaky", "include_ignored", "hidden"];

/// The values of `room`.
pub(super) const ROOMS: [(&str, RoomKind); 2] = [("clean", RoomKind::Clean), ("in-place", RoomKind::InPlace)];
/// The values of `flaky`.
pub(super) const FLAKY: [(&str, FlakyPolicy); 2] = [("pass", FlakyPolicy::Pass), ("fail", FlakyPolicy::Fail)];

/// The room in which a lane runs as a gate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoomKind {
    /// A fresh copy of the judged tree, without files that git ignores.
    #[default]
    Clean,
    /// The workspace itself.
    InPlace,
}

impl RoomKind {
    /// Returns the word used in the lane file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::InPlace => "in-place",
        }
    }
}

/// The planted failing tests that a lane must detect.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CanaryTerms {
    /// Failing tests for each runner that fledge recognizes on the base.
    #[default]
    Auto,
    /// No failing test.
    None,
    /// A failing test for pytest.
    Pytest,
    /// A failing test for `cargo test`.
    CargoTest,
    /// A failing test for `go test`.
    GoTest,
    /// A failing test for `node --test`.
    NodeTest,
    /// A failing test for jest or vitest.
    Jest,
    /// A failing test for JUnit or TestNG.
    Junit,
    /// A failing test for GoogleTest, Catch2 or doctest.
    CppTest,
    /// A failing test that the project defines.
    File {
        /// The path of the file, relative to the root.
        file: String,
        /// The content of the file.
        text: String,
        /// The name of the step that must fail; `None` for any step.
        run: Option<String>,
    },
}

impl CanaryTerms {
    /// The canaries that a single word selects.
    pub(super) const WORDS: [(&str, Self); 9] = [
        ("auto", Self::Auto),
        ("none", Self::None),
        ("pytest", Self::Pytest),
        ("cargo-test", Self::CargoTest),
        ("go-test", Self::GoTest),
        ("node-test", Self::NodeTest),
        ("jest", Self::Jest),
        ("junit", Self::Junit),
        ("cpp-test", Self::CppTest),
    ];

    /// Returns whether the lane chooses a kind of failing test itself.
    pub fn is_chosen(&self) -> bool {
        !matches!(self, Self::Auto | Self::None)
    }

    /// Returns whether fledge chooses the kind of failing test by the runners of the lane.
    pub fn is_auto(&self) -> bool {
        *self == Self::Auto
    }

    /// Returns the word used in the lane file, or the path of the project's own canary.
    pub fn word(&self) -> &str {
        match self {
            Self::File { file, .. } => file,
            _ => Self::WORDS.iter().find(|(_, own)| own == self).map_or("", |(word, _)| word),
        }
    }
}

/// The ruling for a pass that needed a retry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FlakyPolicy {
    /// A pass, with a note.
    #[default]
    Pass,
    /// A failure.
    Fail,
}

/// The gate settings as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LaneTerms {
    pub(super) room: Option<RoomKind>,
    pub(super) setup: Vec<StepItem>,
    pub(super) cache: Vec<String>,
    pub(super) network: Option<bool>,
    pub(super) writes: Option<bool>,
    pub(super) canary: Option<CanaryTerms>,
    /// The step that a canary names.
    pub(super) canary_step: Option<NamedSpan>,
    pub(super) flaky: Option<FlakyPolicy>,
    pub(super) include_ignored: Vec<String>,
    pub(super) hidden: Vec<String>,
}

impl LaneTerms {
    /// Returns the settings that have no effect inside a lane with other settings.
    pub(super) fn lost_in(&self, outer: &Self) -> Vec<String> {
        let flag = |key: &str, own: Option<bool>, of: Option<bool>| {
            own.filter(|own| *own != of.unwrap_or(false)).map(|own| format!("{key}: {own}"))
        };
        let lacks = |key: &str, own: &[String], of: &[String]| {
            let is_lost = own.iter().any(|path| !of.contains(path));
            is_lost.then(|| format!("{key}: [{}]", own.join(", ")))
        };
        let room = self.room.filter(|room| *room != outer.room.unwrap_or_default());
        let flaky = self.flaky.filter(|flaky| *flaky != outer.flaky.unwrap_or_default());
        let canary = self.canary.as_ref().filter(|canary| Some(*canary) != outer.canary.as_ref());
        [
            room.map(|room| format!("room: {}", room.word())),
            (!self.setup.is_empty()).then(|| "setup".into()),
            lacks("cache", &self.cache, &outer.cache),
            flag("network", self.network, outer.network),
            flag("writes", self.writes, outer.writes),
            canary.map(|canary| format!("canary: {}", excerpt(canary.word()))),
            flaky.map(|flaky| format!("flaky: {}", if flaky == FlakyPolicy::Fail { "fail" } else { "pass" })),
            lacks("include_ignored", &self.include_ignored, &outer.include_ignored),
            lacks("hidden", &self.hidden, &outer.hidden),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl LaneReading {
    pub(super) fn terms(&mut self, table: &mut TableReader<'_>) -> LaneTerms {
        let room = table.one_of("room", &ROOMS, &mut self.problems);
        let setup = table.take("setup").map(|node| self.setup(node)).unwrap_or_default();
        let cache = table.texts_where("cache", own_path, &mut self.problems).unwrap_or_default();
        let network = table.flag("network", &mut self.problems);
        let writes = table.flag("writes", &mut self.problems);
        let (canary, canary_step) = self.canary(table).unzip();
        let flaky = table.one_of("flaky", &FLAKY, &mut self.problems);
        let ignored = table.texts_where("include_ignored", own_path, &mut self.problems).unwrap_or_default();
        let [cache, include_ignored] = [cache, ignored].map(|paths| paths.iter().map(|path| plain(path)).collect());
        let canary_step = canary_step.flatten();
        let hidden = table.text_or_texts_where("hidden", check_hidden, &mut self.problems).unwrap_or_default();
        LaneTerms { room, setup, cache, network, writes, canary, canary_step, flaky, include_ignored, hidden }
    }

    /// Reads the steps that prepare the room: commands, one after the other.
    fn setup(&mut self, node: &YamlNode) -> Vec<StepItem> {
        let items = self.list(node, "setup", |reading, node| reading.item(node, false));
        for item in &items {
            if matches!(&item.kind, StepKind::Lane(_) | StepKind::Group(_)) && item.kind != StepKind::unknown() {
                let message = "a step of `setup` is one command";
                self.complain(item.place, message, "give it `run:` or `task:`");
            }
            if let Some(NamedSpan { place, .. }) = item.needs.iter().flatten().next() {
                self.complain(*place, "`needs` in `setup`: its steps run one after the other", "remove it");
            }
        }
        items
    }

    fn canary(&mut self, table: &mut TableReader<'_>) -> Option<(CanaryTerms, Option<NamedSpan>)> {
        let node = table.take("canary")?;
        if !matches!(node.value, YamlValue::Map(_)) {
            return Some((table.one_of("canary", &CanaryTerms::WORDS, &mut self.problems)?, None));
        }
        let mut own = TableReader::open(node, "`canary`", &mut self.problems)?;
        let (file, text) = (self.own_file(&mut own), own.text("text", &mut self.problems));
        let step = self.named(&mut own, "run");
        for key in ["file", "text"] {
            if own.place_of(key).is_none() {
                let message = format!("a canary of one's own without `{key}`");
                self.complain(node.place, message, "write `{ file: PATH, text: a test that fails }`");
            }
        }
        self.finish(own);
        let run = step.as_ref().map(|named| named.name.clone());
        Some((CanaryTerms::File { file: file?, text: text?.to_owned(), run }, step))
    }

    fn own_file(&mut self, table: &mut TableReader<'_>) -> Option<String> {
        let place: FilePlace = table.take("file")?.place;
        let file = table.text("file", &mut self.problems)?;
        if let Err((why, hint)) = own_path(file) {
            self.problems.push(Problem::at(place, format!("`file`: {why}")).hint(hint));
        }
        Some(plain(file))
    }
}

/// Checks that a path is inside the project and not its root. An error has the message and a hint.
fn own_path(path: &str) -> Result<(), (String, String)> {
    let is_plain = |part: &str| !matches!(part, "" | "." | "..");
    let hint = "write a path below the project's root, like `target`";
    if path.starts_with('~') || path.contains('\0') || !plain(path).split('/').all(is_plain) {
        return Err((format!("`{}` is no path below the root", excerpt(path)), hint.into()));
    }
    if path.split('/').any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(("what git keeps is never part of a room".into(), "remove it".into()));
    }
    if path.contains(['*', '?', '[', '{']) {
        return Err(("globs are not read here".into(), "name each path".into()));
    }
    Ok(())
}

fn plain(path: &str) -> String {
    let path = path.strip_prefix("./").unwrap_or(path);
    path.strip_suffix('/').unwrap_or(path).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::{Lane, LaneFiles, parse};

    fn read(text: &str) -> Result<Lane, String> {
        parse("v", "v.yaml", text).map_err(|fault| fault.to_string())
    }

    #[test]
    fn a_lane_without_terms_is_judged_in_a_clean_room_and_proves_by_its_steps_alone() {
        let lane = read("steps: [run: a]").unwrap();
        assert_eq!(
            (lane.room, lane.network, lane.writes, lane.flaky),
            (RoomKind::Clean, false, false, FlakyPolicy::Pass)
        );
        assert_eq!((lane.setup, lane.cache, lane.include_ignored), (vec![], vec![], vec![]));
        assert_eq!(lane.canary, CanaryTerms::Auto);
    }

    #[test]
    fn every_term_has_its_field_and_setup_runs_one_after_the_other() {
        let lane = read(
            "room: in-place\nsetup: [{ run: cargo fetch, env: { A: b } }, { task: all }]\ncache: [target, ./web/node_modules/]\n\
             network: true\nwrites: true\ncanary: { file: tests/canary.rs, text: 'x', run: test }\nflaky: fail\ninclude_ignored: [.env.test]\n\
             env: { CI: '1' }\ntasks: { one: a, two: b, all: { deps: [one, two] } }\nsteps: [{ name: test, run: cargo test }]\n",
        )
        .unwrap();
        assert_eq!(
            (lane.room, lane.network, lane.writes, lane.flaky),
            (RoomKind::InPlace, true, true, FlakyPolicy::Fail)
        );
        assert_eq!(lane.cache, ["target", "web/node_modules"]);
        assert_eq!(lane.include_ignored, [".env.test"]);
        let own = CanaryTerms::File { file: "tests/canary.rs".into(), text: "x".into(), run: Some("test".into()) };
        assert_eq!(lane.canary, own);
        let setup: Vec<_> = lane.setup.iter().map(|step| (step.name.as_str(), step.needs.as_slice())).collect();
        assert_eq!(setup, [("cargo fetch", &[][..]), ("one", &[0]), ("two", &[1])]);
        let ready = lane.setup_lane().unwrap();
        assert_eq!((ready.steps, ready.env, ready.network), (lane.setup.clone(), lane.env.clone(), true));
        assert_eq!(read("steps: [run: a]").unwrap().setup_lane(), None);
    }

    #[test]
    fn what_a_term_cannot_be_is_told_with_its_place_and_what_to_do() {
        let text = "room: dirty\nsetup: [{ lane: v }, { parallel: [run: a] }, { run: b, needs: [x] }]\n\
            cache: [., ../x, /tmp, .git, 'a*', a//b]\nnetwork: maybe\ncanary: mocha\nflaky: 1\ninclude_ignored: .env\nsteps: [run: a]\n";
        insta::assert_snapshot!(read(text).unwrap_err());
        let step = "canary: { file: a/.git/x, txt: b, run: tset }\nsteps: [{ name: test, run: a, room: clean }]\n";
        insta::assert_snapshot!(read(step).unwrap_err());
        let step = "canary: { file: a, text: b, run: tset }\nsteps: [{ name: test, run: a }]\n";
        let reported = "v.yaml:1:34: there is no step `tset` (did you mean `test`?)";
        assert_eq!(read(step).unwrap_err(), reported);
    }

    #[test]
    fn terms_change_the_text_that_a_gate_is_digested_from() {
        let text = |terms: &str| serde_json::to_string(&read(&format!("{terms}\nsteps: [run: a]")).unwrap()).unwrap();
        let plain = text("");
        for terms in [
            "room: in-place",
            "setup: [run: a]",
            "cache: [target]",
            "network: true",
            "writes: true",
            "canary: jest",
            "flaky: fail",
            "include_ignored: [a]",
        ] {
            assert_ne!(text(terms), plain, "{terms}");
            assert_eq!(
                serde_json::from_str::<Lane>(&text(terms)).unwrap(),
                read(&format!("{terms}\nsteps: [run: a]")).unwrap()
            );
        }
    }

    #[test]
    fn the_terms_of_an_included_lane_do_not_count_and_that_is_said() {
        let mut lane_files = LaneFiles::default();
        lane_files.add_lane("a", "lanes/a.yaml", "cache: [x, y]\nwrites: true\nsteps: [{ lane: b }]");
        let inner = "room: in-place\nsetup: [run: s]\ncache: [x]\nnetwork: true\nwrites: true\ncanary: jest\nflaky: pass\ninclude_ignored: [i]\nsteps: [run: x]";
        lane_files.add_lane("b", "lanes/b.yaml", inner);
        let lost: Vec<String> = lane_files
            .warnings_of("a")
            .iter()
            .map(|remark| remark.to_string().split('`').nth(1).unwrap_or_default().to_owned())
            .collect();
        assert_eq!(lost, ["room: in-place", "setup", "network: true", "canary: jest", "include_ignored: [i]"]);
        let lane = lane_files.lane("a").unwrap();
        assert_eq!((lane.room, lane.setup.len(), lane.canary), (RoomKind::Clean, 0, CanaryTerms::Auto));
    }
}
