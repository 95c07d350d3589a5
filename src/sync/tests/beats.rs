//! Tests of heartbeats for runs in which nothing happens.

use super::*;

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
