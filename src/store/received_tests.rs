//! Tests of runs of other machines: a delivery must fit the chain, and is taken whole or not at
//! all.

use super::journal::LARGEST_IN_ROW;
use super::tests::{begin, copy, head, records, reopen, store};
use super::*;

/// Returns the delivery that a machine would send of a run after this record.
fn delivery(from: &Store, id: &str, after: u64) -> SyncDelivery {
    let run = RunId::new(id);
    let mut events = from.events(&run, after).unwrap();
    let (link, mut records) = (events.hash(), Vec::new());
    while let Some(record) = events.next() {
        records.push((record.unwrap(), events.hash()));
    }
    let row = from.run(&run).unwrap();
    let end = if let StoredRunState::Ended(outcome) = row.state { Some(outcome) } else { None };
    let begin = (after == 0).then(|| (row.head, from.task(&run).unwrap()));
    SyncDelivery { run, machine: "ci-7".into(), begin, after, link, records, end }
}

fn filled(store: &Store, id: &str, count: u64) -> Journal {
    let mut journal = begin(store, id);
    (1..=count).for_each(|at| journal.append(at, "A", &format!("{{\"at\":{at}}}")).unwrap());
    journal
}

#[test]
fn a_run_of_another_machine_is_here_as_it_is_there_and_nobody_here_goes_on_with_it() {
    let ((_there, there), (_here, here)) = (store(), store());
    let keyed = RunHead { run_key: Some("nightly".into()), ..head("r") };
    let mut journal = Journal::create(&there, &keyed, &copy()).unwrap();
    journal.append(1, "A", "{}").unwrap();
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(LARGEST_IN_ROW));
    journal.append(2, "B", &large).unwrap();
    here.receive(&delivery(&there, "r", 0), 7).unwrap();
    let row = here.run(&RunId::new("r")).unwrap();
    assert_eq!((row.machine.as_deref(), row.head.run_key.as_deref()), (Some("ci-7"), None));
    assert_eq!(row.state, StoredRunState::Running { holder: "the machine ci-7".into() });
    // Its key does not count here, and it is not the last run here.
    let own = RunHead { run_key: Some("nightly".into()), ..head("own") };
    drop(Journal::create(&here, &own, &copy()).unwrap());
    assert_eq!(here.keyed("nightly").unwrap().len(), 1);
    here.receive(&delivery(&there, "r", 0), 8).unwrap();
    assert_eq!(here.find("last").unwrap(), RunId::new("own"));
    journal.append(3, "C", "{}").unwrap();
    journal
        .finish(&RunOutcome {
            reason: "verified".into(),
            ended_at_ms: 9,
            cost_micros: Some(3),
            ..RunOutcome::default()
        })
        .unwrap();
    here.receive(&delivery(&there, "r", 2), 9).unwrap();
    assert_eq!(records(&here, "r").unwrap(), records(&there, "r").unwrap());
    let run = RunId::new("r");
    assert_eq!(here.run(&run).unwrap().state, there.run(&run).unwrap().state);
    assert_eq!(here.events(&run, 3).unwrap().hash(), there.events(&run, 3).unwrap().hash());
    let error = reopen(&here, "r").unwrap_err();
    assert!(matches!(&error, StoreError::Elsewhere { machine, .. } if machine == "ci-7"), "{error}");
    assert_eq!(here.unsent(WhichUnsent::All).unwrap(), []);
    let all = Retention { age_ms: Some(0), runs: None, bytes: None };
    assert!(here.prune(&all, i64::MAX).unwrap().runs.contains(&run));
    assert!(!here.folder(&run).path().exists());
    here.receive(&delivery(&there, "r", 0), 10).unwrap();
    assert_eq!(records(&here, "r").unwrap().len(), 3);
}

#[test]
fn a_run_whose_machine_is_silent_is_lost_until_the_machine_is_heard_again() {
    let ((_there, there), (_here, here)) = (store(), store());
    let mut journal = filled(&there, "r", 2);
    here.receive(&delivery(&there, "r", 0), 1_000).unwrap();
    let run = RunId::new("r");
    let silence = 5 * 60 * 1_000;
    let ids = |only, now_ms| {
        let filter = RunListFilter { only: Some(only), now_ms, ..RunListFilter::default() };
        here.runs(&filter).unwrap().into_iter().map(|row| row.head.id).collect::<Vec<_>>()
    };
    let is_lost = |now_ms| {
        let is_lost = here.run(&run).unwrap().seen_at(now_ms).is_lost;
        let expected = if is_lost { [vec![run.clone()], vec![]] } else { [vec![], vec![run.clone()]] };
        assert_eq!([ids(RunProperty::Lost, now_ms), ids(RunProperty::Running, now_ms)], expected);
        is_lost
    };
    assert_eq!([1_000, 1_000 + silence, 1_001 + silence].map(is_lost), [false, false, true]);
    // A heartbeat is a delivery without a record.
    let beat = delivery(&there, "r", 2);
    assert!(beat.records.is_empty() && beat.begin.is_none());
    here.receive(&beat, 2_000 + silence).unwrap();
    assert!(!is_lost(1_001 + 2 * silence) && is_lost(2_001 + 2 * silence));
    assert_eq!(here.run(&run).unwrap().heard_at_ms, Some(2_000 + silence));
    journal.finish(&RunOutcome::default()).unwrap();
    here.receive(&delivery(&there, "r", 2), 1).unwrap();
    assert!(!here.run(&run).unwrap().seen_at(i64::MAX).is_lost, "it is over");
}

#[test]
fn what_comes_again_or_late_changes_nothing() {
    let ((_there, there), (_here, here)) = (store(), store());
    let mut journal = filled(&there, "r", 3);
    let first = delivery(&there, "r", 0);
    journal.finish(&RunOutcome { ended_at_ms: 5, reason: "gate_failed".into(), ..RunOutcome::default() }).unwrap();
    let ended = delivery(&there, "r", 0);
    drop(journal);
    let (mut journal, _) = reopen(&there, "r").unwrap();
    let state = |store: &Store| store.run(&RunId::new("r")).unwrap().state;
    here.receive(&ended, 1).unwrap();
    here.receive(&first, 2).unwrap();
    assert!(matches!(state(&here), StoredRunState::Ended(outcome) if outcome.reason == "gate_failed"));
    journal.append(4, "A", "{}").unwrap();
    here.receive(&delivery(&there, "r", 3), 3).unwrap();
    assert!(matches!(state(&here), StoredRunState::Running { .. }), "its end was taken back");
    [&ended, &first].into_iter().for_each(|late| here.receive(late, 4).unwrap());
    assert!(matches!(state(&here), StoredRunState::Running { .. }));
    journal.finish(&RunOutcome { ended_at_ms: 9, reason: "verified".into(), ..RunOutcome::default() }).unwrap();
    let last = delivery(&there, "r", 4);
    let older = SyncDelivery { end: Some(RunOutcome { ended_at_ms: 6, ..RunOutcome::default() }), ..last.clone() };
    [&last, &older].into_iter().for_each(|end| here.receive(end, 5).unwrap());
    assert_eq!(state(&here), state(&there));
    assert_eq!(records(&here, "r").unwrap(), records(&there, "r").unwrap());
}

#[test]
fn what_does_not_follow_or_does_not_fit_is_refused_and_nothing_of_it_is_kept() {
    let ((_there, there), (_here, here)) = (store(), store());
    drop(filled(&there, "r", 4));
    let whole = delivery(&there, "r", 0);
    let torn_at = |seq, change: &dyn Fn(&mut SyncDelivery)| {
        let mut changed = whole.clone();
        change(&mut changed);
        let refused = here.receive(&changed, 1);
        assert!(matches!(refused, Err(Untaken::Torn { seq: at, .. }) if at == seq), "{seq}: {refused:?}");
    };
    torn_at(2, &|one| one.records[1].0.data.push(' '));
    torn_at(2, &|one| one.records[1].0.kind = "B".into());
    torn_at(2, &|one| one.records[1].0.at_ms += 1);
    torn_at(1, &|one| one.records.swap(0, 1));
    torn_at(2, &|one| drop(one.records.remove(1)));
    torn_at(4, &|one| one.records[3].1 = one.records[2].1.clone());
    torn_at(0, &|one| one.begin.as_mut().unwrap().0.title.push('!'));
    torn_at(0, &|one| one.begin.as_mut().unwrap().1.text.push('!'));
    torn_at(0, &|one| one.link = "zz".into());
    torn_at(0, &|one| one.run = RunId::new("other"));
    assert_eq!(here.runs(&RunListFilter::default()).unwrap(), []);
    let gap = |delivery: &SyncDelivery| match here.receive(delivery, 1) {
        Err(Untaken::Gap { have, .. }) => have,
        other => panic!("{other:?}"),
    };
    assert_eq!(gap(&delivery(&there, "r", 2)), 0);
    assert_eq!(gap(&SyncDelivery { begin: None, ..whole.clone() }), 0);
    here.receive(&SyncDelivery { records: whole.records[..1].to_vec(), ..whole.clone() }, 1).unwrap();
    assert_eq!(gap(&delivery(&there, "r", 2)), 1);
    assert_eq!(records(&here, "r").unwrap().len(), 1);
}

#[test]
fn one_id_is_one_run_whoever_tells_of_it() {
    let ((_here, here), (_one, one), (_two, two)) = (store(), store(), store());
    drop(filled(&here, "own", 2));
    drop(filled(&one, "own", 2));
    assert!(matches!(here.receive(&delivery(&one, "own", 0), 1), Err(Untaken::Own { .. })));
    // Two machines have the same run. It continues on the second one, and then forks.
    drop(filled(&one, "r", 2));
    let mut other = filled(&two, "r", 2);
    here.receive(&delivery(&one, "r", 0), 1).unwrap();
    other.append(3, "A", "{\"by\":2}").unwrap();
    here.receive(&SyncDelivery { machine: "ci-8".into(), ..delivery(&two, "r", 2) }, 2).unwrap();
    let (mut journal, _) = reopen(&one, "r").unwrap();
    journal.append(3, "A", "{\"by\":1}").unwrap();
    for after in [0, 2] {
        let refused = here.receive(&delivery(&one, "r", after), 3);
        assert!(matches!(refused, Err(Untaken::Forked { seq: 3, .. })), "{refused:?}");
    }
    // Two runs have only their id in common.
    let stranger = RunHead { title: "Another".into(), ..head("r") };
    let (_three, three) = store();
    drop(Journal::create(&three, &stranger, &copy()).unwrap());
    assert!(matches!(here.receive(&delivery(&three, "r", 0), 4), Err(Untaken::Forked { seq: 0, .. })));
    assert_eq!(records(&here, "r").unwrap()[2].data, "{\"by\":2}");
    let large = format!("{{\"text\":\"{}\"}}", "x".repeat(LARGEST_IN_ROW));
    journal.append(4, "B", &large).unwrap();
    assert!(matches!(here.receive(&delivery(&one, "r", 2), 5), Err(Untaken::Forked { seq: 3, .. })));
    assert!(!here.folder(&RunId::new("r")).blobs().exists(), "a file of what was refused");
}
