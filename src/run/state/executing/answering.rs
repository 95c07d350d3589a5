//! Answer to a question that the model asked in prose.

use super::super::NextState;
use crate::id::CallId;
use crate::run::action::Action;
use crate::run::context::RunContext;
use crate::run::prompt;
use crate::run::query::ModelQuery;
use serde::{Deserialize, Serialize};

/// Waiting for the answer to a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::run) struct AnsweringQuery {
    pub(in crate::run::state) call: CallId,
    query: ModelQuery,
}

impl AnsweringQuery {
    pub(in crate::run::state) fn start(query: ModelQuery, cx: &mut RunContext) -> Self {
        let call = cx.call();
        cx.ask(Action::AnswerQuery { call, query: query.clone() });
        Self { call, query }
    }

    pub(in crate::run::state) fn answered(answer: &str, cx: &mut RunContext) -> NextState {
        cx.transcript.say(prompt::answered(answer));
        NextState::CallModel
    }
}
