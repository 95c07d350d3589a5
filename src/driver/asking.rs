//! Calls that need a person's approval. Questions are asked one at a time.
//!
//! A call is denied, with the reason, if no person can be asked, no answer comes in time, or the
//! run stops.

use super::effects::EffectRunner;
use super::error::PlanError;
use super::inbox::Inbox;
use super::tool_lists::patterns;
use crate::chat::ToolCall;
use crate::id::{CallId, RunId};
use crate::report::seconds;
use crate::run::{Event, RunPlan, ToolAccess};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A question to a person: may this call run?
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The run of the call.
    pub run: RunId,
    /// The path of the sub-agent that makes the call (`1`, `1.2`). `None` for the run itself.
    pub of: Option<String>,
    /// The name of the tool.
    pub tool: String,
    /// The arguments that the call will use.
    pub args: Value,
    /// The time to answer, from now on. `None`: no limit.
    pub within: Option<Duration>,
}

/// The answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// The call may run.
    Yes,
    /// The call may run, and so may equal calls from now on: the same command, the same tool on the
    /// same path, or the same tool with the same arguments.
    Always,
    /// The call may not run. The model gets the reason, unless it is empty.
    No(String),
}

/// Access to the person who approves calls. Clones ask the same person, one question at a time. The
/// default has no person.
#[derive(Clone, Default)]
pub struct Asker(Option<Arc<HumanAsker>>);

struct HumanAsker {
    ask: Box<dyn Fn(Question) -> BoxFuture<'static, Consent> + Send + Sync>,
    /// Locked while a question is shown.
    turn: tokio::sync::Mutex<()>,
    /// The keys of calls that need no more questions.
    agreed: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.has_no_listener() { "Asker(none)" } else { "Asker(some)" })
    }
}

impl Asker {
    /// Creates an asker that calls `ask` for each question. fledge drops the future when the run no
    /// longer waits for the answer.
    pub fn new<A>(ask: impl Fn(Question) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Consent> + Send + 'static,
    {
        let ask = Box::new(move |question| ask(question).boxed());
        Self(Some(Arc::new(HumanAsker { ask, turn: tokio::sync::Mutex::default(), agreed: Mutex::default() })))
    }

    /// Returns true if no person can be asked.
    pub fn has_no_listener(&self) -> bool {
        self.0.is_none()
    }

    /// Asks a question once no other question is shown. The time to answer starts then.
    ///
    /// # Errors
    /// The reason for the denial.
    pub(super) async fn agree(&self, question: Question, stop: &CancellationToken) -> Result<(), String> {
        let Some(person) = &self.0 else {
            return Err(format!("cannot approve {}: no terminal or approval handler", question.tool));
        };
        let stopped = || Err("the run was stopped before a person answered".to_owned());
        let what = what(&question);
        let _turn = tokio::select! {
            biased;
            () = stop.cancelled() => return stopped(),
            turn = person.turn.lock() => turn,
        };
        if person.agreed().contains(&what) {
            return Ok(());
        }
        let within = question.within;
        let late = async {
            match within {
                Some(within) => tokio::time::sleep(within).await,
                None => std::future::pending().await,
            }
        };
        let asked = AssertUnwindSafe((person.ask)(question)).catch_unwind();
        let consent = tokio::select! {
            biased;
            () = stop.cancelled() => return stopped(),
            consent = asked => consent.map_err(|_| "asking for approval failed".to_owned())?,
            () = late => {
                let ms = within.map_or(0, crate::duration::milliseconds);
                return Err(format!("no answer within {}", seconds(ms)));
            }
        };
        match consent {
            Consent::Yes => Ok(()),
            Consent::Always => {
                person.agreed().insert(what);
                Ok(())
            }
            Consent::No(why) if why.trim().is_empty() => Err("a person said no".to_owned()),
            Consent::No(why) => Err(format!("a person said no: {}", why.trim())),
        }
    }
}

impl HumanAsker {
    fn agreed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key by which [`Consent::Always`] finds equal calls.
fn what(question: &Question) -> String {
    let Question { tool, args, .. } = question;
    let same = match (args.get("command"), args.get("path")) {
        (Some(command), _) if tool == "shell-exec" => command,
        (_, Some(path)) if tool.starts_with("files-") => path,
        _ => args,
    };
    format!("{tool} {same}")
}

impl EffectRunner {
    /// Asks whether a call may run. The answer arrives in the inbox.
    pub(super) fn confirm(&self, call: CallId, tool: &ToolCall, inbox: &mut Inbox) {
        let answered = move |agreed: Result<(), String>| Event::ConfirmationAnswered {
            call,
            approved: agreed.is_ok(),
            note: agreed.err().unwrap_or_default(),
        };
        let question = self.question(&tool.name, &tool.input.to_value());
        let (asker, stop) = (self.settings.asker.clone(), inbox.stop_token());
        let effect = async move { answered(asker.agree(question, &stop).await) };
        inbox.start("confirmation", effect, answered(Err("asking for approval failed".into())));
    }

    /// Builds the question about a call.
    pub(super) fn question(&self, tool: &str, args: &Value) -> Question {
        let within = self.task.conduct.confirm_within_ms.map(Duration::from_millis);
        Question { run: self.run_dir.run(), of: self.lineage.path(), tool: tool.into(), args: args.clone(), within }
    }
}

/// Marks the tools and shell commands that need a person's approval. If no person can be asked,
/// adds a note for each: its calls are denied.
pub(super) fn ask_for(approve: &[String], asker: &Asker, plan: &mut RunPlan) -> Result<(), PlanError> {
    let (commands, tools): (Vec<&String>, Vec<&String>) = approve.iter().partition(|ask| ask.contains(':'));
    let asked = patterns(&tools.into_iter().cloned().collect::<Vec<_>>())?;
    let denied = "needs approval, but no person can be asked: fledge denies its calls";
    for rule in plan.rules.iter_mut().filter(|rule| rule.access == ToolAccess::Allowed && asked.is_match(&rule.name)) {
        rule.access = ToolAccess::Ask;
        if asker.has_no_listener() {
            plan.notes.push(format!("`{}` {denied}", rule.name));
        }
    }
    for (tool, command) in commands.into_iter().filter_map(|ask| ask.split_once(':')) {
        let is_offered = plan.rules.iter().any(|rule| rule.name == tool && rule.access == ToolAccess::Allowed);
        if asker.has_no_listener() && is_offered {
            plan.notes.push(format!("`{command}` {denied}"));
        }
        plan.ask_commands.push(command.to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn question(command: &str, within: Option<Duration>) -> Question {
        Question {
            run: RunId::new("r"),
            of: None,
            tool: "shell-exec".into(),
            args: json!({ "command": command }),
            within,
        }
    }

    async fn agree(asker: &Asker, command: &str) -> Result<(), String> {
        asker.agree(question(command, None), &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn nobody_there_is_a_no_at_once() {
        assert_eq!(
            agree(&Asker::default(), "a").await,
            Err("cannot approve shell-exec: \
            no terminal or approval handler"
                .into())
        );
    }

    #[tokio::test]
    async fn each_answer_means_what_it_says_and_always_is_for_the_same_command_alone() {
        let count = Arc::new(AtomicUsize::new(0));
        let counted = count.clone();
        let asker = Asker::new(move |question| {
            counted.fetch_add(1, Ordering::Relaxed);
            async move {
                match question.args["command"].as_str() {
                    Some("yes") => Consent::Yes,
                    Some("always") => Consent::Always,
                    Some("why") => Consent::No(" too soon\n".into()),
                    Some("panic") => panic!("the asker panics"),
                    _ => Consent::No(String::new()),
                }
            }
        });
        let cases = [
            ("yes", Ok(())),
            ("always", Ok(())),
            ("always", Ok(())),
            ("always ", Err("a person said no".to_owned())),
            ("why", Err("a person said no: too soon".to_owned())),
            ("panic", Err("asking for approval failed".to_owned())),
            ("yes", Ok(())),
        ];
        for (command, wanted) in cases {
            assert_eq!(agree(&asker, command).await, wanted, "{command}");
        }
        assert_eq!(count.load(Ordering::Relaxed), 6);
    }

    #[tokio::test(start_paused = true)]
    async fn questions_are_asked_in_turn_and_each_timeout_runs_only_while_shown() {
        let shown = Arc::new(AtomicUsize::new(0));
        let now = shown.clone();
        let asker = Asker::new(move |question| {
            let now = now.clone();
            async move {
                assert_eq!(now.fetch_add(1, Ordering::SeqCst), 0, "two questions at once");
                let slow = question.args["command"] == "slow";
                tokio::time::sleep(Duration::from_secs(if slow { 9 } else { 60 })).await;
                now.fetch_sub(1, Ordering::SeqCst);
                Consent::Yes
            }
        });
        let stop = CancellationToken::new();
        let ask = |command, seconds| asker.agree(question(command, Some(Duration::from_secs(seconds))), &stop);
        let (first, second) = tokio::join!(ask("slow", 10), ask("slow", 10));
        assert_eq!((first, second), (Ok(()), Ok(())));
        assert_eq!(ask("never", 5).await, Err("no answer within 5.0s".into()));
        shown.store(0, Ordering::SeqCst); // its future was dropped
        assert_eq!(ask("slow", 10).await, Ok(()));
    }

    #[tokio::test]
    async fn a_stop_ends_the_wait_for_an_answer_and_that_for_the_turn() {
        let asker = Asker::new(|_| std::future::pending());
        let stop = CancellationToken::new();
        let both =
            async { tokio::join!(asker.agree(question("a", None), &stop), asker.agree(question("b", None), &stop)) };
        let halt = async {
            tokio::task::yield_now().await;
            stop.cancel();
        };
        let (both, ()) = tokio::join!(both, halt);
        let stopped = Err("the run was stopped before a person answered".to_owned());
        assert_eq!(both, (stopped.clone(), stopped));
    }
}
