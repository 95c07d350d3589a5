//! Tests of senders, with honest servers over a bad network and with servers that lie.

use super::{LARGEST_PARCEL, Refused, SyncBatch, SyncError, SyncOutbox, SyncSender, take};
use crate::http::HttpSettings;
use crate::id::RunId;
use crate::store::{Journal, JournalRecord, RunHead, RunOutcome, Store, StoredRunState, TaskCopy, WhichUnsent};
use crate::test_support::PATIENCE;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// A behaviour of the network or the server for one request.
#[derive(Debug, Clone, PartialEq)]
enum Fate {
    /// The request and its answer arrive.
    Fine,
    /// The request is lost.
    Lost,
    /// The request arrives, and the answer is lost.
    Unanswered,
    /// Half of the request arrives.
    Cut,
    /// The request arrives twice.
    Twice,
    /// Older requests arrive again, newest first, then this one.
    AfterOlder,
    /// The server answers with this body.
    Says(String),
    /// The server answers with this text, headers included.
    SaysAll(String),
}

/// A server in its own thread. Each request has its fate; later ones succeed.
struct Server {
    url: String,
    home: TempDir,
    fates: Arc<Mutex<VecDeque<Fate>>>,
    asked: Arc<Mutex<Vec<Vec<u8>>>>,
}

fn project() -> &'static Path {
    Path::new("/a/app")
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let home = crate::test_support::temp_dir();
        let (fates, asked) = (Arc::<Mutex<VecDeque<Fate>>>::default(), Arc::<Mutex<Vec<Vec<u8>>>>::default());
        let (state, fated, received) = (home.path().to_owned(), fates.clone(), asked.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                serve(socket, &state, &fated, &received);
            }
        });
        Self { url, home, fates, asked }
    }

    fn will(&self, fates: impl IntoIterator<Item = Fate>) {
        self.fates.lock().unwrap().extend(fates);
    }

    fn store(&self) -> Store {
        Store::open(self.home.path(), project()).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

fn serve(mut socket: TcpStream, state: &Path, fates: &Mutex<VecDeque<Fate>>, received: &Mutex<Vec<Vec<u8>>>) {
    let Some(body) = request(&mut socket) else { return };
    let fate = fates.lock().unwrap().pop_front().unwrap_or(Fate::Fine);
    // Opens the store for each request, as a restarted server would.
    let store = Store::open(state, project()).unwrap();
    let answer = |body: &[u8]| match serde_json::from_slice::<SyncBatch>(body) {
        Err(_) => (400, "{}".to_owned()),
        Ok(parcel) => match take(&store, parcel, 1) {
            Ok(receipt) => (200, serde_json::to_string(&receipt).unwrap()),
            Err(Refused::Gap { send_from, why }) => {
                (409, serde_json::json!({ "detail": why, "send_from": send_from }).to_string())
            }
            Err(Refused::Conflict(why)) => (409, serde_json::json!({ "detail": why }).to_string()),
            Err(Refused::Wrong(why)) => (422, serde_json::json!({ "detail": why }).to_string()),
            Err(Refused::Store(error)) => (500, serde_json::json!({ "detail": error.to_string() }).to_string()),
        },
    };
    received.lock().unwrap().push(body.clone());
    let (status, message) = match fate {
        Fate::Fine => answer(&body),
        Fate::Lost => return,
        Fate::Unanswered => return drop(answer(&body)),
        Fate::Cut => answer(&body[..body.len() / 2]),
        Fate::Twice => {
            answer(&body);
            answer(&body)
        }
        Fate::AfterOlder => {
            let older = received.lock().unwrap().clone();
            older.iter().rev().for_each(|body| drop(answer(body)));
            answer(&body)
        }
        Fate::Says(message) => (200, message),
        // Announces the end of the connection; otherwise the client may reuse it for the next
        // request.
        Fate::SaysAll(all) => {
            let all = all.replacen("\r\n", "\r\nconnection: close\r\n", usize::from(all.starts_with("HTTP/")));
            return drop(socket.write_all(all.as_bytes()));
        }
    };
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{message}", message.len());
    let _gone = socket.write_all(head.as_bytes());
}

fn request(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 65536]);
    loop {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
            assert!(
                head.starts_with("post /v1/sync http/1.1\r\n") && head.contains("authorization: bearer t0ken"),
                "{head}"
            );
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())?;
            if bytes.len() >= end + 4 + length {
                return Some(bytes.split_off(end + 4));
            }
        }
        match socket.read(&mut piece) {
            Ok(count @ 1..) => bytes.extend(&piece[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
}

/// A machine with its own runs.
struct Machine {
    home: TempDir,
    name: String,
}

impl Machine {
    fn new(name: &str) -> Self {
        let machine = Self { home: crate::test_support::temp_dir(), name: name.to_owned() };
        machine.store().begin_sending().unwrap();
        machine
    }

    fn store(&self) -> Store {
        Store::open(self.home.path(), project()).unwrap()
    }

    fn sender(&self, url: &str) -> SyncSender {
        let outbox = SyncOutbox {
            state_dir: self.home.path().to_owned(),
            project: project().to_owned(),
            machine: self.name.clone(),
        };
        SyncSender::new(url, "t0ken", outbox, &HttpSettings::default()).unwrap()
    }

    fn begin(&self, run: u8) -> Journal {
        Journal::create(&self.store(), &head(run), &TaskCopy { text: "Do it.".into(), settings: "{}".into() }).unwrap()
    }

    fn reopen(&self, run: u8) -> Journal {
        Journal::reopen(&self.store(), &id(run), |_| Ok::<_, crate::store::StoreError>(())).unwrap()
    }

    fn unsent(&self) -> usize {
        self.store().unsent(WhichUnsent::Begun).unwrap().len()
    }
}

fn id(run: u8) -> RunId {
    RunId::new(format!("0198f2aa-0000-7000-8000-0000000000{run:02x}"))
}

fn head(run: u8) -> RunHead {
    RunHead {
        id: id(run),
        run_key: Some("nightly".into()).filter(|_| run.is_multiple_of(2)),
        parent: None,
        title: format!("Run {run}"),
        source: "task.md".into(),
        task_digest: "d".into(),
        workspace: "/elsewhere".into(),
        models: vec!["a/b".into()],
        fledge: "0.1.0".into(),
        journal_version: 1,
        started_at_ms: 1,
    }
}

fn all(store: &Store, run: &RunId) -> (Vec<JournalRecord>, StoredRunState) {
    let records = store.events(run, 0).unwrap().collect::<Result<_, _>>().unwrap();
    (records, store.run(run).unwrap().state)
}

#[derive(Debug, Clone)]
enum Step {
    Append { machine: usize, run: u8, count: u8, is_large: bool },
    Finish { machine: usize, run: u8 },
    Send { machine: usize, fates: Vec<Fate> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let fate = prop_oneof![
        Just(Fate::Fine),
        Just(Fate::Lost),
        Just(Fate::Unanswered),
        Just(Fate::Cut),
        Just(Fate::Twice),
        Just(Fate::AfterOlder),
        Just(Fate::Says("{\"run\":\"x\",\"upto\":99,\"link\":\"\",\"end\":true}".into())),
    ];
    let append = (0..2_usize, 0..2_u8, 1..6_u8, prop::bool::weighted(0.1));
    let step = prop_oneof![
        3 => append.prop_map(|(machine, run, count, is_large)| Step::Append { machine, run, count, is_large }),
        1 => (0..2_usize, 0..2_u8).prop_map(|(machine, run)| Step::Finish { machine, run }),
        2 => (0..2_usize, prop::collection::vec(fate, 0..4)).prop_map(|(machine, fates)| Step::Send { machine, fates }),
    ];
    prop::collection::vec(step, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each machine has two runs. Each step reopens the store, like a process after a killed one.
    #[test]
    fn whatever_the_network_does_the_journals_are_equal_in_the_end(steps in steps()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = Server::start();
        let machines = [Machine::new("ci-0"), Machine::new("ci-1")];
        let mut begun: Vec<(usize, u8)> = Vec::new();
        let number = |machine: usize, run: u8| machine as u8 * 16 + run;
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Append { machine, run, count, is_large } => {
                    let name = number(machine, run);
                    let mut journal = match begun.contains(&(machine, run)) {
                        true => machines[machine].reopen(name),
                        false => machines[machine].begin(name),
                    };
                    begun.retain(|known| *known != (machine, run));
                    begun.push((machine, run));
                    for record in 0..count {
                        let text = if is_large { "x".repeat(70_000) } else { record.to_string() };
                        journal.append(at as u64, "A", &format!("{{\"text\":\"{text}\"}}")).unwrap();
                    }
                }
                Step::Finish { machine, run } if begun.contains(&(machine, run)) => {
                    let outcome = RunOutcome { ended_at_ms: at as i64, reason: format!("end {at}"), ..RunOutcome::default() };
                    machines[machine].reopen(number(machine, run)).finish(&outcome).unwrap();
                }
                Step::Finish { .. } => {}
                Step::Send { machine, fates } => {
                    server.will(fates);
                    let _said = runtime.block_on(machines[machine].sender(&server.url).send(WhichUnsent::Begun));
                    server.fates.lock().unwrap().clear();
                }
            }
        }
        for machine in &machines {
            let message = runtime.block_on(machine.sender(&server.url).send(WhichUnsent::Begun));
            prop_assert!(message.faults.is_empty() && message.left == 0, "{message:?}");
            prop_assert_eq!(machine.unsent(), 0);
        }
        for (machine, run) in begun {
            let run = id(number(machine, run));
            let (theirs, ours) = (all(&machines[machine].store(), &run), all(&server.store(), &run));
            prop_assert_eq!(&theirs.0, &ours.0);
            match theirs.1 {
                StoredRunState::Ended(_) => prop_assert_eq!(&theirs.1, &ours.1),
                // The server learns only with the next record that an end was taken back.
                StoredRunState::Running { .. } | StoredRunState::Interrupted => {}
            }
        }
    }
}

fn ended(machine: &Machine, run: u8, records: u64) {
    let mut journal = machine.begin(run);
    (0..records).for_each(|at| journal.append(at, "A", "{}").unwrap());
    journal.finish(&RunOutcome { ended_at_ms: 3, reason: "verified".into(), ..RunOutcome::default() }).unwrap();
}

#[tokio::test]
async fn a_server_that_lies_has_nothing_marked_as_sent() {
    let run = id(1);
    let link = "0".repeat(64);
    let receipt = |upto: u64, end: bool, run: &str| {
        format!("{{\"run\":\"{run}\",\"upto\":{upto},\"link\":\"{link}\",\"end\":{end}}}")
    };
    let ok = "HTTP/1.1 200 OK\r\n";
    let lies = [
        Fate::Says(String::new()),
        Fate::Says("<html>welcome to the hotel</html>".into()),
        Fate::Says("null".into()),
        Fate::Says(receipt(3, true, run.as_str())),  // without the link
        Fate::Says(receipt(99, true, run.as_str())), // more than was sent
        Fate::Says(receipt(1, false, run.as_str())), // less
        Fate::Says(receipt(3, true, id(2).as_str())),
        Fate::SaysAll("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n".into()),
        Fate::SaysAll("HTTP/1.1 204 No Content\r\n\r\n".into()),
        Fate::SaysAll("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()),
        Fate::SaysAll("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".into()),
        Fate::SaysAll("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n".into()),
        Fate::SaysAll("HTTP/1.1 422 No\r\ncontent-length: 15\r\n\r\n{\"detail\":\"no\"}".into()),
        Fate::SaysAll("HTTP/1.1 409 No\r\ncontent-length: 16\r\n\r\n{\"send_from\": 0}".into()),
        Fate::SaysAll("HTTP/1.1 409 No\r\ncontent-length: 16\r\n\r\n{\"send_from\":99}".into()),
        Fate::SaysAll(format!("{ok}content-length: 9999\r\n\r\n{{\"run\"")),
        Fate::SaysAll(format!("{ok}\r\n{}", "x".repeat(100_000))),
        Fate::SaysAll("no HTTP at all\r\n\r\n".into()),
        Fate::Lost,
    ];
    let (server, machine) = (Server::start(), Machine::new("ci-7"));
    ended(&machine, 1, 3);
    let before = machine.store().unsent(WhichUnsent::Begun).unwrap();
    for lie in lies {
        server.will([lie.clone()]);
        let (message, asked) = (machine.sender(&server.url).send(WhichUnsent::Begun).await, server.asked());
        assert_eq!(
            (message.runs, message.records, message.left, message.faults.len()),
            (0, 0, 1, 1),
            "{lie:?}: {message:?}"
        );
        let reported = message.faults[0].to_string();
        assert!(!reported.contains("t0ken") && reported.contains(&server.url), "{lie:?}: {reported}");
        assert_eq!(machine.store().unsent(WhichUnsent::Begun).unwrap(), before, "{lie:?}");
        assert!(asked > 0);
    }
    // A server that always asks for earlier records is asked a limited number of times.
    let back = || Fate::SaysAll("HTTP/1.1 409 No\r\ncontent-length: 16\r\n\r\n{\"send_from\": 1}".into());
    let asked = server.asked();
    server.will([Fate::Fine]);
    machine.sender(&server.url).send(WhichUnsent::Begun).await;
    machine.reopen(1).append(9, "A", "{}").unwrap();
    server.will((0..9).map(|_| back()));
    let message = machine.sender(&server.url).send(WhichUnsent::Begun).await;
    assert!(
        matches!(message.faults.as_slice(), [SyncError::Refused { .. }]) && server.asked() < asked + 5,
        "{message:?}"
    );
}

#[tokio::test]
async fn a_refused_run_holds_up_no_other_and_an_unreachable_server_ends_the_sync() {
    let (server, machine) = (Server::start(), Machine::new("ci-7"));
    (1..=3).for_each(|run| ended(&machine, run, 2));
    server.will([Fate::Fine, Fate::SaysAll("HTTP/1.1 422 No\r\ncontent-length: 15\r\n\r\n{\"detail\":\"no\"}".into())]);
    let message = machine.sender(&server.url).send(WhichUnsent::Begun).await;
    assert_eq!((message.runs, message.records, message.left), (2, 4, 1), "{message:?}");
    assert!(message.faults[0].to_string().ends_with("(status 422): no"), "{message:?}");
    server.will([Fate::Lost]);
    let (asked, message) = (server.asked(), machine.sender(&server.url).send(WhichUnsent::Begun).await);
    assert_eq!((message.runs, message.left, server.asked() - asked), (0, 1, 1), "{message:?}");
    let slow = machine.sender("http://127.0.0.1:9"); // nothing listens there
    let message = tokio::time::timeout(PATIENCE, slow.send(WhichUnsent::Begun)).await.unwrap();
    assert!(matches!(message.faults.as_slice(), [SyncError::Courier(_)]), "{message:?}");
}

#[tokio::test]
async fn a_server_that_has_lost_a_run_is_told_of_it_from_its_head_on() {
    let (server, other, machine) = (Server::start(), Server::start(), Machine::new("ci-7"));
    let mut journal = machine.begin(1);
    journal.append(1, "A", "{}").unwrap();
    assert_eq!(machine.sender(&server.url).send(WhichUnsent::Begun).await.runs, 1);
    journal.append(2, "A", "{}").unwrap();
    let message = machine.sender(&other.url).send(WhichUnsent::Begun).await;
    assert_eq!((message.runs, message.records), (1, 2), "{message:?}");
    assert_eq!(all(&other.store(), &id(1)).0.len(), 2);
}

#[tokio::test]
async fn parcels_are_bounded_and_a_record_that_fits_into_none_is_said() {
    let (server, machine) = (Server::start(), Machine::new("ci-7"));
    let text = format!("\"{}\"", "x".repeat(1 << 20));
    let mut journal = machine.begin(1);
    (0..8).for_each(|at| journal.append(at, "A", &text).unwrap());
    let message = machine.sender(&server.url).send(WhichUnsent::Begun).await;
    assert_eq!((message.runs, message.records, server.asked()), (1, 8, 2), "{message:?}");
    assert!(server.asked.lock().unwrap().iter().all(|body| body.len() <= LARGEST_PARCEL));
    journal.append(9, "A", &format!("\"{}\"", "x".repeat(LARGEST_PARCEL))).unwrap();
    let message = machine.sender(&server.url).send(WhichUnsent::Begun).await;
    assert!(matches!(message.faults.as_slice(), [SyncError::TooLarge { seq: 9, .. }]), "{message:?}");
    assert_eq!(server.asked(), 2);
}

#[test]
fn a_token_goes_to_no_server_in_the_open() {
    let outbox = || SyncOutbox { state_dir: "/s".into(), project: "/p".into(), machine: "m".into() };
    let sender = |url| SyncSender::new(url, "t0ken", outbox(), &HttpSettings::default());
    assert!(matches!(sender("http://fledge.example.com"), Err(SyncError::Unguarded { .. })));
    assert!(matches!(sender("fledge.example.com"), Err(SyncError::Courier(_))));
    assert!(!format!("{:?}", sender("http://127.0.0.1:1").unwrap()).contains("t0ken"));
}

#[test]
fn a_parcel_that_could_lead_astray_is_refused() {
    let (machine, server) = (Machine::new("ci-7"), Machine::new("server"));
    ended(&machine, 1, 2);
    let whole = crate::sync::outbox::packed(&machine.store(), "ci-7", &id(1), 0).unwrap().unwrap();
    let refused = |change: &dyn Fn(&mut SyncBatch)| {
        let mut changed = whole.clone();
        change(&mut changed);
        match take(&server.store(), changed, 1).unwrap_err() {
            Refused::Wrong(why) => why,
            other => panic!("{other:?}"),
        }
    };
    for bad in
        ["../../etc", "", "last", "0198F2AA-0000-7000-8000-000000000001", "{0198f2aa-0000-7000-8000-000000000001}"]
    {
        assert!(refused(&|one| one.run = RunId::new(bad)).contains("UUID"), "{bad}");
    }
    for bad in ["", "a b", "a/b", "\u{1b}[2J", &"x".repeat(65)] {
        assert!(refused(&|one| one.machine = bad.into()).contains("the machine's name"), "{bad}");
    }
    assert!(refused(&|one| one.schema_version = 2).contains("version 2"));
    assert!(refused(&|one| one.after = u64::MAX).contains("too many records"));
    assert!(refused(&|one| one.records[0].data = "{".into()).contains("not JSON"));
    assert!(refused(&|one| one.begin.as_mut().unwrap().head.title = "x".into()).contains("the newer version"));
    assert!(refused(&|one| one.records[1].at_ms += 1).contains("record 2"));
    take(&server.store(), whole, 1).unwrap();
}

#[tokio::test]
async fn a_heartbeat_is_sent_for_a_quiet_run_but_not_for_a_run_without_a_driver() {
    let (server, machine) = (Server::start(), Machine::new("ci-7"));
    let sender = machine.sender(&server.url);
    let journal = {
        let mut journal = machine.begin(1);
        journal.append(1, "A", "{}").unwrap();
        journal
    };
    sender.beat().await.unwrap();
    assert_eq!(server.asked(), 0, "the server does not know it yet");
    assert_eq!(sender.send(WhichUnsent::Begun).await.runs, 1);
    ended(&machine, 2, 1);
    assert_eq!(sender.send(WhichUnsent::Begun).await.runs, 1);
    let asked = server.asked();
    sender.beat().await.unwrap();
    assert_eq!(server.asked(), asked + 1);
    let beat: SyncBatch = serde_json::from_slice(server.asked.lock().unwrap().last().unwrap()).unwrap();
    assert_eq!((beat.run, beat.after, beat.records.len(), beat.begin), (id(1), 1, 0, None));
    drop(journal);
    sender.beat().await.unwrap();
    assert_eq!(server.asked(), asked + 1);
}
