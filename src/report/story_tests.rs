//! Tests of stories from journals.

use super::*;
use crate::chat::{Block, ModelError, ModelErrorKind, Reply, ToolCall, ToolInput, ToolOutcome};
use crate::id::{CallId, RunId};
use crate::run::{RunPlan, RunSpec, ToolAccess, ToolRole, ToolRule};
use serde_json::json;

fn reply(content: Vec<Block>, stop: StopReason) -> Box<Reply> {
    Box::new(Reply { content, stop, usage: None, model: "m".into(), lacks_end: false })
}

/// Adds an event for the call that the run awaits.
fn tell(story: &mut RunStory, at: u64, event: impl FnOnce(CallId) -> Event) {
    let call = story.run.awaited().first().copied().unwrap_or(CallId(0));
    story.push(Elapsed(at), event(call));
}

fn story_of_run() -> RunStory {
    let mut story = RunStory::default();
    let spec = RunSpec { verify: false, ..RunSpec::new(RunId::new("r"), "Title", "Do it.") };
    let rules = vec![ToolRule { name: "shell-exec".into(), access: ToolAccess::Allowed, role: ToolRole::Writer }];
    let plan = RunPlan { rules, gate_digest: "g".into(), ..RunPlan::default() };
    tell(&mut story, 0, |_| Event::TaskSubmitted { spec: Box::new(spec) });
    tell(&mut story, 10, |call| Event::PlanReady { call, plan: Box::new(plan) });
    let fault = ModelError { retry_after_ms: Some(500), ..ModelError::new(ModelErrorKind::Busy, "busy") };
    tell(&mut story, 110, |call| Event::ModelFailed { call, error: fault });
    tell(&mut story, 5_110, |_| Event::DeadlinePassed);
    let input = ToolInput::Object(json!({ "command": "make" }));
    let use_tool = Block::ToolUse(ToolCall { id: "c".into(), name: "shell-exec".into(), input });
    tell(&mut story, 5_610, |call| Event::ModelCompleted { call, reply: reply(vec![use_tool], StopReason::ToolUse) });
    tell(&mut story, 5_910, |call| Event::ToolFinished { call, outcome: ToolOutcome::error("no") });
    story
}

#[test]
fn a_story_has_what_was_said_done_and_retried_in_order() {
    let story = story_of_run();
    let names: Vec<_> =
        story.scenes.iter().map(|scene| (scene.at_ms, serde_json::to_value(scene).unwrap()["type"].clone())).collect();
    let wanted = [
        (0, "began"),
        (10, "planned"),
        (10, "attempt"),
        (110, "discarded"),
        (110, "retry"),
        (5_610, "turn"),
        (5_610, "used"),
        (5_910, "tool"),
    ];
    assert_eq!(names, wanted.map(|(at, name)| (at, json!(name))));
    let SceneKind::Tool(tool) = &story.scenes[7].what else { panic!("{:?}", story.scenes[7]) };
    assert_eq!(
        (tool.name.as_str(), tool.success, tool.duration_ms, tool.output.as_str()),
        ("shell-exec", false, 300, "no")
    );
    let SceneKind::Turn { number, duration_ms, .. } = &story.scenes[5].what else { panic!("{:?}", story.scenes[5]) };
    assert_eq!((*number, *duration_ms), (1, 500));
}

#[test]
fn the_time_goes_to_what_the_run_was_busy_with() {
    let story = story_of_run();
    let spent = TimePart::ALL.map(|part| story.spent_ms(part));
    assert_eq!((spent, story.total_ms()), ([600, 300, 0, 5_000, 10], 5_910));
    let names: Vec<_> = story.main_activities(6).into_iter().map(TimePart::as_str).collect();
    assert_eq!(names, ["waiting", "waiting", "waiting", "waiting", "waiting", "model"]);
    assert!(RunStory::default().main_activities(9).is_empty());
}

#[test]
fn an_answer_that_nobody_waits_for_is_no_scene() {
    let mut story = story_of_run();
    let before = story.scenes.len();
    story.push(Elapsed(6_000), Event::QueryAnswered { call: CallId(999), answer: "late".into() });
    let rest: Vec<_> = story.scenes[before..].iter().map(|scene| &scene.what).collect();
    assert!(matches!(rest[..], [SceneKind::Warning { .. }]), "{rest:?}");
}
