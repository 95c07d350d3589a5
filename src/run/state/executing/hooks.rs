//! Hooks after a turn in which files may have changed. A failing hook never stops the run.

use super::super::NextState;
use crate::id::{CallId, TreeId};
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::event::DoneTool;
use crate::run::loops::LoopOpinion;
use crate::run::prompt;
use crate::run::watch::AgentEvent;
use crate::verdict::Reason;
use serde::{Deserialize, Serialize};

/// Waiting for the hooks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct RunningHooks {
    pub(in crate::run::state) call: CallId,
    /// The calls of the turn that ran.
    pub(in crate::run) tools: Vec<DoneTool>,
}

impl RunningHooks {
    pub(in crate::run::state) fn start(tools: Vec<DoneTool>, cx: &mut RunContext) -> Self {
        let call = cx.call();
        cx.ask(Action::RunHooks { call });
        Self { call, tools }
    }

    /// Passes notes to the model and `reported` to people. `checkpoint` is the tree after the turn,
    /// if it changed.
    pub(in crate::run::state) fn finished(
        notes: Vec<String>,
        reported: Vec<String>,
        checkpoint: Option<TreeId>,
        cx: &mut RunContext,
    ) -> NextState {
        reported.into_iter().for_each(|partial_text| cx.warn(partial_text));
        for note in notes {
            cx.warn(note.lines().next().unwrap_or_default().to_owned());
            cx.ledger.hook_said(&note);
            cx.emit(AgentEvent::Hook { note: note.clone() });
            cx.transcript.say(note);
        }
        if let Some(tree) = checkpoint {
            cx.emit(AgentEvent::Checkpoint { turn: cx.ledger.turns, tree: tree.clone() });
            let opinion = cx.loops.arrive(&tree, cx.spec.limits.loop_threshold);
            cx.checkpoint = Some(tree);
            match opinion {
                LoopOpinion::Fine => {}
                LoopOpinion::Repetitive => cx.transcript.say(prompt::TO_AND_FRO.into()),
                LoopOpinion::Loop => {
                    let why = "the model kept changing the files back and forth";
                    return NextState::end(Reason::LoopDetected, why);
                }
            }
        }
        NextState::CallModel
    }
}
