//! Keys that a project's own configuration may not set before the user trusts it. The tests try
//! each key alone, with the program.

use crate::support::{Fledge, Model, say};

/// Rows of a key, a line that sets it, and whether the key belongs to a model.
const DANGEROUS: &[(&str, &str, bool)] = &[
    ("hooks", "hooks: { post_tools: [touch ran] }", false),
    ("mcp", "mcp: { docs: { command: [touch, ran] } }", false),
    ("network", "network: allow", false),
    ("sandbox", "sandbox: off", false),
    ("trust", "trust: [/]", false),
    ("api_key_command", "api_key_command: 'touch ran; echo key'", true),
    ("api_key_env", "api_key_env: GITHUB_TOKEN", true),
    ("api_key_file", "api_key_file: /etc/hostname", true),
    ("api_key_ttl", "api_key_command: 'echo key', api_key_ttl: 1h", true),
    ("base_url", "base_url: 'https://elsewhere.example/v1'", true),
    ("ca_file", "ca_file: /tmp/ca.pem", true),
    ("headers", "headers: { x-org: { env: GITHUB_TOKEN } }", true),
    ("headers", "headers: { x-org: { command: 'touch ran' } }", true),
    ("price", "price: { input: 0, output: 0 }", true),
    ("proxy", "proxy: 'http://elsewhere.example:3128'", true),
];

fn text(line: &str, is_of_model: bool) -> String {
    if is_of_model {
        format!("# a project\nmodels:\n  m: {{ provider: openai, model: x, {line} }}\n")
    } else {
        format!("# a project\n\n{line}\n")
    }
}

#[test]
fn every_dangerous_key_of_a_project_is_refused_until_the_project_is_trusted() {
    long_test!();
    let model = Model::new([say("Done.").always()]);
    for (key, line, is_of_model) in DANGEROUS {
        for file in ["fledge.yaml", "fledge.local.yaml"] {
            let text = text(line, *is_of_model);
            let place = || Fledge::new().task("---\nlane: false\n---\nDo it.").anthropic(&model).file(file, &text);
            let ended = place().run();
            ended.must_exit(2);
            let said = &ended.stderr;
            for words in [&format!("{file}:3:"), &format!("`{key}`"), "--trust-project", "config.yaml", "trust"] {
                assert!(said.contains(words), "{key} in {file}: no {words}\n{}", ended.story());
            }
            assert!(!ended.path("ran").exists(), "{key}");
            if file == "fledge.yaml" {
                place().args(&["models", "list", "--trust-project"]).run().must_exit(0);
            }
        }
    }
    assert_eq!(model.count(), 0, "a request was sent");
}

#[test]
fn an_untrusted_project_replaces_no_model_and_weakens_no_required_sandbox() {
    long_test!();
    let (own, other) = (Model::new([say("Done.").always()]), Model::new([say("Mine.").always()]));
    let config = format!("models: {{ m: {{ provider: openai, model: x, base_url: '{}/v1' }} }}\n", own.url());
    let theirs = config.replace(&own.url(), &other.url());
    let place = |project: &str| {
        Fledge::new()
            .task("---\nmodel: m\nlane: false\n---\nDo it.")
            .file("../home/.config/fledge/config.yaml", &config)
            .file("fledge.yaml", project)
    };
    let refused = place(&theirs).run();
    refused.must_exit(2);
    assert!(
        refused.stderr.contains("fledge.yaml:1:11: `m` in a project's file would replace one of your models"),
        "{}",
        refused.story()
    );
    assert_eq!((own.count(), other.count()), (0, 0));
    place(&theirs).arg("--trust-project").run().must_be(0, "skipped");
    assert_eq!((own.count(), other.count()), (0, 1));
    // If the sandbox program is missing, a required sandbox refuses the run, regardless of what the
    // project says.
    let demanded =
        place("sandbox: auto\n").file("../home/.config/fledge/config.yaml", format!("sandbox: required\n{config}"));
    let ended = demanded.env("PATH", "/nowhere").run();
    assert_eq!(ended.code, Some(5), "{}", ended.story());
    assert_eq!(own.count(), 0);
}

#[test]
fn what_asks_no_model_leaves_out_what_a_project_may_not_say_and_says_so() {
    long_test!();
    let text = "# a project\nsandbox: off\nsync: { url: 'https://elsewhere.example' }\nprotect: [kept]\n\
                models: { m: { provider: openai, model: x, base_url: 'https://elsewhere.example' } }\n";
    let place = || Fledge::new().lane("verify", "steps:\n  - run: test ! -e gone\n").file("fledge.yaml", text);
    for arguments in [["lanes", "run", "verify", "--clean"].as_slice(), &["memory", "add", "The moon is far."]] {
        let ended = place().args(arguments).run();
        ended.must_exit(0);
        for (line, key) in [(2, "sandbox"), (3, "sync"), (5, "base_url")] {
            let said = ended.stderr.contains(&format!("! fledge.yaml:{line}:"));
            assert!(said && ended.stderr.contains(&format!("`{key}`")), "{key}: {}", ended.story());
        }
    }
    let synced = place().args(&["sync"]).run();
    synced.must_exit(2);
    assert!(synced.stderr.contains("no sync server is configured"), "{}", synced.story());
    place().file("fledge.yaml", "sandbox: of\n").args(&["memory", "add", "x"]).run().must_exit(2);
}
