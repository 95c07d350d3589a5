//! Parts of Executing: model calls, pauses, questions to people, tools, sub-agents, hooks, answers
//! to questions, compaction.

mod answering;
mod backing_off;
mod calling;
mod compacting;
mod confirming;
mod dispatching;
mod hooks;
mod processing;
mod tools;
mod turn;

pub(super) use answering::AnsweringQuery;
pub(super) use backing_off::BackingOff;
pub(super) use calling::{CallingModel, delta_event};
pub(super) use compacting::Compacting;
pub(super) use confirming::Confirming;
pub(super) use dispatching::Dispatching;
pub(super) use hooks::RunningHooks;
pub(super) use tools::RunningTools;
pub(in crate::run) use turn::ToolTurn;
pub(super) use turn::TurnWait;
