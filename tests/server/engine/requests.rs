//! Tests of run requests with more than a task: their own models, lanes and limits, and earlier
//! runs.

use crate::server::engine::site::Site;
use crate::support::{Model, git, say, write};
use serde_json::{Value, json};

/// Returns the fields that a refusal names.
fn fields(problem: &Value) -> Vec<&str> {
    problem["errors"].as_array().unwrap().iter().map(|error| error["field"].as_str().unwrap_or("-")).collect()
}

#[tokio::test]
async fn what_can_be_chosen_is_told_with_the_project() {
    let model = Model::new([]);
    let site = Site::with(&model);
    let params = "what: { required: true, description: Its name }, how: { choices: [well, badly], default: well }";
    let front = format!("params: {{ {params} }}\nbudget: {{ usd: 2.50 }}");
    site.file("tasks/make.md", &format!("---\n{front}\n---\n# Make {{{{ what }}}} {{{{ how }}}}\n"));
    site.file("tasks/wrong.md", "---\nmax_retrys: 1\n---\n# Wrong\n");
    site.file("fledge.yaml", "models:\n  small: { provider: anthropic, model: claude-small }\n");
    let server = site.serve(&[]);
    let (_, project) = server.get("/v1/project").await;
    assert_eq!((&project["name"], &project["fledge"]), (&json!("project"), &json!(env!("CARGO_PKG_VERSION"))));
    let (_, choices) = server.get("/v1/choices").await;
    assert_eq!(choices["lanes"], json!(["verify"]));
    assert!(choices["models"].as_array().unwrap().contains(&json!("small")), "{choices}");
    let [make, wrong] = choices["tasks"].as_array().unwrap().as_slice() else { panic!("{choices:#}") };
    assert_eq!((&make["path"], &make["title"]), (&json!("tasks/make.md"), &json!("Make {what} well")));
    let expected = json!([
        { "name": "what", "required": true, "default": null, "choices": [], "description": "Its name" },
        { "name": "how", "required": false, "default": "well", "choices": ["well", "badly"], "description": null },
    ]);
    assert_eq!((&make["params"], &make["fault"]), (&expected, &Value::Null));
    assert_eq!(
        (&make["models"], &make["lanes"], &make["usd_micros"]),
        (&json!([]), &json!(["verify"]), &json!(2_500_000))
    );
    assert!(make["text"].as_str().unwrap().ends_with("# Make {{ what }} {{ how }}\n"), "{make}");
    assert!(wrong["fault"].as_str().unwrap().contains("max_retrys"), "{wrong}");
}

#[tokio::test]
async fn models_lanes_and_a_limit_of_a_request_replace_those_of_the_task() {
    long_test!();
    let model = Model::new([write("done", "1\n"), say("It is done."), say("It is done, too.")]);
    let site = Site::with(&model);
    site.file("lanes/free.yaml", "steps:\n  - { name: free, run: 'true' }\n");
    site.file("tasks/make.md", "---\nparams: { what: { required: true } }\n---\n# Make {{ what }}\n");
    site.commit();
    let server = site.serve(&[]);
    let task = "# Make done";
    let rows = [
        (json!({ "task": task, "models": ["nothing"] }), "models"),
        (json!({ "task": task, "lanes": ["verify", "nothing"] }), "lanes"),
        (json!({ "task": task, "max_usd": 0 }), "max_usd"),
        (json!({ "task": task, "params": { "a": [] } }), "params.a"),
        (json!({ "path": "tasks/nothing.md" }), "path"),
    ];
    for (body, field) in rows {
        let (status, problem) = server.post("/v1/runs", body).await;
        assert_eq!((status.as_u16(), fields(&problem)), (422, vec![field]), "{problem}");
        server.must_describe("/v1/runs", status, &problem).await;
    }
    let (_, problem) = server.post("/v1/runs", json!({ "path": "tasks/make.md" })).await;
    assert!(fields(&problem).contains(&"params.what"), "{problem}");
    let body = json!({ "task": task, "models": ["anthropic/claude-other"], "lanes": ["free"], "key": "k" });
    let (status, run) = server.post("/v1/runs", body.clone()).await;
    assert_eq!((status.as_u16(), &run["models"]), (201, &json!(["anthropic/claude-other"])), "{run}");
    let row = server.ended(run["id"].as_str().unwrap()).await;
    assert_eq!((&row["models"], &row["outcome"]["verified"]), (&json!(["anthropic/claude-other"]), &json!(true)));
    let steps = |row: &Value| {
        let gate = row["story"].as_array().unwrap().iter().find(|scene| scene["type"] == "gate").cloned().unwrap();
        gate["data"]["verdict"]["steps"][0]["lane"].clone()
    };
    assert_eq!(steps(&row), json!("free"));
    assert_eq!(server.post("/v1/runs", body).await.0.as_u16(), 200);
    let other = server.post("/v1/runs", json!({ "task": task, "lanes": ["free"], "key": "k" })).await;
    assert_eq!(other.0.as_u16(), 409, "{}", other.1);
}

#[tokio::test]
async fn a_run_is_run_again_as_it_was_and_gone_on_from_with_its_conversation() {
    long_test!();
    let turns = [write("done", "1\n"), say("It is done."), write("done", "2\n"), say("Again."), say("And more.")];
    let model = Model::new(turns);
    let site = Site::with(&model);
    let server = site.serve(&[]);
    let run = server.submit("---\nmax_retries: 3\n---\n# Make done").await;
    let first = server.ended(&run).await;
    let short = first["short_id"].as_str().unwrap();
    let (status, again) = server.post("/v1/runs", json!({ "again": short, "key": "page-1" })).await;
    assert_eq!((status.as_u16(), &again["title"]), (201, &json!("Make done")), "{again}");
    assert_eq!((&first["started_by"]["kind"], &again["started_by"]["kind"]), (&json!("api"), &json!("page")));
    let again = server.ended(again["id"].as_str().unwrap()).await;
    assert_eq!((&again["task_digest"], &again["outcome"]["verified"]), (&first["task_digest"], &json!(true)));
    assert!(again["branch"].as_str().unwrap().starts_with("fledge/make-done"), "{}", again["branch"]);
    assert_eq!(git(&site.project(), &["show", &format!("{}:done", again["branch"].as_str().unwrap())]), "2");
    let (status, after) = server.post("/v1/runs", json!({ "after": run, "task": "# Look at it" })).await;
    assert_eq!((status.as_u16(), &after["parent"]), (201, &json!(run)), "{after}");
    let after = server.ended(after["id"].as_str().unwrap()).await;
    assert_eq!((&after["title"], &after["outcome"]["verified"]), (&json!("Look at it"), &json!(true)), "{after:#}");
    assert_eq!(after["started_by"], json!({ "kind": "run", "name": run }));
    let asked = model.asked().last().unwrap().text.clone();
    assert!(asked.contains("It is done.") && asked.contains("Look at it"), "{asked}");
    let rows = [
        (json!({ "again": "nothing" }), 404),
        (json!({ "after": "nothing", "task": "More." }), 404),
        (json!({ "after": run, "task": " " }), 422),
        (json!({ "after": run }), 422),
        (json!({ "again": run, "task": "More." }), 422),
        (json!({ "after": run, "task": "More.", "lanes": ["verify"] }), 422),
    ];
    for (body, expected) in rows {
        let (status, problem) = server.post("/v1/runs", body.clone()).await;
        assert_eq!(status.as_u16(), expected, "{body}: {problem}");
    }
}
