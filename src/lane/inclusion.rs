//! Settings of an included lane that have no effect inside another lane: parallel steps, failing
//! fast, and gate settings.

use super::draft::{NamedSpan, StepItem, StepKind};
use super::lane_files::{LaneFiles, LaneRemark};
use crate::yaml::Problem;
use std::collections::BTreeSet;

/// Returns the warnings for a lane and for all lanes that it includes, at the place of the
/// inclusion.
pub(super) fn without_effect(lane_files: &LaneFiles, lane: &str) -> Vec<LaneRemark> {
    let (mut seen, mut open, mut remarks) = (BTreeSet::new(), vec![lane.to_owned()], Vec::new());
    while let Some(lane) = open.pop() {
        if seen.insert(lane.clone()) {
            remarks.extend(in_one(lane_files, &lane));
            open.extend(includes(lane_files, &lane).into_iter().map(|named| named.name.clone()));
        }
    }
    remarks
}

/// Returns the warnings for lanes that this lane includes directly.
pub(super) fn in_one(lane_files: &LaneFiles, lane: &str) -> Vec<LaneRemark> {
    let Some((file, outer)) = lane_files.lanes.get(lane).and_then(|file| Some((file, file.draft.as_ref()?))) else {
        return Vec::new();
    };
    let mut remarks = Vec::new();
    for named in includes(lane_files, lane) {
        let Some(inner) = lane_files.lanes.get(&named.name).and_then(|file| file.draft.as_ref()) else { continue };
        let fail_fast = inner.fail_fast.filter(|is| *is != outer.fail_fast.unwrap_or(true));
        let jobs = inner.jobs.filter(|jobs| Some(*jobs) != outer.jobs);
        let key = [fail_fast.map(|is| format!("fail_fast: {is}")), jobs.map(|jobs| format!("jobs: {jobs}"))];
        for key in key.into_iter().flatten().chain(inner.terms.lost_in(&outer.terms)) {
            let message = format!("`{key}` of lane `{}` means nothing here: that of lane `{lane}` counts", named.name);
            let problem = Problem::at(named.place, message);
            let problem = problem.hint(format!("write it there, or run `{}` by itself", named.name));
            remarks.push(LaneRemark { path: file.path.clone(), lane: Some(lane.to_owned()), problem });
        }
    }
    remarks
}

/// Returns the included lanes with the places of their names.
fn includes<'b>(lane_files: &'b LaneFiles, lane: &str) -> Vec<&'b NamedSpan> {
    let draft = lane_files.lanes.get(lane).and_then(|file| file.draft.as_ref());
    let (mut named, mut open): (Vec<&NamedSpan>, Vec<&StepItem>) = (Vec::new(), Vec::new());
    open.extend(draft.iter().flat_map(|draft| &draft.items).rev());
    while let Some(item) = open.pop() {
        match &item.kind {
            StepKind::Lane(lane) => named.push(lane),
            StepKind::Group(members) => open.extend(members.iter().rev()),
            StepKind::Run(_) | StepKind::Task(_) => {}
        }
    }
    named
}
