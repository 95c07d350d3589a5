//! The JSON Schema of configuration files, for editors: everything that the operator may set. Its
//! words and ranges are those of the parser, and a test compares its keys with the parser's.
//! [`super::trust`] decides what a project's file may set.

use super::file::{COMPACT_AT, LOOP_THRESHOLD, MAX_TRIES, RECALLED};
use super::limits::PROCESSES;
use super::model::ProviderKind;
use super::model_keys::{AT_ONCE, CONTEXT_TOKENS, EFFORTS, OUTPUT_TOKENS, PER_MINUTE, TOOLS_MODES};
use crate::lane::tasks_schema;
use crate::process::sandbox::SandboxChoice;
use crate::task::{Baseline, Commit, Isolation, OnTamper, STUCK_AFTER, Tier, approve_schema, budget_schema};
use crate::yaml::schema::{KeyRow, any_of, any_text, document, dollars, duration, flag, int, like, map, map_of_text};
use crate::yaml::schema::{map_with, names_to, one_of, text, text_or_texts, texts, with, word_of};
use serde_json::{Value, json};

/// Returns the schema of `fledge.yaml`, `fledge.local.yaml` and `~/.config/fledge/config.yaml`.
pub(crate) fn schema() -> Value {
    let what = "Settings of fledge: `fledge.yaml` in a project, `fledge.local.yaml` beside it, `~/.config/fledge/config.yaml` for all projects.";
    let root = map(means().into_iter().chain(defaults()).chain(safety()));
    document("config", "A fledge configuration", what, with(root, json!({ "type": ["object", "null"] })))
}

fn means() -> Vec<KeyRow> {
    let memory = map([
        ("ephemeral_ttl", duration(), "How long what runs leave in memory lives."),
        ("recall_tokens", int(RECALLED), "Tokens of memories in the first message, of four bytes each. Default: 500."),
    ]);
    vec![
        (
            "default_model",
            like(text(), "claude"),
            "The model of tasks that name none: a name under `models`, or `provider/model`.",
        ),
        (
            "models",
            with(names_to(model()), json!({ "propertyNames": { "pattern": "^[A-Za-z0-9._-]+$" } })),
            "Models by the names that tasks have for them.",
        ),
        (
            "mcp",
            with(names_to(server()), json!({ "propertyNames": { "pattern": "^[A-Za-z0-9_-]{1,32}$" } })),
            "MCP servers by the names that tasks have for them.",
        ),
        ("hooks", hooks(), "Commands that follow what the agent does."),
        ("tasks", tasks_schema(), "Commands that the steps of lanes refer to, by name."),
        ("memory", memory, "What is remembered of earlier runs."),
        ("sync", sync(), "A server that runs are told of. Only in your own configuration."),
    ]
}

/// Returns the defaults for tasks that do not set a value.
fn defaults() -> Vec<KeyRow> {
    let share =
        like(json!({ "type": "number", "minimum": COMPACT_AT[0] / 100.0, "maximum": COMPACT_AT[1] / 100.0 }), 0.7);
    vec![
        ("lane", text_or_texts("verify"), "The lane that is the gate, or a list of lanes. Default: `verify`."),
        ("max_retries", int(0..=100), "Further attempts after the first one when the gate says no. Default: 3."),
        ("stuck_after", int(STUCK_AFTER), "So many equal failures in a row end a run early. Default: off."),
        (
            "tier",
            one_of(&Tier::WORDS),
            "Which tools there are: to read, to change files, to run commands. Default: `code`.",
        ),
        ("commit", one_of(&Commit::WORDS), "What becomes a commit. Default: `none`."),
        (
            "isolation",
            one_of(&Isolation::WORDS),
            "Where agents work; in a batch the default is a worktree. Default: `in-place`.",
        ),
        (
            "baseline",
            one_of(&Baseline::WORDS),
            "Whether the gate judges the base before the first model call. Default: `auto`.",
        ),
        ("budget", budget_schema(), "What a run may spend."),
        ("parallel_reads", flag(), "Whether neighbouring calls that only read may overlap in time. Default: `false`."),
        ("loop_threshold", int(LOOP_THRESHOLD), "So many alike calls make a loop, which ends the run. Default: 8."),
        ("compact_at", share, "The share of the model's window at which a conversation is made shorter. Default: 0.7."),
        ("confirm_within", duration(), "How long a person has to agree to a call."),
        ("max_tries", int(MAX_TRIES), "How often one model call is tried. Default: 4."),
        ("max_wait", duration(), "The longest pause that a provider may ask for. Default: `2m`."),
    ]
}

fn safety() -> Vec<KeyRow> {
    vec![
        ("protect", texts("CODEOWNERS"), "Globs of more paths that no agent may change."),
        (
            "on_tamper",
            one_of(&OnTamper::WORDS),
            "What happens when a protected path was changed: it is put back, or the run fails. Default: `restore`.",
        ),
        ("approve", approve_schema(), "Calls that a person must agree to; where nobody is there, they are denied."),
        (
            "sandbox",
            word_of(SandboxChoice::NAMES),
            "The wall around agents and gates: the best there is, bubblewrap or nothing, or none. Default: `auto`.",
        ),
        ("network", word_of(["deny", "allow"]), "Whether agents reach the network. Default: `deny`."),
        (
            "limits",
            limits(),
            "What one call of a tool, and one step of a gate, may use up. A project's own files can only lower it.",
        ),
        (
            "trust",
            texts("/home/me/project"),
            "Projects whose own files may say everything, by their whole paths. Only in your own configuration.",
        ),
    ]
}

fn limits() -> Value {
    map([
        ("processes", int(PROCESSES), "The most processes at once. Default: 4096."),
        (
            "memory",
            like(text(), "4GiB"),
            "The most memory, of all its processes together. Default: three quarters of the machine's.",
        ),
        ("file_size", like(text(), "1GiB"), "The largest file that it may write. Default: 16GiB."),
    ])
}

fn sync() -> Value {
    map_with(
        &["url"],
        [
            ("url", url(), "The address of its `fledge serve`."),
            ("token_env", variable("MY_TOKEN"), "The environment variable with its token."),
            ("token_file", path("~/.keys/fledge"), "The file with its token."),
            ("token_command", text_or_texts("pass show fledge"), "A command that prints its token."),
            ("machine", like(text(), "ci-7"), "What this machine is called there. Default: its own name."),
            ("ca_file", path("~/ca.pem"), "Certificates that it is trusted by, beside the system's."),
        ],
    )
}

fn model() -> Value {
    let timeouts = map([
        ("first_byte", duration(), "Until the answer begins."),
        ("idle", duration(), "Between two pieces of the answer."),
        ("turn", duration(), "For the whole answer."),
    ]);
    let price = map_with(
        &["input", "output"],
        [
            ("input", dollars(), "What is read."),
            ("output", dollars(), "What is written."),
            ("cached_input", dollars(), "What is read from the cache."),
            ("cache_write", dollars(), "What is written to the cache."),
        ],
    );
    map_with(
        &["provider", "model"],
        [
            ("provider", one_of(&ProviderKind::WORDS), "Whose interface it has."),
            ("model", like(text(), "claude-sonnet-4-5"), "The provider's name for it."),
            ("base_url", url(), "Where it is, if not at its provider's own address."),
            ("api_key_env", variable("MY_API_KEY"), "The environment variable with its key."),
            ("api_key_file", path("~/.keys/model"), "The file with its key."),
            ("api_key_command", text_or_texts("pass show model"), "A command that prints its key."),
            ("api_key_ttl", duration(), "How long a key is good that `api_key_command` gave."),
            ("tier", one_of(&Tier::WORDS), "The tier of tasks that take this model by themselves."),
            ("price", price, "US dollars per million tokens."),
            ("max_context_tokens", int(CONTEXT_TOKENS), "The tokens that a conversation may have."),
            ("max_output_tokens", int(OUTPUT_TOKENS), "The tokens that one answer may have."),
            ("max_requests_per_minute", int(PER_MINUTE), "Requests within a minute, of all runs of this process."),
            ("max_concurrent", int(AT_ONCE), "Requests at once, of all runs of this process."),
            ("headers", headers(), "What is sent beside each request, by the names of headers."),
            ("ca_file", path("~/.keys/ca.pem"), "Certificates that are trusted for it, as PEM."),
            ("proxy", like(text(), "http://proxy.example:3128"), "The proxy that leads to it."),
            ("reasoning", one_of(&EFFORTS), "How much it thinks before it answers."),
            (
                "tools_mode",
                one_of(&TOOLS_MODES),
                "Whether it calls tools by its provider's interface, or in its text. Default: `native`.",
            ),
            ("timeouts", timeouts, "How long a turn may take."),
            ("max_response", like(text(), "16MB"), "The most bytes of one answer, from `4KB` to `1GB`."),
        ],
    )
}

fn headers() -> Value {
    let at = map([
        ("env", variable("MY_TOKEN"), "The environment variable with the value."),
        ("file", path("~/.keys/token"), "The file with the value."),
        ("command", text_or_texts("pass show token"), "A command that prints the value."),
        ("ttl", duration(), "How long a value is good that `command` gave."),
    ]);
    names_to(any_of([any_text(), at]))
}

fn server() -> Value {
    let rows = [
        ("command", text_or_texts("docs-server"), "The program that is started, and its arguments."),
        ("url", url(), "The address of one that is there already."),
        ("env", map_of_text(), "The environment of the program."),
        ("headers", map_of_text(), "What is sent beside each request to the address."),
        ("sandbox", word_of(["auto", "off"]), "Whether it stands inside of the agent's wall. Default: `auto`."),
        ("network", word_of(["deny", "allow"]), "Whether it reaches the network from there. Default: `deny`."),
        ("tier", one_of(&Tier::WORDS), "The lowest tier whose tasks may have its tools. Default: `tool`."),
        ("timeout", duration(), "How long one call may take."),
        ("required", flag(), "Whether no run may begin without it. Default: `false`."),
    ];
    with(map(rows), json!({ "oneOf": [{ "required": ["command"] }, { "required": ["url"] }] }))
}

fn hooks() -> Value {
    let rows = [
        (
            "run",
            like(text(), "cargo fmt"),
            "The command, for the shell. The turn is on its standard input and in FLEDGE_ variables.",
        ),
        ("name", text(), "What it is called. Default: its command."),
        ("timeout", duration(), "How long it may take."),
        (
            "tell_model",
            flag(),
            "Whether the model is told of its failure, with its output, and of what it changed. Default: `false`.",
        ),
    ];
    let each = any_of([like(text(), "cargo fmt"), map_with(&["run"], rows)]);
    let after = json!({ "type": "array", "items": each });
    map([(
        "post_tools",
        after,
        "Commands that follow every turn in which something may have changed. Each reads a JSON object about the turn.",
    )])
}

fn url() -> Value {
    like(json!({ "type": "string", "pattern": "^https?://" }), "https://llm.example.com/v1")
}

fn path(example: &str) -> Value {
    like(json!({ "type": "string", "pattern": "^(/|~/)" }), example)
}

fn variable(example: &str) -> Value {
    like(json!({ "type": "string", "pattern": "^[A-Z_][A-Z0-9_]*$" }), example)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::file::parse;
    use crate::config::trust::Owner;
    use crate::yaml::schema_law::{holds, keys, known};

    fn read(text: &str) -> Result<(), String> {
        parse(text, "f", Owner::User).map(drop).map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_schema_of_a_configuration_has_the_keys_of_its_reader_and_takes_what_that_takes() {
        let schema = schema();
        let of = |path: &str| keys(schema.pointer(&format!("/properties/{path}")).unwrap());
        assert_eq!(keys(&schema), known("@", read));
        let model = |inside: &str| format!("models: {{ m: {{ provider: openai, model: m, {inside} }} }}");
        for (path, around) in [
            ("models/additionalProperties", model("@")),
            ("models/additionalProperties/properties/timeouts", model("timeouts: { @ }")),
            ("models/additionalProperties/properties/price", model("price: { input: 1, output: 1, @ }")),
            (
                "models/additionalProperties/properties/headers/additionalProperties/anyOf/1",
                model("headers: { x-a: { env: A, @ } }"),
            ),
            ("mcp/additionalProperties", "mcp: { d: { command: x, @ } }".into()),
            ("hooks", "hooks: { @ }".into()),
            ("hooks/properties/post_tools/items/anyOf/1", "hooks: { post_tools: [{ run: x, @ }] }".into()),
            ("memory", "memory: { @ }".into()),
            ("budget", "budget: { @ }".into()),
            ("approve", "approve: { @ }".into()),
        ] {
            assert_eq!(of(path), known(&around, read), "{path}");
        }
        holds(&schema, |text| {
            read(text)?;
            // Tasks are read with the lanes that refer to them.
            let lanes = crate::lane::tasks_fault(text);
            lanes.map_or(Ok(()), Err)
        });
    }
}
