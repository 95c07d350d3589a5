//! Hold-out lanes, which only the gate knows. The model learns only that one of them failed.

use super::settle::{LaneRan, named};
use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::gate::base;
use crate::gate::canary::SeenShare;
use crate::gate::evidence::{Evidence, NO_TESTS};
use crate::gate::feedback;
use crate::gate::planted::KnownSightings;
use crate::id::TreeId;
use crate::lane::Lane;
use crate::lane_runner::LaneRuling;
use crate::verdict::{Ruling, TamperFinding, Verdict};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use walkdir::WalkDir;

impl GateRun<'_> {
    /// Runs the hold-out lanes on a tree.
    pub(super) async fn held_out(&self, tree: &TreeId, record: &mut JudgeRecord) -> Result<(), EarlyEnd> {
        for lane in &self.gate.held_out {
            let name = format!("held-out-{}", lane.name);
            let LaneRan { outcome, room, written, .. } = self.run(lane, &name, tree, record, &|_| {}).await?;
            if let Some(room) = room {
                room.close().await;
            }
            match outcome.ruling {
                LaneRuling::Passed => {}
                LaneRuling::Failed => return Err(self.held_out_failed(record)),
                LaneRuling::Errored => {
                    return Err(EarlyEnd::Broken(format!("hold-out {}", feedback::could_not_run(&outcome.steps))));
                }
                LaneRuling::Cancelled => return Err(EarlyEnd::Broken("the gate was stopped".into())),
                LaneRuling::NothingRan => {
                    return Err(EarlyEnd::Broken(format!("hold-out: {}", feedback::nothing_ran(lane))));
                }
            }
            let mut evidence = Evidence::default();
            base::show(&outcome, self.site.names_tests(lane), &mut evidence).await;
            let no_tests = evidence.is_without_tests().then(|| NO_TESTS.to_owned());
            if let Some(why) = evidence.contradiction().or(no_tests) {
                record.notes.push(format!("hold-out lane `{}` passed, but that is not enough: {why}", lane.name));
                return Err(self.held_out_failed(record));
            }
            let written = self.written_by_work(lane, written, tree).await?;
            if !written.is_empty() {
                let why = "a hold-out lane passed, but code that it runs wrote protected paths";
                record.notes.push(format!("{why}: {}", named(&written)));
                return Err(self.held_out_failed(record));
            }
            let (ready, logs) = (self.ready(lane, tree, record).await?, self.logs(&format!("{name}-canary")));
            let run = self.canary_run(lane, tree, KnownSightings::default(), ready.borrowed());
            let sightings = run.sightings(logs).await?;
            if sightings.share(None) != SeenShare::All {
                return Err(self.held_out_failed(record));
            }
        }
        Ok(())
    }

    /// Returns the protected paths that were written in the room of a hold-out lane but not in its
    /// room of the base. On the base, only the lane's own steps write, and they may bring files
    /// along. The lane runs on the base only if something was written.
    async fn written_by_work(
        &self,
        lane: &Lane,
        written: Vec<TamperFinding>,
        tree: &TreeId,
    ) -> Result<Vec<String>, EarlyEnd> {
        if written.is_empty() || tree == self.gate.base() {
            return Ok(Vec::new());
        }
        let (name, all) = (format!("held-out-{}-base", lane.name), Lane { fail_fast: false, ..lane.clone() });
        let ran = self.run(&all, &name, self.gate.base(), &mut JudgeRecord::default(), &|_| {}).await?;
        if let Some(room) = ran.room {
            room.close().await;
        }
        if ran.outcome.ruling == LaneRuling::Cancelled {
            return Err(EarlyEnd::Broken("the gate was stopped".into()));
        }
        let own: BTreeSet<String> = ran.written.into_iter().map(|finding| finding.path).collect();
        // On the base a check may fail before the lane has brought its files along, so their names
        // are excluded too.
        let brought = names_below(lane.held_out.as_deref());
        let is_brought = |path: &String| path.rsplit('/').next().is_some_and(|name| brought.contains(OsStr::new(name)));
        let others = written.into_iter().map(|finding| finding.path);
        Ok(others.filter(|path| !own.contains(path) && !is_brought(path)).collect())
    }

    fn held_out_failed(&self, record: &JudgeRecord) -> EarlyEnd {
        let feedback =
            "every check of the project passed, but a hold-out check failed: the work is not correct in general";
        let verdict = self.verdict(Ruling::Failed, record);
        EarlyEnd::Ruled(Box::new(Verdict { feedback: feedback.into(), signature: "hold-out".into(), ..verdict }))
    }
}

/// Returns the names of the files in a folder with hold-out lanes.
fn names_below(folder: Option<&Path>) -> BTreeSet<OsString> {
    let entries = folder.into_iter().flat_map(|folder| WalkDir::new(folder).into_iter().flatten());
    entries.filter(|entry| entry.file_type().is_file()).map(|entry| entry.file_name().to_owned()).collect()
}
