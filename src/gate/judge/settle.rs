//! The lanes of a gate run, which run until all have passed on the same tree.

use super::{EarlyEnd, GateRun, JudgeRecord};
use crate::error_chain::chain;
use crate::gate::candidate::{self, Candidate};
use crate::gate::clean::{CleanRoom, RoomRequest};
use crate::gate::install::is_lock;
use crate::gate::planted::ReadyRoom;
use crate::gate::room_watcher::RoomWatcher;
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::lane_runner::{LaneOutcome, LaneRuling};
use crate::verdict::{Ruling, StepProgress, TamperFinding, Verdict};
use crate::workspace::trees::{TakenTree, TreeChange, TreeChangeKind, TreesError, text_path};

/// The maximum number of changed files that a message names.
const NAMED: usize = 10;

/// The result of a lane.
pub(super) struct LaneRan {
    pub(super) outcome: LaneOutcome,
    /// The room, or `None` for the workspace itself.
    pub(super) room: Option<CleanRoom>,
    /// Protected paths that were written in the room nevertheless.
    pub(super) written: Vec<TamperFinding>,
    /// The paths that could not be written in the room.
    kept: Vec<String>,
}

impl GateRun<'_> {
    /// Runs the lanes until all have passed on the same tree. If a lane changes the tree, all lanes
    /// run once more on the new tree.
    pub(super) async fn run_lanes(&self, candidate: &TreeId, record: &mut JudgeRecord) -> Result<TreeId, EarlyEnd> {
        let (mut tree, mut writer) = (candidate.clone(), String::new());
        for round in ["", "-again"] {
            let (mut is_settled, mut failed) = (true, Vec::new());
            for lane in &self.gate.lanes {
                if lane.room == RoomKind::InPlace {
                    self.apply_lane_changes(candidate, &tree, record).await?;
                }
                match self.lane(lane, round, &tree, record).await {
                    Ok(None) => {}
                    Ok(Some(after)) => (tree, writer, is_settled) = (after, lane.name.clone(), false),
                    // On the base, the remaining lanes run too, to report as many failures as
                    // possible.
                    Err(EarlyEnd::Ruled(verdict)) if self.is_base && verdict.ruling == Ruling::Failed => {
                        failed.push(*verdict)
                    }
                    Err(early) => return Err(early),
                }
            }
            if !failed.is_empty() {
                return Err(self.all_of(failed, record).await);
            }
            if is_settled {
                return Ok(tree);
            }
        }
        Err(EarlyEnd::Broken(format!(
            "lane `{writer}` changes files on every run: a lane with `writes: true` must change nothing when it runs again"
        )))
    }

    /// Runs a lane on a tree. Returns the new tree if the lane changed files and has `writes:
    /// true`.
    async fn lane(
        &self,
        lane: &Lane,
        round: &str,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<Option<TreeId>, EarlyEnd> {
        let name = format!("{}{round}", lane.name);
        let LaneRan { outcome, room, written, kept } = self.run(lane, &name, tree, record, self.on_step).await?;
        record.kept = kept;
        let after = match self.record_outcome(lane, outcome, record).await {
            Ok(()) if !written.is_empty() => Err(self.written(written)),
            Ok(()) => self.left(lane, tree, room.as_ref(), record).await,
            Err(early) => Err(early),
        };
        if let Some(room) = room {
            room.close().await;
        }
        let Some(after) = after? else { return Ok(None) };
        if !lane.writes && self.completes_locks(tree, &after, record).await? {
            return Ok(None);
        }
        if !lane.writes {
            return Err(self.wrote(lane, tree, &after.tree, record).await);
        }
        let Candidate { tree: after, mut findings, .. } =
            candidate::look(self.gate, self.site, after, self.stop).await?;
        if findings.is_empty() {
            record.writers.insert(lane.name.clone());
            return Ok(Some(after));
        }
        for finding in &mut findings {
            finding.rule.push_str(&format!("; written by lane `{}`", lane.name));
        }
        Err(self.written(findings))
    }

    /// Returns whether a lane only added new dependencies of the work, from the same sources, to
    /// lock files that the work left as on the base. An agent without a network cannot do that.
    /// Adds a note.
    async fn completes_locks(
        &self,
        tree: &TreeId,
        after: &TakenTree,
        record: &mut JudgeRecord,
    ) -> Result<bool, EarlyEnd> {
        let installed = record.installed.as_ref().filter(|(of, _)| of == tree).and_then(|(_, it)| it.as_ref());
        let Some(commands) = installed.map(|it| it.report.commands.join("` and `")) else { return Ok(false) };
        let completing = |locks: &[String]| match locks {
            [lock] if lock.ends_with("go.sum") => "go mod tidy".to_owned(),
            _ => commands,
        };
        let (trees, base) = (&self.site.trees, self.gate.base());
        let of_work = trees.changes(base, tree, self.stop).await?;
        let is_of_work = |path: &str| of_work.iter().any(|change| change.path == path);
        let changes = trees.changes(tree, &after.tree, self.stop).await?;
        let locks: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
        if !locks.iter().all(|path| is_lock(path) && !is_of_work(path)) {
            return Ok(false);
        }
        let seen = candidate::look(self.gate, self.site, after.clone(), self.stop).await?;
        let completes = seen.findings.is_empty();
        if completes {
            record.notes.push(format!(
                "{} lacks the new dependencies; the checks completed a copy: run `{}` and commit the file",
                named(&locks),
                completing(&locks)
            ));
        }
        Ok(completes)
    }

    /// Returns the verdict for steps that wrote protected paths, in their room or in the tree that
    /// they left.
    pub(super) fn written(&self, findings: Vec<TamperFinding>) -> EarlyEnd {
        let names: Vec<String> = findings.iter().map(|finding| finding.path.clone()).collect();
        let note = format!(
            "steps of the gate wrote protected paths: {}; if they must write there, let git ignore the paths or open them with `allow_edit`",
            named(&names)
        );
        let feedback = "Code that the checks ran wrote these paths.\n";
        let verdict = self.verdict(Ruling::Tampered, &JudgeRecord::default());
        EarlyEnd::Ruled(Box::new(Verdict { findings, feedback: feedback.into(), notes: vec![note], ..verdict }))
    }

    /// Returns the verdict for a lane that changed files of the tree without `writes: true`.
    async fn wrote(&self, lane: &Lane, before: &TreeId, after: &TreeId, record: &JudgeRecord) -> EarlyEnd {
        let changes = match self.site.trees.changes(before, after, self.stop).await {
            Ok(changes) => changes,
            Err(fault) => return fault.into(),
        };
        let changed =
            changes.into_iter().filter(|change| change.kind != TreeChangeKind::Added).map(|change| change.path);
        let why = format!(
            "lane `{}` changed files that it judges ({}): add these changes to the work, or set `writes: true` in the lane",
            lane.name,
            named(&changed.collect::<Vec<_>>())
        );
        self.fell_short(record, &why)
    }

    /// Runs a lane in a room, which the result contains, or in the workspace itself.
    pub(super) async fn run(
        &self,
        lane: &Lane,
        name: &str,
        tree: &TreeId,
        record: &mut JudgeRecord,
        on_step: &(dyn Fn(StepProgress) + Send + Sync),
    ) -> Result<LaneRan, EarlyEnd> {
        let (logs, lane) = (self.logs(name), &self.asked(lane));
        if lane.room == RoomKind::InPlace {
            let installed = &self.gate.installed;
            let ready = self.ready(lane, tree, record).await?;
            let installation = ready.installation.as_deref();
            let view = self.site.view_in_place(lane, installed, installation).await?;
            let restored = installed.restore(lane, (self.site, installation), self.stop).await?;
            let note = format!(
                "for lane `{}`, which runs in the workspace, fledge put the dependencies back that were changed: {}",
                lane.name,
                named(&restored)
            );
            if !restored.is_empty() && !record.notes.contains(&note) {
                record.notes.push(note);
            }
            let place = self.site.in_place(lane, (installed, view.as_ref()), logs);
            let outcome = self.site.run(lane, place, self.stop, on_step).await;
            return Ok(LaneRan { outcome, room: None, written: Vec::new(), kept: Vec::new() });
        }
        let ready = self.ready(lane, tree, record).await?;
        let ReadyRoom { caches, dependencies } = ready.borrowed();
        let watched = self.gate.watched(self.site, tree, self.stop).await?;
        let kept = if lane.held_out.is_some() { Vec::new() } else { watched.clone() };
        let wanted =
            RoomRequest { lane, tree, base: self.gate.base(), caches, dependencies, kept: &kept, gate: self.gate };
        let room = CleanRoom::make(self.site, wanted, self.stop).await?;
        let mut place = room.room(self.site, logs);
        let watcher = RoomWatcher::post(self.gate, lane, &room, &watched).await.map_err(EarlyEnd::Broken)?;
        let unwatched = watcher.unwatched().filter(|note| !record.notes.contains(note));
        record.notes.extend(unwatched);
        place.after_step = Some(watcher.after_step());
        let outcome = self.site.run(&room.lane(lane), place, self.stop, on_step).await;
        let is_told = match outcome.ruling {
            LaneRuling::Passed => true,
            // A hold-out lane may fail on the base. The protected paths that it wrote there are
            // needed nevertheless.
            LaneRuling::Failed => lane.held_out.is_some(),
            LaneRuling::Errored | LaneRuling::Cancelled | LaneRuling::NothingRan => false,
        };
        let written = match is_told {
            true => watcher.finish(self.gate, self.site, lane, self.stop).await.map_err(EarlyEnd::Broken)?,
            false => Vec::new(),
        };
        Ok(LaneRan { outcome, room: Some(room), written, kept })
    }

    /// Returns the state that a passed lane left, if it differs from the judged state.
    async fn left(
        &self,
        lane: &Lane,
        tree: &TreeId,
        room: Option<&CleanRoom>,
        record: &JudgeRecord,
    ) -> Result<Option<TakenTree>, EarlyEnd> {
        let taken = match room {
            Some(room) => self.left_in(room, lane, tree).await,
            None => self.left_here(lane, tree).await,
        };
        match taken {
            Ok(taken) => Ok(taken),
            Err(fault) if self.stop.is_cancelled() => Err(fault.into()),
            // The judged code can decide what the lane leaves, so this is a failure of the work.
            Err(fault) => {
                let why = format!("cannot read the files that lane `{}` left: {}", lane.name, chain(&fault));
                Err(self.fell_short(record, &why))
            }
        }
    }

    async fn left_in(&self, room: &CleanRoom, lane: &Lane, tree: &TreeId) -> Result<Option<TakenTree>, TreesError> {
        let trees = &self.site.trees;
        let after = room.left(trees, tree, lane, self.stop).await?;
        if after == *tree {
            return Ok(None);
        }
        let anomalies = trees.anomalies(&after, self.gate.base(), self.stop).await?;
        Ok(Some(TakenTree { tree: after, anomalies }))
    }

    /// Returns the state of the workspace after a lane, if it differs. New files count only where
    /// the lane may write, as in a room. The seal checks sealed files.
    async fn left_here(&self, lane: &Lane, tree: &TreeId) -> Result<Option<TakenTree>, TreesError> {
        let mut taken = self.site.trees.take(self.stop).await?;
        candidate::forget_ignored(self.gate, self.site, &mut taken.anomalies, self.stop).await?;
        let changes = self.site.trees.changes(tree, &taken.tree, self.stop).await?;
        let is_sealed = |path: &str| self.gate.seal.files.contains_key(&text_path(path));
        let counts =
            |change: &TreeChange| lane.writes || (change.kind != TreeChangeKind::Added && !is_sealed(&change.path));
        Ok(changes.iter().any(counts).then_some(taken))
    }

    /// Brings the changes of lanes into the workspace, so that the workspace contains the judged
    /// tree.
    pub(super) async fn apply_lane_changes(
        &self,
        candidate: &TreeId,
        tree: &TreeId,
        record: &mut JudgeRecord,
    ) -> Result<(), EarlyEnd> {
        if candidate == tree {
            return Ok(());
        }
        let paths: Vec<String> =
            self.site.trees.changes(candidate, tree, self.stop).await?.into_iter().map(|change| change.path).collect();
        let (count, lanes) = (paths.len(), record.writers.iter().map(|lane| format!("`{lane}`")).collect::<Vec<_>>());
        let (s, lane) = (if count == 1 { "" } else { "s" }, if lanes.len() == 1 { "lane" } else { "lanes" });
        let message = format!("{lane} {} changed {count} file{s} of the work: {}", lanes.join(", "), named(&paths));
        record.notes.retain(|note| *note != message);
        if self.is_by_hand {
            record.notes.push(format!("{message}; your files stay as they are"));
            return Ok(());
        }
        record.notes.push(match self.site.trees.put_back(tree, Some(&paths), self.stop).await {
            Ok(_) => message,
            Err(fault) => format!("{message}; cannot bring these changes into the workspace: {}", chain(&fault)),
        });
        Ok(())
    }
}

/// Joins the first [`NAMED`] of these paths with commas.
pub(super) fn named(paths: &[String]) -> String {
    paths.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ")
}
