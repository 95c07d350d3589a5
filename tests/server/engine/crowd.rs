//! Tests of many runs with many readers, one of them slow: each reader gets all events, and the
//! slow reader blocks no other.

use crate::server::engine::site::{Heard, Site};
use crate::support::{Model, amount, say, write};
use futures_util::future::join_all;
use std::time::Duration;

#[tokio::test]
async fn all_who_follow_many_runs_hear_all_and_a_slow_one_holds_nobody_up() {
    long_test!();
    let count: usize = amount(10, 200);
    let text: String = (0..200).map(|word| format!("word{word} ")).collect();
    let long = text.clone();
    let model = Model::thinking(move |body, number| {
        let is_first = body["messages"].as_array().is_none_or(|messages| messages.len() <= 1);
        (Some(if is_first { write("done", "1\n").saying(&long) } else { say("Done.") }), number)
    });
    let site = Site::with(&model);
    let most = count.min(32).to_string();
    let server = site.serve(&["--max-runs", &most]);
    let mut runs = Vec::new();
    for number in 0..count {
        runs.push(server.submit(&format!("# Task {number}\n\nMake the file `done`.")).await);
    }
    let slow = async {
        let mut stream = server.follow(&runs[0], None).await;
        let mut all: Vec<Heard> = Vec::new();
        while let Some(heard) = stream.next().await {
            let is_end = heard.name.is_some();
            all.push(heard);
            if is_end {
                break;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
        all
    };
    let fast = join_all(runs.iter().map(async |run| server.follow(run, None).await.all().await));
    let (all, slow) = tokio::join!(fast, slow);
    for (run, heard) in runs.iter().zip(&all) {
        let numbers: Vec<u64> = heard.iter().filter_map(|heard| heard.data["seq"].as_u64()).collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "run {run}: {numbers:?}");
        assert_eq!(said(heard), format!("{text}Done."), "run {run}");
        let end = heard.last().unwrap();
        assert_eq!((end.name.as_deref(), &end.data["outcome"]["reason"]), (Some("end"), &"verified".into()), "{run}");
    }
    let kept = |all: &[Heard]| all.iter().filter_map(Heard::kept).collect::<Vec<_>>();
    assert_eq!(kept(&slow), kept(&all[0]), "a slow one loses pieces at most");
    println!("{count} runs, {} events", all.iter().map(Vec::len).sum::<usize>());
}

/// Returns the text of the model. A late reader gets a whole text from the journal, which replaces
/// its pieces.
fn said(heard: &[Heard]) -> String {
    let mut said: Vec<(u64, bool, &str)> = Vec::new();
    for Heard { data, .. } in heard.iter().filter(|heard| heard.data["type"] == "text") {
        let (number, from) = (data["seq"].as_u64().unwrap(), data["from"].as_u64());
        said.retain(|(number, is_whole, _)| *is_whole || from.is_none_or(|from| *number < from));
        said.push((number, from.is_some(), data["data"].as_str().unwrap()));
    }
    said.into_iter().map(|(.., text)| text).collect()
}
