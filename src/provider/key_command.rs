//! Keys printed by a command. fledge runs the command when it needs a key, again when the key
//! expires, and once more when the provider refuses it. The output of the command is never shown.

use super::{
    DeltaSink, Endpoint, ModelRequest, PendingRenewal, PendingReply, Provider, ProviderError, Secret, connect,
};
use crate::chat::{Delta, ModelError, ModelErrorKind};
use crate::limits::GRACE;
use crate::process::{EndedProcess, Invocation, ProcessEnd, Stopwatch, Variables, run};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

/// The time limit of the command.
const KEY_TIME: Duration = Duration::from_secs(30);
/// The size limit of the output, in bytes.
const LONGEST_KEY: usize = 16 * 1024;

/// A command that prints a key, and nothing else, to its standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyCommand {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// The complete environment of the command, which is the operator's.
    pub env: Variables,
    /// The lifetime of a key; `None` means that the key is valid until the provider refuses it.
    pub ttl: Option<Duration>,
}

/// The commands that print the secrets of an endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyCommands {
    /// The command that prints the key.
    pub key: Option<KeyCommand>,
    /// The commands that print header values, with the headers' names.
    pub headers: Vec<(String, KeyCommand)>,
}

/// A callback that receives each secret printed by a command before it is sent anywhere.
pub type SecretListener = Arc<dyn Fn(&Secret) + Send + Sync>;

/// The reason why a command gave no key. It never contains the command's output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The command could not be started.
    #[error("cannot start the key command: {0}")]
    NotStarted(String),
    /// The command exceeded its time limit.
    #[error("the key command did not end within {} s; it has no terminal for prompts", KEY_TIME.as_secs())]
    Late,
    /// The command failed.
    #[error("the key command failed with {0}; run it by hand to see why")]
    Failed(String),
    /// The output is not a key.
    #[error("the key command printed {0} instead of a key")]
    NoKey(&'static str),
}

impl KeyCommand {
    /// Runs the command. Its standard error is discarded, because it may contain the key too.
    ///
    /// # Errors
    /// If the command does not print exactly one line in time.
    pub async fn run(&self) -> Result<Secret, KeyError> {
        let script = r#"exec "$@" 2>/dev/null"#;
        let args = ["-c", script, "sh"].into_iter().map(str::to_owned).chain(self.command.iter().cloned());
        let invocation = Invocation {
            program: "/bin/sh".into(),
            args: args.collect(),
            dir: PathBuf::from("/"),
            env: self.env.clone(),
            timeout: Some(KEY_TIME),
            grace: GRACE,
            linger: Duration::ZERO,
            log: None,
            log_limit: 0,
        };
        let EndedProcess { end, output, .. } = run(invocation, &CancellationToken::new(), &|_| {}).await;
        match end {
            ProcessEnd::Exited(0) => {}
            ProcessEnd::Exited(127) => return Err(KeyError::NotStarted("program not found".into())),
            ProcessEnd::Exited(126) => return Err(KeyError::NotStarted("the program is not executable".into())),
            ProcessEnd::Exited(code) => return Err(KeyError::Failed(format!("exit code {code}"))),
            ProcessEnd::Signalled(signal) => return Err(KeyError::Failed(format!("signal {signal}"))),
            ProcessEnd::TimedOut | ProcessEnd::Stopped | ProcessEnd::Exceeded(_) => return Err(KeyError::Late),
            ProcessEnd::NotStarted(why) => return Err(KeyError::NotStarted(why)),
        }
        if output.total > LONGEST_KEY as u64 {
            return Err(KeyError::NoKey("too many bytes"));
        }
        let text = std::str::from_utf8(&output.head).map_err(|_| KeyError::NoKey("invalid UTF-8"))?.trim();
        match text {
            "" => Err(KeyError::NoKey("nothing")),
            text if text.chars().any(char::is_control) => Err(KeyError::NoKey("more than one line")),
            text => Ok(Secret::new(text)),
        }
    }
}

impl KeyCommands {
    /// Runs all commands and returns the endpoint with the printed secrets.
    ///
    /// # Errors
    /// If a command gives no secret. The error names the cause, and for a header also its name.
    pub async fn fetch(&self, mut endpoint: Endpoint, told: &SecretListener) -> Result<Endpoint, String> {
        if let Some(command) = &self.key {
            let key = command.run().await.map_err(|fault| fault.to_string())?;
            told(&key);
            endpoint.key = Some(key);
        }
        for (name, command) in &self.headers {
            let value = command.run().await.map_err(|fault| format!("the header `{name}`: {fault}"))?;
            told(&value);
            endpoint.headers.retain(|(known, _)| known != name);
            endpoint.headers.push((name.clone(), value));
        }
        Ok(endpoint)
    }

    /// Returns true if no command is configured.
    pub fn is_empty(&self) -> bool {
        self.key.is_none() && self.headers.is_empty()
    }

    /// Returns the shortest lifetime of the printed secrets.
    fn ttl(&self) -> Option<Duration> {
        let all = self.key.iter().chain(self.headers.iter().map(|(_, command)| command));
        all.filter_map(|command| command.ttl).min()
    }
}

/// Like [`connect`], for an endpoint whose secrets come from commands. The endpoint already holds
/// the first secrets. The commands run again when these expire or are refused.
///
/// # Errors
/// The errors of [`connect`].
pub fn connect_keyed(
    endpoint: Endpoint,
    sources: KeyCommands,
    told: SecretListener,
) -> Result<Arc<dyn Provider>, ProviderError> {
    let held = Held { provider: connect(endpoint.clone())?, endpoint, round: 0, since: Stopwatch::start() };
    let name = format!("{}/{}", held.endpoint.kind.name(), held.endpoint.model);
    Ok(Arc::new(Keyed { name, sources, told, held: Mutex::new(held) }))
}

/// A provider whose key changes.
struct Keyed {
    name: String,
    sources: KeyCommands,
    told: SecretListener,
    held: Mutex<Held>,
}

/// The current provider with its secrets.
struct Held {
    provider: Arc<dyn Provider>,
    endpoint: Endpoint,
    /// The number of changes of the secrets.
    round: u64,
    since: Stopwatch,
}

impl Keyed {
    /// Returns the provider with secrets that stay valid for longer than `ahead`. If `refused` is
    /// the current round, it fetches new secrets.
    async fn provider(&self, refused: Option<u64>, ahead: Duration) -> Result<(Arc<dyn Provider>, u64), ModelError> {
        let mut held = self.held.lock().await;
        let is_old = self.sources.ttl().is_some_and(|ttl| held.since.read().saturating_add(ahead) >= ttl);
        if is_old || refused == Some(held.round) {
            let wrong = |why: &dyn fmt::Display| ModelError::new(ModelErrorKind::Auth, format!("{}: {why}", self.name));
            let endpoint = self.sources.fetch(held.endpoint.clone(), &self.told).await.map_err(|why| wrong(&why))?;
            if endpoint != held.endpoint {
                held.provider = connect(endpoint.clone()).map_err(|fault| wrong(&fault))?;
                held.endpoint = endpoint;
                held.round += 1;
            }
            held.since = Stopwatch::start();
        }
        Ok((held.provider.clone(), held.round))
    }
}

impl Provider for Keyed {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn complete<'a>(&'a self, request: &'a ModelRequest, deltas: DeltaSink<'a>) -> PendingReply<'a> {
        Box::pin(async move {
            let (provider, round) = self.provider(None, Duration::ZERO).await?;
            let received = AtomicBool::new(false);
            let listen = |delta| {
                received.fetch_or(!matches!(delta, Delta::Spent(_)), Ordering::Relaxed);
                deltas(delta);
            };
            let refused = match provider.complete(request, &listen).await {
                Err(error) if error.fault == ModelErrorKind::Auth && !received.load(Ordering::Relaxed) => error,
                done => return done,
            };
            let (again, other) = self.provider(Some(round), Duration::ZERO).await?;
            if other == round {
                return Err(refused);
            }
            again.complete(request, deltas).await
        })
    }

    fn renew(&self, ahead: Duration) -> PendingRenewal<'_> {
        Box::pin(async move { self.provider(None, ahead).await.map(drop) })
    }
}

impl fmt::Debug for Keyed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyed").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::WireFormat;
    use crate::test_support::{ScriptedServer, ServerAct};
    use std::path::Path;

    fn command(script: &str, ttl: Option<Duration>) -> KeyCommand {
        let env =
            Variables::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("OWN".into(), "of-the-operator".into())]);
        KeyCommand { command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(), env, ttl }
    }

    /// Returns a script that prints another key on each run and counts its runs.
    fn counting(folder: &Path) -> String {
        let count = folder.join("count");
        format!("echo x >> {0}; echo key-$(wc -l < {0} | tr -d ' ')", count.display())
    }

    fn answer(status: &str, body: &str) -> Vec<ServerAct> {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\nconnection: close\r\n"
        );
        vec![ServerAct::Send(format!("{head}\r\n{body}"))]
    }

    fn answers() -> Vec<ServerAct> {
        let chunk = r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
        answer("200 OK", &format!("data: {chunk}\n\ndata: [DONE]\n\n"))
    }

    fn denied() -> Vec<ServerAct> {
        answer("401 Unauthorized", r#"{"error":{"message":"expired"}}"#)
    }

    async fn keys(
        scripts: Vec<Vec<ServerAct>>,
        source: KeyCommand,
        asks: usize,
    ) -> (Vec<String>, Vec<Result<String, String>>) {
        let mut server = ScriptedServer::start(scripts);
        let key = source.run().await.unwrap();
        let endpoint =
            Endpoint { base_url: Some(server.url()), key: Some(key), ..Endpoint::new(WireFormat::OpenAi, "m") };
        let sources = KeyCommands { key: Some(source), headers: Vec::new() };
        let provider = connect_keyed(endpoint, sources, Arc::new(|_| {})).unwrap();
        let request = ModelRequest {
            system: String::new(),
            messages: Arc::new([]),
            tools: Arc::new([]),
            turn: 1,
            max_output: None,
        };
        let mut ends = Vec::new();
        for _ in 0..asks {
            let done = provider.complete(&request, &|_| {}).await;
            ends.push(done.map(|reply| reply.text()).map_err(|error| error.message));
        }
        let key = |request: String| {
            let line = request
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("authorization: bearer ").map(str::to_owned));
            line.unwrap_or_default()
        };
        (server.requests().into_iter().map(key).collect(), ends)
    }

    #[tokio::test]
    async fn a_key_program_gets_the_operators_environment_and_its_line_end_is_removed() {
        assert_eq!(
            command("echo noise >&2; printf \" $OWN\\n\"", None).run().await,
            Ok(Secret::new("of-the-operator"))
        );
    }

    #[tokio::test]
    async fn a_program_that_gives_no_key_is_told_of_without_a_word_of_what_it_printed() {
        let fault = async |script: &str| command(script, None).run().await.unwrap_err().to_string();
        assert_eq!(
            fault("echo hush; exit 3").await,
            "the key command failed with exit code 3; run it by hand to see why"
        );
        assert_eq!(fault("exit 0").await, "the key command printed nothing instead of a key");
        assert_eq!(fault("echo hush; echo hush").await, "the key command printed more than one line instead of a key");
        assert_eq!(fault("head -c 100000 /dev/zero").await, "the key command printed too many bytes instead of a key");
        let missing = KeyCommand { command: vec!["no-such-program".into()], ..command("", None) };
        let fault = missing.run().await.unwrap_err().to_string();
        assert_eq!(fault, "cannot start the key command: program not found");
    }

    #[tokio::test]
    async fn a_refused_key_is_asked_for_again_once_and_a_good_one_is_kept() {
        let folder = crate::test_support::temp_dir();
        let (keys, ends) = keys(vec![denied(), answers(), answers()], command(&counting(folder.path()), None), 2).await;
        assert_eq!((keys, ends), (["key-1", "key-2", "key-2"].map(str::to_owned).to_vec(), vec![Ok("hi".into()); 2]));
    }

    #[tokio::test]
    async fn a_header_from_a_program_is_fetched_anew_and_its_value_is_masked_first() {
        let folder = crate::test_support::temp_dir();
        let mut server = ScriptedServer::start(vec![denied(), answers()]);
        let sources =
            KeyCommands { key: None, headers: vec![("x-token".into(), command(&counting(folder.path()), None))] };
        let received: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
        let told: SecretListener = {
            let received = received.clone();
            Arc::new(move |secret| received.lock().unwrap().push(secret.reveal().to_owned()))
        };
        let endpoint = Endpoint { base_url: Some(server.url()), ..Endpoint::new(WireFormat::OpenAi, "m") };
        let endpoint = sources.fetch(endpoint, &told).await.unwrap();
        let provider = connect_keyed(endpoint, sources, told).unwrap();
        let request = ModelRequest {
            system: String::new(),
            messages: Arc::new([]),
            tools: Arc::new([]),
            turn: 1,
            max_output: None,
        };
        assert_eq!(provider.complete(&request, &|_| {}).await.unwrap().text(), "hi");
        let sent = server.requests().into_iter().map(|request| request.contains("x-token: key-2")).collect::<Vec<_>>();
        assert_eq!((sent, received.lock().unwrap().join(" ")), (vec![false, true], "key-1 key-2".to_owned()));
    }

    #[tokio::test]
    async fn a_key_that_stays_the_same_is_not_tried_twice() {
        let (keys, ends) = keys(vec![denied(), answers()], command("echo key-same", None), 1).await;
        assert_eq!(keys, ["key-same"]);
        assert_eq!(ends, [Err("openai/m: 401 expired (check the key)".into())]);
    }

    #[tokio::test]
    async fn a_key_that_will_be_old_soon_is_renewed_ahead_and_one_that_lasts_is_not() {
        let folder = crate::test_support::temp_dir();
        let renewed = async |ttl: Option<Duration>| {
            let count = folder.path().join(format!("{}", ttl.unwrap_or_default().as_secs()));
            std::fs::create_dir(&count).unwrap();
            let sources = KeyCommands { key: Some(command(&counting(&count), ttl)), headers: Vec::new() };
            let told: SecretListener = Arc::new(|_| {});
            let endpoint = sources.fetch(Endpoint::new(WireFormat::OpenAi, "m"), &told).await.unwrap();
            // A chain of wrappers as in production: each one forwards `renew`.
            let keyed = connect_keyed(endpoint, sources, Arc::new(|_| {})).unwrap();
            let rate = crate::provider::RateLimit { per_minute: None, at_once: None, max_wait: Duration::ZERO };
            let paced = crate::provider::Pacer::default().pace(keyed, "here", rate);
            let outer = crate::provider::TextTools::new(paced);
            outer.renew(Duration::from_secs(300)).await.unwrap();
            std::fs::read_to_string(count.join("count")).unwrap().lines().count()
        };
        assert_eq!(renewed(Some(Duration::from_secs(299))).await, 2);
        assert_eq!(renewed(Some(Duration::from_secs(3600))).await, 1);
        assert_eq!(renewed(None).await, 1);
    }

    #[tokio::test]
    async fn an_old_key_is_asked_for_again_before_it_is_used() {
        let folder = crate::test_support::temp_dir();
        let source = command(&counting(folder.path()), Some(Duration::ZERO));
        let (keys, _) = keys(vec![answers(), answers()], source, 2).await;
        assert_eq!(keys, ["key-2", "key-3"]);
    }
}
