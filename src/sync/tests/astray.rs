//! Tests of invalid parcels, which are refused before anything is stored.

use super::*;

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
