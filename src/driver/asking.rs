//! Calls that need a person's yes: who is asked, one question after the other, and what counts as a no. Nobody there, nobody in time and
//! a run that stops are each a no that says so.

use super::briefing::{PlanFault, patterns};
use super::inbox::Inbox;
use super::perform::Hands;
use crate::chat::ToolCall;
use crate::id::{CallId, RunId};
use crate::report::seconds;
use crate::run::{Event, Plan, ToolAccess};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// What a person is asked: whether this call may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The run.
    pub run: RunId,
    /// Its sub-agent that wants it, by its path (`1`, `1.2`); `None`: the run itself.
    pub of: Option<String>,
    /// The tool.
    pub tool: String,
    /// The arguments, as they will be used.
    pub args: Value,
    /// How long there is to answer, from now on; `None`: without end.
    pub within: Option<Duration>,
}

/// What they say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Consent {
    /// It may run.
    Yes,
    /// It may, and so may the same from now on: the same command, or the same tool on the same path, or with the same arguments.
    Always,
    /// It may not. The model is told why, where that is not empty.
    No(String),
}

/// Who is asked. Clones ask the same person, who hears one question at a time. The default is that nobody is there.
#[derive(Clone, Default)]
pub struct Asker(Option<Arc<Person>>);

struct Person {
    ask: Box<dyn Fn(Question) -> BoxFuture<'static, Consent> + Send + Sync>,
    /// Held by the question that is shown.
    turn: tokio::sync::Mutex<()>,
    /// What needs no question any more.
    agreed: Mutex<BTreeSet<String>>,
}

impl fmt::Debug for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_nobody() { "Asker(nobody)" } else { "Asker(somebody)" })
    }
}

impl Asker {
    /// Has this function ask. Its future is dropped when nobody waits for the answer any more.
    pub fn new<A>(ask: impl Fn(Question) -> A + Send + Sync + 'static) -> Self
    where
        A: Future<Output = Consent> + Send + 'static,
    {
        let ask = Box::new(move |question| ask(question).boxed());
        Self(Some(Arc::new(Person { ask, turn: tokio::sync::Mutex::default(), agreed: Mutex::default() })))
    }

    /// Whether nobody is there.
    pub fn is_nobody(&self) -> bool {
        self.0.is_none()
    }

    /// Asks, as soon as nothing else is asked. The time runs from then on.
    ///
    /// # Errors
    /// With why it is a no.
    pub(super) async fn agree(&self, question: Question, stop: &CancellationToken) -> Result<(), String> {
        let Some(person) = &self.0 else { return Err(format!("nobody is there to approve {}", question.tool)) };
        let stopped = || Err("the run was stopped before anybody answered".to_owned());
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
                return Err(format!("nobody answered within {}", seconds(ms)));
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

impl Person {
    fn agreed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is the same the next time.
fn what(question: &Question) -> String {
    let Question { tool, args, .. } = question;
    let same = match (args.get("command"), args.get("path")) {
        (Some(command), _) if tool == "shell-exec" => command,
        (_, Some(path)) if tool.starts_with("files-") => path,
        _ => args,
    };
    format!("{tool} {same}")
}

impl Hands {
    /// Asks whether a call may run.
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

    /// The question about a call.
    pub(super) fn question(&self, tool: &str, args: &Value) -> Question {
        let within = self.task.conduct.confirm_within_ms.map(Duration::from_millis);
        Question { run: self.run_dir.run(), of: self.lineage.path(), tool: tool.into(), args: args.clone(), within }
    }
}

/// Marks the tools, and the commands of the shell, that a person must agree to.
pub(super) fn ask_for(approve: &[String], asker: &Asker, plan: &mut Plan) -> Result<(), PlanFault> {
    let (commands, tools): (Vec<&String>, Vec<&String>) = approve.iter().partition(|ask| ask.contains(':'));
    let asked = patterns(&tools.into_iter().cloned().collect::<Vec<_>>())?;
    let nobody = "needs somebody's approval, and nobody is there to be asked: its calls are denied";
    for rule in plan.rules.iter_mut().filter(|rule| rule.access == ToolAccess::Allowed && asked.is_match(&rule.name)) {
        rule.access = ToolAccess::Ask;
        if asker.is_nobody() {
            plan.notes.push(format!("`{}` {nobody}", rule.name));
        }
    }
    for (tool, command) in commands.into_iter().filter_map(|ask| ask.split_once(':')) {
        let is_offered = plan.rules.iter().any(|rule| rule.name == tool && rule.access == ToolAccess::Allowed);
        if asker.is_nobody() && is_offered {
            plan.notes.push(format!("`{command}` {nobody}"));
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
        assert_eq!(agree(&Asker::default(), "a").await, Err("nobody is there to approve shell-exec".into()));
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
                    Some("panic") => panic!("nobody can stand this"),
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
    async fn questions_come_one_after_the_other_and_the_time_of_each_runs_only_while_it_is_shown() {
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
        assert_eq!(ask("never", 5).await, Err("nobody answered within 5.0s".into()));
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
        let stopped = Err("the run was stopped before anybody answered".to_owned());
        assert_eq!(both, (stopped.clone(), stopped));
    }
}
