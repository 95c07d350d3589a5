//! Tests of names, and of the times of a lease.

use super::*;

#[test]
fn a_name_has_signs_that_every_queue_can_keep() {
    let longest = "x".repeat(64);
    for good in ["a", "Z_9-", &longest] {
        let name = JobId::parse(good).unwrap();
        assert_eq!(serde_json::to_string(&name).unwrap(), format!("\"{good}\""));
        assert_eq!(serde_json::from_str::<JobId>(&format!("\"{good}\"")).unwrap(), name);
    }
    for bad in ["", "a.b", "a b", "a/b", "*", ">", "ü", "a\n", &format!("{longest}x")] {
        assert!(PoolName::parse(bad).is_err(), "{bad}");
        assert!(serde_json::from_value::<PoolName>(bad.into()).is_err(), "{bad}");
    }
    let message = BatchId::parse("a b").unwrap_err().to_string();
    assert_eq!(message, "invalid name `a b`: use 1 to 64 ASCII letters, digits, `_` or `-`");
}

#[test]
fn a_worker_renews_in_time_and_stops_before_anybody_else_has_the_job() {
    let name = |text: &str| text.to_owned();
    let lease = |term| JobLease {
        job: JobId::parse(name("j")).unwrap(),
        batch: BatchId::parse(name("b")).unwrap(),
        pool: PoolName::parse(name("p")).unwrap(),
        payload: String::new(),
        attempt: 1,
        is_last: false,
        token: 1,
        worker: WorkerId::parse(name("w")).unwrap(),
        term,
    };
    let times = |term: u64| {
        let lease = lease(Duration::from_millis(term));
        (lease.beat().as_millis(), lease.fence().as_millis())
    };
    assert_eq!([60_000, 300].map(times), [(1_000, 50_000), (100, 250)]);
}
