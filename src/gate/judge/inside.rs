//! The check of the work by the base's own tests inside product files.
//!
//! Such tests share the path of the product, so the work may change them. If it did, the lanes run
//! once more, on the work with the tests of the base.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base;
use crate::gate::evidence::Evidence;
use crate::gate::feedback;
use crate::gate::inside::{self, CargoPackages, ChangedSource, Grafts};
use crate::gate::names::joined;
use crate::gate::recognized::is_linter;
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind, Step};
use crate::lane_runner::LaneRuling;
use crate::limits::FEEDBACK_LIMIT;
use crate::verdict::{Ruling, StepProgress, TamperFinding, Verdict, tests_in};
use crate::workspace::trees::{REPOSITORY, TreeChange, TreeChangeKind, TreesError};
use std::collections::{BTreeMap, BTreeSet};

/// The largest source that is read, in bytes.
const LARGEST: u64 = 8 * 1024 * 1024;
/// The number of sources that are read at once.
const READ_AT_ONCE: usize = 128;
/// Git's mode of executable files.
const EXECUTABLE: u32 = 0o100_755;
/// The maximum number of files that a message names.
const NAMED: usize = 5;

impl GateRun<'_> {
    /// Runs the lanes on the work with the base's tests inside product files, if the work changed
    /// such tests or code that they use. They must pass too, unless the task opens them.
    pub(super) async fn tests_of_base(&self, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        if self.is_base || tree == self.gate.base() {
            return Ok(());
        }
        let Grafts { files, differ, lacking, gone, switches, opened, unread } = self.grafts(tree).await?;
        let differs = |path: &str| format!("{path}: tests inside it, or code that they use, differ from the base");
        record.notes.extend(opened.iter().map(|path| format!("allow_edit: {}", differs(path))));
        if !unread.is_empty() {
            let why = "too large to compare the tests inside";
            return Err(self.refused(record, why, &unread, "Keep each source below 8 MiB."));
        }
        if !switches.is_empty() {
            let each: Vec<String> = switches.iter().map(|(path, when)| format!("{path}: {when}")).collect();
            let why = "product code behaves differently under tests";
            let paths: Vec<String> = switches.into_iter().map(|(path, _)| path).collect();
            return Err(self.refused(record, why, &paths, &format!("Remove these conditions:\n{}", each.join("\n"))));
        }
        if !gone.is_empty() {
            let why = "tests of the base are gone with their file";
            return Err(self.refused(record, why, &gone, "Keep these tests."));
        }
        if files.is_empty() {
            return Ok(());
        }
        let changes = self.site.trees.changes(self.gate.base(), tree, self.stop).await?;
        let executable: BTreeSet<&str> =
            changes.iter().filter(|it| it.to_mode == EXECUTABLE).map(|it| it.path.as_str()).collect();
        let texts = files.iter().map(|(path, text)| (path.as_str(), text.as_str(), executable.contains(path.as_str())));
        let grafted = self.site.trees.with_files(tree, texts, self.stop).await?;
        let changed: Vec<String> = match differ.is_empty() {
            true => files.into_iter().map(|(path, _)| path).collect(),
            false => differ,
        };
        let mut in_place = Vec::new();
        for lane in &self.gate.lanes {
            if lane.room == RoomKind::InPlace {
                in_place.push(lane.name.as_str());
            } else if let Some(lane) = judging(lane, &record.evidence) {
                self.pass_on(&lane, &grafted, &changed, record).await?;
            }
        }
        let noted = if in_place.is_empty() { lacking } else { changed };
        let also = match in_place.first() {
            Some(lane) => format!("; lane `{lane}` runs in the workspace, so fledge did not run the tests of the base"),
            None => "; the lanes also pass with the tests of the base".to_owned(),
        };
        record.notes.extend(noted.iter().map(|path| differs(path) + &also));
        Ok(())
    }

    /// Runs a lane on the work with the tests of the base. It must pass.
    async fn pass_on(
        &self,
        lane: &Lane,
        grafted: &TreeId,
        changed: &[String],
        record: &mut JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        let (name, installed) = (format!("{}-tests-of-base", lane.name), record.installed.clone());
        let on_step = |progress: StepProgress| {
            let judges = |step: &str| lane.steps.iter().any(|own| own.name == step && !own.allow_failure);
            if judges(progress.step()) {
                (self.on_step)(progress.in_lane(&name));
            }
        };
        let ran = self.run(lane, &name, grafted, record, &on_step).await?;
        record.installed = installed;
        if let Some(room) = ran.room {
            room.close().await;
        }
        if !ran.written.is_empty() {
            return Err(self.written(ran.written));
        }
        let outcome = ran.outcome;
        let mut evidence = Evidence::default();
        base::show(&outcome, self.site.names_tests(lane), &mut evidence).await;
        let has_run = |step: &&Step| {
            !record.evidence.has_tests(&lane.name, &step.name) || evidence.has_tests(&lane.name, &step.name)
        };
        let silent = lane.steps.iter().find(|step| !has_run(step));
        let silent = silent.map(|step| format!("step `{}` ran no test", step.name));
        let excerpt = match (outcome.ruling, evidence.contradiction().or(silent)) {
            (LaneRuling::Passed, None) => return Ok(()),
            (LaneRuling::Passed, Some(why)) => why + "\n",
            (LaneRuling::Failed, _) => feedback::failing_steps(&outcome.steps, FEEDBACK_LIMIT / 2),
            (LaneRuling::Errored, _) => return Err(EarlyEnd::Broken(feedback::could_not_run(&outcome.steps))),
            (LaneRuling::Cancelled, _) => return Err(EarlyEnd::Broken("the gate was stopped".into())),
            (LaneRuling::NothingRan, _) => return Err(EarlyEnd::Broken(feedback::nothing_ran(lane))),
        };
        let advice = "Keep these tests as they are, and what they call.";
        Err(self.refused(record, "the base's own tests do not pass on this work", changed, &(excerpt + advice)))
    }

    /// Returns the verdict for work that the base's tests inside these files speak against.
    fn refused(&self, record: &JudgeRecord, why: &str, paths: &[String], more: &str) -> EarlyEnd {
        let finding =
            |path: &String| TamperFinding { path: tests_in(path), change: "changed".into(), rule: why.to_owned() };
        let mut findings: Vec<TamperFinding> = paths.iter().map(finding).collect();
        findings.dedup();
        let files: Vec<&str> = paths.iter().take(NAMED).map(String::as_str).collect();
        let files = files.join(", ") + if paths.len() > NAMED { ", …" } else { "" };
        let feedback = format!("every step passed, but that is not enough:\n{why} ({files})\n\n{more}\n");
        let signature = format!("evidence: {why} ({files})");
        let verdict = self.verdict(Ruling::Failed, record);
        EarlyEnd::Ruled(Box::new(Verdict { findings, feedback, signature, ..verdict }))
    }

    /// Compares the product files of a tree with the base, and puts the tests of the base into
    /// them.
    async fn grafts(&self, tree: &TreeId) -> Result<Grafts, TreesError> {
        let (policy, base) = (&self.gate.policy, self.gate.base());
        let is_product = |change: &TreeChange| inside::may_have(&change.path) && policy.rule(&change.path).is_none();
        let mut changes = self.site.trees.changes(base, tree, self.stop).await?;
        changes.retain(|change| is_product(change) && change.kind != TreeChangeKind::ModeChanged);
        let old = changes.iter().filter(|change| change.from_mode != 0).map(|change| change.path.as_str());
        let parents: BTreeMap<&str, Vec<String>> = old.map(|path| (path, inside::parents(path))).collect();
        let wanted = parents.keys().copied().chain(parents.values().flatten().map(String::as_str));
        let of_base = self.sources(base, wanted).await?;
        let of_tree = self.sources(tree, changes.iter().map(|change| change.path.as_str())).await?;
        let (mut before, mut after, mut for_tests, mut unread) = (Vec::new(), Vec::new(), BTreeSet::new(), Vec::new());
        for change in &changes {
            let (path, is_new) = (change.path.as_str(), change.from_mode == 0);
            let (was, is) = (of_base.get(path).cloned(), of_tree.get(path).cloned());
            // A file that grew beyond the limit would hide its tests.
            if was.is_some() && is.is_none() && ![0, REPOSITORY].contains(&change.to_mode) {
                unread.push(path.to_owned());
            }
            if let (Some(was), Some(parents)) = (was, parents.get(path)) {
                let known = parents.iter().filter_map(|parent| of_base.get_key_value(parent));
                if inside::is_for_tests(path, known.map(|(parent, text)| (parent.as_str(), text.as_str()))) {
                    for_tests.insert(path.to_owned());
                }
                before.push((path, was));
            }
            after.extend(is.map(|text| ChangedSource { path, text, is_new }));
        }
        unread.retain(|path| !policy.opens_tests_in(path));
        if before.is_empty() && after.is_empty() {
            return Ok(Grafts { unread, ..Grafts::default() });
        }
        let new: Vec<&str> = after.iter().filter(|source| source.is_new).map(|source| source.path).collect();
        let packages = self.packages_of(&new).await?;
        let is_opened = |path: &str| policy.opens_tests_in(path);
        Ok(Grafts { unread, ..inside::graft(&before, &after, &packages, &for_tests, is_opened) })
    }

    /// Returns the texts of the files at these paths that exist and are not too large.
    async fn sources(
        &self,
        tree: &TreeId,
        paths: impl Iterator<Item = &str>,
    ) -> Result<BTreeMap<String, String>, TreesError> {
        let paths: Vec<&str> = paths.collect::<BTreeSet<_>>().into_iter().collect();
        let mut all = BTreeMap::new();
        for some in paths.chunks(READ_AT_ONCE) {
            let texts = self.site.trees.read_all(tree, some, LARGEST, self.stop).await?;
            all.extend(texts.into_iter().map(|(path, text)| (path, String::from_utf8_lossy(&text).into_owned())));
        }
        Ok(all)
    }

    /// Returns the Cargo packages of the base. Reads only the manifests above these new files.
    async fn packages_of(&self, files: &[&str]) -> Result<CargoPackages, TreesError> {
        let all: BTreeSet<String> = self.gate.policy.cargo_packages().map(ToOwned::to_owned).collect();
        let is_above = |folder: &str, file: &str| {
            folder.is_empty() || file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let above = all.iter().filter(|folder| files.iter().any(|file| is_above(folder, file)));
        let manifests: BTreeMap<String, &String> = above.map(|folder| (joined(folder, "Cargo.toml"), folder)).collect();
        let texts = self.sources(self.gate.base(), manifests.keys().map(String::as_str)).await?;
        let finding = texts.iter().filter(|(_, text)| finds_tests(text));
        let finding = finding.filter_map(|(path, _)| manifests.get(path).map(|folder| (*folder).clone())).collect();
        Ok(CargoPackages { all, finding })
    }
}

/// Returns a lane as it judges the work with the tests of the base. Steps that only lint or format
/// may fail, because they judge the work as it is. Returns `None` for a lane without other steps.
pub(super) fn judging(lane: &Lane, evidence: &Evidence) -> Option<Lane> {
    let mut lane = lane.clone();
    let judges = |step: &Step| evidence.has_tests(&lane.name, &step.name) || !is_linter(&step.run);
    let judging: Vec<bool> = lane.steps.iter().map(judges).collect();
    if !judging.contains(&true) {
        return None;
    }
    for (step, judges) in lane.steps.iter_mut().zip(judging) {
        step.allow_failure |= !judges;
    }
    Some(lane)
}

/// Returns whether Cargo finds the tests and programs of a package by their paths. A workspace
/// without a root package has none.
fn finds_tests(manifest: &str) -> bool {
    manifest.contains("[package]") && !["autotests", "autobins"].iter().any(|key| manifest.contains(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_steps_that_may_run_tests_judge() {
        let steps = "steps: [{ name: fmt, run: cargo fmt --check }, { name: self-test, run: python3 app.py }]";
        let lane = crate::lane::parse("verify", "verify.yaml", steps).unwrap();
        let judged = judging(&lane, &Evidence::default()).unwrap();
        assert_eq!(judged.steps.iter().map(|step| step.allow_failure).collect::<Vec<_>>(), [true, false]);
        let lane = crate::lane::parse("lint", "lint.yaml", "steps: [{ run: npm run lint }]").unwrap();
        assert!(judging(&lane, &Evidence::default()).is_none());
    }

    #[test]
    fn cargo_finds_the_tests_of_a_package_that_does_not_say_otherwise() {
        for (manifest, is_one) in [
            ("[package]\nname = 'a'\n", true),
            ("[workspace]\nmembers = ['a']\n[package]\nname = 'b'\n", true),
            ("[workspace]\nmembers = ['a']\n[workspace.package]\nedition = '2021'\n", false),
            ("[package]\nname = 'a'\nautotests = false\n", false),
            ("[package]\nname = 'a'\nautobins = false\n", false),
            ("", false),
        ] {
            assert_eq!(finds_tests(manifest), is_one, "{manifest}");
        }
    }
}
