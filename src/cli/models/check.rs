//! `fledge models check`: one small request to each model, with a tool that it is asked to call.

use super::super::connect::{RequestedModels, connect};
use super::super::failure::CliError;
use super::super::output::{no_output, print_data, print_json};
use super::super::paint::{self, Tone};
use super::super::runtime::block_on;
use super::super::steps::StyledLine;
use super::MODELS_SCHEMA_VERSION;
use crate::chat::{Delta, Message, ModelError, ModelErrorKind, ToolSpec};
use crate::config::{self, ConfigError, EnvironmentLayer, KeyPlace, ModelChoice, auto_name, resolve_model};
use crate::driver::DriverModel;
use crate::process::Stopwatch;
use crate::provider::{ModelRequest, Pacer, TurnTimeouts};
use crate::setup::secrets;
use crate::task::Tier;
use crate::tool::{LateSecrets, SecretMask};
use crate::verdict::Reason;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The maximum number of tokens of an answer, enough for a model that thinks before it calls the
/// tool.
const ANSWER: u64 = 2048;
/// The time limits of a check, unless the model has its own.
const PATIENCE: TurnTimeouts =
    TurnTimeouts { first_byte: Duration::from_secs(30), idle: Duration::from_secs(30), turn: Duration::from_secs(90) };
/// The name of the tool.
const TOOL: &str = "ping";

/// The result of the check of one model.
struct ModelCheck {
    name: String,
    /// The answer of the model, if there is one.
    answer: Option<CheckAnswer>,
    /// The fault and its fix. `None` if all is well.
    wrong: Option<(String, String)>,
}

struct CheckAnswer {
    model: String,
    first_ms: u64,
    total_ms: u64,
    calls_tools: bool,
}

/// Checks the models; returns the exit code.
pub(super) fn check(
    names: &[String],
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
    as_json: bool,
) -> Result<u8, CliError> {
    let names: Vec<&str> = match names {
        [] if set.models.is_empty() => vec![auto_name(set, Tier::Code, environment).map_err(CliError::input)?],
        [] => set.models.keys().map(String::as_str).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let late = LateSecrets::default();
    let (pacer, mask) = (Pacer::default(), secrets(environment, set, &late));
    let mut ready = Vec::new();
    for name in names {
        let model = match resolve_model(name, set, environment) {
            Err(fault @ ConfigError::UnknownModel { .. }) => return Err(CliError::input(fault)),
            Err(fault) => Err(parted(&fault.to_string())),
            Ok(choice) => reach(choice, set, environment, &pacer, &late),
        };
        ready.push((name, model));
    }
    let all = ready.into_iter().map(|(name, model)| async move {
        match model {
            Ok((model, key)) => ask(name, &model, &key).await,
            Err(wrong) => ModelCheck { name: name.into(), answer: None, wrong: Some(wrong) },
        }
    });
    let mut all = block_on(join_all(all))?;
    all.iter_mut().for_each(|checked| checked.hide(&mask));
    let is_well = all.iter().all(|checked| checked.wrong.is_none());
    if as_json {
        let models: Vec<Value> = all.iter().map(ModelCheck::as_json).collect();
        let all = json!({ "schema_version": MODELS_SCHEMA_VERSION, "ok": is_well, "models": models });
        print_json(&all.to_string()).map_err(no_output)?;
    } else {
        let lines: Vec<StyledLine> = all.iter().flat_map(ModelCheck::lines).collect();
        print_data(&paint::prose(&lines)).map_err(no_output)?;
    }
    Ok(if is_well { 0 } else { Reason::ProviderFailed.exit_code(None) })
}

/// Connects a model. Returns it with a hint about its key, or else the fault and its fix.
fn reach(
    mut choice: ModelChoice,
    set: &config::ProjectConfig,
    environment: &EnvironmentLayer,
    pacer: &Pacer,
    late: &LateSecrets,
) -> Result<(DriverModel, String), (String, String)> {
    let key = match &choice.entry.key {
        Some(KeyPlace::Variable(name)) => format!("check the key in {name}"),
        Some(KeyPlace::Command { .. }) => "check what `api_key_command` prints".into(),
        Some(KeyPlace::File(path)) => format!("check the key in {}", path.display()),
        None => "no key is configured: set `api_key_env` to the name of a variable".into(),
    };
    choice.entry.max_output_tokens = choice.entry.max_output_tokens.or(Some(ANSWER)).map(|most| most.min(ANSWER));
    choice.entry.clocks = timeouts(choice.entry.clocks);
    let asked = RequestedModels { names: &[], tier: Tier::Code, folder: Path::new(".") };
    let connected = connect(choice, &asked, set, environment, pacer, late);
    connected.map(|model| (model, key)).map_err(|failure| parted(&failure.message()))
}

/// Returns the time limits of a check of a model with these limits. A user has given a model more
/// time because it needs it.
fn timeouts(own: TurnTimeouts) -> TurnTimeouts {
    if own == TurnTimeouts::default() { PATIENCE } else { own }
}

/// Splits a message from its fix, which many messages have in parentheses at the end.
fn parted(message: &str) -> (String, String) {
    let (says, mend) = message.rsplit_once(" (").unwrap_or((message, "see `fledge docs reference/models`"));
    (says.into(), mend.trim_end_matches(')').into())
}

async fn ask(name: &str, model: &DriverModel, key: &str) -> ModelCheck {
    let word = json!({ "type": "object", "properties": { "word": { "type": "string" } }, "required": ["word"] });
    let tool =
        ToolSpec { name: TOOL.into(), description: "Answers with the word that it is given.".into(), schema: word };
    let request = ModelRequest {
        system: "You are being tested.".into(),
        messages: Arc::new([Message::user("Call the tool `ping` once, with the word `pong`.")]),
        tools: Arc::new([tool]),
        turn: 1,
        max_output: None,
    };
    let (watch, first) = (Stopwatch::start(), OnceLock::new());
    let now = || u64::try_from(watch.read().as_millis()).unwrap_or(u64::MAX);
    let heard = |delta| {
        // `Spent` comes before the request goes out.
        if !matches!(delta, Delta::Spent(_)) {
            let _only_the_first_counts = first.set(now());
        }
    };
    let done = model.provider.complete(&request, &heard).await;
    let total_ms = now();
    match done {
        Ok(reply) => {
            let calls_tools = reply.tool_calls().any(|call| call.name == TOOL);
            let answer = CheckAnswer {
                model: reply.model,
                first_ms: first.get().copied().unwrap_or(total_ms),
                total_ms,
                calls_tools,
            };
            let mend = "use a model that calls tools, or set `tools_mode: text` for this model";
            let wrong = (!calls_tools).then(|| ("model answers but calls no tool".into(), mend.into()));
            ModelCheck { name: name.into(), answer: Some(answer), wrong }
        }
        Err(error) => {
            let says = error.message.strip_prefix(&format!("{name}: ")).unwrap_or(&error.message);
            let wrong = match (error.fault, says.strip_suffix(')').and_then(|says| says.rsplit_once(" ("))) {
                (ModelErrorKind::Network, Some((says, mend))) => (says.to_owned(), mend.to_owned()),
                _ => (says.to_owned(), mend(&error, key)),
            };
            ModelCheck { name: name.into(), answer: None, wrong: Some(wrong) }
        }
    }
}

fn mend(error: &ModelError, key: &str) -> String {
    match error.fault {
        ModelErrorKind::Auth => key.into(),
        ModelErrorKind::Quota => "check the account's credit and limits".into(),
        ModelErrorKind::NotFound => "check `model` and `base_url`".into(),
        ModelErrorKind::Network => "check `base_url`, `proxy` and the network".into(),
        ModelErrorKind::Protocol => "the answer does not match this API: check `provider` and `base_url`".into(),
        ModelErrorKind::BadRequest | ModelErrorKind::ContextTooLong => {
            "the provider rejects the request: check `provider`, `model` and `reasoning`".into()
        }
        ModelErrorKind::Busy => match error.retry_after_ms {
            Some(wait) => format!("try again in {} s", wait.div_ceil(1000)),
            None => "try again later".into(),
        },
    }
}

impl ModelCheck {
    /// Hides secrets in the server's texts, because a server may repeat the key that it was sent.
    fn hide(&mut self, mask: &SecretMask) {
        let texts = self.wrong.iter_mut().flat_map(|(says, mend)| [says, mend]);
        let texts = texts.chain(self.answer.iter_mut().map(|answer| &mut answer.model));
        texts.for_each(|text| *text = mask.hidden(text).unwrap_or_else(|| std::mem::take(text)));
    }

    fn as_json(&self) -> Value {
        let answer = self.answer.as_ref();
        json!({
            "name": self.name,
            "ok": self.wrong.is_none(),
            "model": answer.map(|answer| &answer.model),
            "first_ms": answer.map(|answer| answer.first_ms),
            "total_ms": answer.map(|answer| answer.total_ms),
            "calls_tools": answer.map(|answer| answer.calls_tools),
            "problem": self.wrong.as_ref().map(|(says, _)| says),
            "fix": self.wrong.as_ref().map(|(_, mend)| mend),
        })
    }

    fn lines(&self) -> Vec<StyledLine> {
        let name = (Tone::Strong, format!("{}  ", self.name));
        let told = self.answer.as_ref().map(|answer| {
            let CheckAnswer { model, first_ms, total_ms, .. } = answer;
            let model = paint::one_line(model);
            format!("{model} starts to answer after {first_ms} ms, done after {total_ms} ms")
        });
        let Some((says, mend)) = &self.wrong else {
            let calls = (Tone::Plain, ", and calls tools".to_owned());
            let told = told.map(|told| (Tone::Plain, told));
            return vec![[(Tone::Good, "✓ ".to_owned()), name].into_iter().chain(told).chain([calls]).collect()];
        };
        let told = told.map(|told| (Tone::Faint, format!(" ({told})")));
        vec![
            [(Tone::Bad, "✗ ".to_owned()), name, (Tone::Plain, paint::one_line(says))]
                .into_iter()
                .chain(told)
                .collect(),
            vec![(Tone::Faint, "  → ".to_owned()), (Tone::Plain, paint::one_line(mend))],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_waits_as_long_as_the_model_was_given() {
        assert_eq!(timeouts(TurnTimeouts::default()), PATIENCE);
        let slow = TurnTimeouts { first_byte: Duration::from_secs(600), ..TurnTimeouts::default() };
        assert_eq!(timeouts(slow), slow);
    }
}
