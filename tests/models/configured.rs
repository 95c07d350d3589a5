//! Configured models: the choice for a task, the known facts of each model, a check that it
//! answers, and the source of its key.

use crate::support::{Ended, Fledge, KEY, Model, call, needs, say, status, write};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// Adds the user's own configuration.
fn own(fledge: Fledge, yaml: &str) -> Fledge {
    fledge.file("../home/.config/fledge/config.yaml", yaml)
}

fn task(front: &str) -> Fledge {
    Fledge::new().lane("verify", &needs("done")).task(&format!("---\n{front}\n---\nMake the file `done`.\n"))
}

fn rows(ended: &Ended) -> Vec<Value> {
    serde_json::from_str::<Value>(&ended.stdout).unwrap()["models"].as_array().unwrap().clone()
}

fn row<'r>(rows: &'r [Value], name: &str) -> &'r Value {
    rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn models_are_listed_with_price_size_key_and_layer_and_never_with_a_key() {
    let yaml = "default_model: gate\nmodels:\n  gate: { provider: openai, model: g, base_url: 'https://llm.example/v1', api_key_env: GATE_KEY,\n    \
        tier: code, price: { input: 0.25, output: 2 }, max_context_tokens: 200000 }\n  claude: { provider: anthropic, model: claude-sonnet-4-5 }\n";
    let list = || own(Fledge::new(), yaml).env("GATE_KEY", KEY);
    let ended = list().args(&["models", "list", "--json"]).run();
    ended.must_exit(0);
    let rows = rows(&ended);
    let (gate, claude) = (row(&rows, "gate"), row(&rows, "claude"));
    let price =
        json!({ "input": 0.25, "output": 2.0, "cached_input": 0.25, "cache_write": 0.3125, "from": gate["from"] });
    assert_eq!((&gate["price"], &gate["max_context_tokens"], &gate["tier"]), (&price, &json!(200_000), &json!("code")));
    assert_eq!((&gate["key"], &gate["key_place"], &gate["default"]), (&json!("set"), &json!("GATE_KEY"), &json!(true)));
    assert!(gate["from"].as_str().unwrap().ends_with("config.yaml"));
    assert_eq!((&claude["key"], &claude["price"]["output"]), (&json!("not set"), &json!(15.0)));
    assert!(claude["price"]["from"].as_str().unwrap().starts_with("built in, 2026-"));
    assert_eq!(row(&rows, "anthropic/claude-haiku-4-5")["from"], "built in");
    let text = list().args(&["models", "list"]).run();
    assert!(text.stdout.contains("* gate ") && text.stdout.contains("$0.25 / $2"), "{}", text.story());
    assert!(!ended.traces().contains(KEY) && !text.traces().contains(KEY));
}

#[test]
fn a_check_says_of_each_model_how_it_answers_or_what_mends_it() {
    let thinks = Duration::from_millis(30);
    let well = Model::thinking(move |_, count| {
        std::thread::sleep(thinks);
        (Some(call("ping", json!({ "word": "pong" }))), count)
    });
    let mute = Model::new([say("pong")]);
    let locked = Model::new([status(401)]);
    let entry = |name: &str, model: &Model, more: &str| {
        format!(
            "  {name}: {{ provider: openai, model: m, base_url: '{}/v1', api_key_env: THE_KEY{more} }}\n",
            model.url()
        )
    };
    let yaml =
        ["models:\n".to_owned(), entry("well", &well, ""), entry("mute", &mute, ""), entry("locked", &locked, "")]
            .concat();
    let yaml = yaml + "  keyless: { provider: anthropic, model: m }\n";
    let ended = own(Fledge::new(), &yaml).env("THE_KEY", KEY).args(&["models", "check", "--json"]).run();
    ended.must_exit(3);
    let rows = rows(&ended);
    let found = row(&rows, "well");
    assert_eq!((&found["ok"], &found["calls_tools"], &found["problem"]), (&json!(true), &json!(true), &Value::Null));
    let [first, total] = ["first_ms", "total_ms"].map(|key| Duration::from_millis(found[key].as_u64().unwrap()));
    assert!(thinks <= first && first <= total && found["model"].is_string(), "{found}");
    let told = |name: &str| (row(&rows, name)["problem"].clone(), row(&rows, name)["fix"].clone());
    let tools = "use a model that calls tools, or set `tools_mode: text` for this model";
    assert_eq!(told("mute"), (json!("model answers but calls no tool"), json!(tools)));
    assert_eq!(told("locked").1, json!("check the key in THE_KEY"));
    assert_eq!(told("keyless"), (json!("no key for the model `keyless`"), json!("set ANTHROPIC_API_KEY")));
    assert_eq!((well.count(), mute.count(), locked.count()), (1, 1, 1));
    assert_eq!(well.asked()[0].body["tools"].as_array().unwrap().len(), 1);
    assert!(!ended.traces().contains(KEY), "{}", ended.story());
    let well = Model::new([call("ping", json!({ "word": "pong" }))]);
    let one = own(Fledge::new(), &["models:\n".to_owned(), entry("well", &well, "")].concat());
    let one = one.env("THE_KEY", KEY).args(&["models", "check", "well"]).run();
    assert!(one.code == Some(0) && one.stdout.starts_with("✓ well  "), "{}", one.story());
    let mute = Model::new([say("pong")]);
    let one = own(Fledge::new(), &["models:\n".to_owned(), entry("mute", &mute, "")].concat());
    let one = one.env("THE_KEY", KEY).args(&["models", "check", "mute"]).run();
    let latency = one.stdout.contains("model answers but calls no tool (") && one.stdout.contains(" ms, done after ");
    assert!(one.code == Some(3) && latency, "{}", one.story());
    let unknown = Fledge::new().args(&["models", "check", "nobody"]).run();
    unknown.must_exit(2);
}

#[test]
fn a_key_comes_from_a_program_or_a_file_and_leaves_no_trace() {
    long_test!();
    let turns = || [write("done", "1\n"), say("Done.")];
    let (by_program, by_file) = (Model::new(turns()), Model::new(turns()));
    let key = |model: &Model| model.asked()[0].headers["authorization"].clone();
    let yaml = |model: &Model, key: &str| {
        format!("models:\n  m: {{ provider: openai, model: m, base_url: '{}/v1', {key} }}\n", model.url())
    };
    let command = "api_key_command: 'echo noise >&2; echo $OWN'";
    let ended = own(task("model: m"), &yaml(&by_program, command)).env("OWN", KEY).run();
    ended.must_be(0, "verified");
    assert_eq!(key(&by_program), format!("Bearer {KEY}"));
    assert!(!ended.traces().contains(KEY), "{}", ended.story());

    let place = own(task("model: m"), &yaml(&by_file, "api_key_file: ~/key"));
    let place = place.file("../home/key", format!("{KEY}\n"));
    let file = place.workspace().join("../home/key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let ended = place.run();
    ended.must_be(0, "verified");
    assert_eq!(key(&by_file), format!("Bearer {KEY}"));

    let broken = own(task("model: m"), &yaml(&by_file, "api_key_command: 'echo hush; exit 7'")).run();
    broken.must_exit(2);
    let why = "the model `m`: the key command failed with exit code 7; run it by hand to see why";
    assert!(broken.stderr.contains(why) && !broken.stderr.contains("hush"), "{}", broken.story());
}

#[test]
fn a_task_of_a_tier_has_its_model_and_its_tools_and_no_others() {
    let small = Model::new([call("shell-exec", json!({ "command": "touch done" })), say("I cannot.")]);
    let yaml = format!(
        "default_model: big\nmodels:\n  big: {{ provider: openai, model: b, base_url: 'http://127.0.0.1:9/v1' }}\n  \
        small: {{ provider: openai, model: s, tier: read, base_url: '{}/v1' }}\n",
        small.url()
    );
    let ended = own(task("tier: read\nmax_retries: 0"), &yaml).run();
    ended.must_exit(1);
    let asked = small.asked();
    let names: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    assert!(
        names.contains(&"files-read") && !names.contains(&"files-write") && !names.contains(&"shell-exec"),
        "{names:?}"
    );
    assert!(asked[1].newest().contains("shell-exec"), "{}", asked[1].newest());
    assert!(!ended.path("done").exists(), "{}", ended.story());
    let small = Model::new([say("Nothing to do.")]);
    let yaml = yaml.replace("http://127.0.0.1:9/v1", &format!("{}/v1", small.url()));
    let by_flag = own(task("tier: read\nmax_retries: 0"), &yaml).arg("--tier").arg("code").run();
    by_flag.must_exit(1);
    assert_eq!((small.count(), &small.asked()[0].body["model"]), (1, &json!("b")));
}

#[test]
fn a_projects_own_file_runs_no_program_until_it_is_trusted() {
    let model = Model::new([write("done", "1\n"), say("Done.")]);
    let yaml = format!(
        "models:\n  m: {{ provider: openai, model: m, base_url: '{}/v1', api_key_command: 'touch ran; echo k' }}\n",
        model.url()
    );
    let place = || task("model: m").file("fledge.yaml", yaml.replace("touch ran", "touch $HOME/ran"));
    let refused = place().run();
    refused.must_exit(2);
    let why =
        "`api_key_command` in a project's file could run a program on your behalf (set it in your own configuration";
    assert!(refused.stderr.contains("fledge.yaml:2:") && refused.stderr.contains(why), "{}", refused.story());
    assert!(!refused.path("../home/ran").exists());
    let trusted = place().arg("--trust-project").run();
    trusted.must_be(0, "verified");
    assert!(trusted.path("../home/ran").exists());
}

#[test]
fn what_the_configuration_says_of_all_tasks_holds_where_the_task_is_silent() {
    let yaml = "lane: other\nmax_retries: 1\nbudget: { turns: 3 }\n";
    let plan = |front: &str| {
        let place = own(task(front).lane("other", &needs("other")), yaml).arg("--dry-run").arg("--json").run();
        place.must_exit(0);
        serde_json::from_str::<Value>(&place.stdout).unwrap()
    };
    let silent = plan("title: x");
    assert_eq!((&silent["max_retries"], &silent["limits"]["turns"]), (&json!(1), &json!(3)));
    assert_eq!(silent["lanes"][0]["name"], "other");
    let own = plan("max_retries: 2\nlane: verify\nbudget: { turns: 7 }");
    assert_eq!(
        (&own["max_retries"], &own["limits"]["turns"], &own["lanes"][0]["name"]),
        (&json!(2), &json!(7), &json!("verify"))
    );
}
