//! What the layers make of settings, what a name makes of a model, and what stays a secret.

use super::*;
use crate::chat::Price;
use crate::process::wall::WallChoice;
use crate::provider::{Effort, Secret};
use crate::task::{Budget, Commit, OnTamper, Tier};
use std::fs;
use std::num::NonZeroU32;

fn environment(vars: &[(&str, &str)]) -> Environment {
    Environment::from_vars(vars.iter().copied())
}

/// A user's file, a project's files, and what comes of them.
fn loaded(user: &str, project: &[(&str, &str)], vars: &[(&str, &str)]) -> Result<Settings, ConfigFault> {
    let folder = tempfile::tempdir().unwrap();
    let (home, workspace) = (folder.path().join("home"), folder.path().join("workspace"));
    fs::create_dir_all(home.join("fledge")).unwrap();
    fs::create_dir_all(&workspace).unwrap();
    fs::write(home.join("fledge/config.yaml"), user).unwrap();
    for (name, text) in project {
        fs::write(workspace.join(name), text).unwrap();
    }
    let home = home.display().to_string();
    load(&environment(&[vars, &[("XDG_CONFIG_HOME", &home)]].concat()), &workspace)
}

fn refused(owner: Owner, text: &str) -> String {
    match file::parse(text, "fledge.yaml", owner) {
        Ok(layer) => panic!("{text:?} was accepted: {layer:?}"),
        Err(fault) => fault.to_string(),
    }
}

fn plain(provider: ProviderKind, model: &str) -> ModelSettings {
    ModelSettings::new(provider, model, "fledge.yaml")
}

#[test]
fn later_layers_win_and_protected_paths_add_up() {
    let user = "default_model: a\nprotect: [one]\nmemory: { ephemeral_ttl: 2d }\nmodels:\n  a: { provider: openai, model: big, base_url: 'https://llm.example.com/v1' }\n";
    let project = [
        ("fledge.yaml", "models: { a: { provider: anthropic, model: small } }\nprotect: [two]\ndefault_model: b\n"),
        ("fledge.local.yaml", "default_model: c\n"),
    ];
    let expected = Settings {
        default_model: Some(Sourced { value: "c".into(), origin: "fledge.local.yaml".into() }),
        models: BTreeMap::from([("a".into(), plain(ProviderKind::Anthropic, "small"))]),
        protect: vec!["one".into(), "two".into()],
        ephemeral_ttl: Some(std::time::Duration::from_secs(2 * 24 * 3600)),
        ..Settings::default()
    };
    assert_eq!(loaded(user, &project, &[]).unwrap(), expected);
    let vars = [("FLEDGE_MODEL", "d"), ("FLEDGE_NON_INTERACTIVE", "1"), ("NO_COLOR", "1"), ("FLEDGE_LOG", "debug")];
    let over = Settings {
        default_model: Some(Sourced { value: "d".into(), origin: "FLEDGE_MODEL".into() }),
        non_interactive: true,
        ..expected
    };
    assert_eq!(loaded(user, &project, &vars).unwrap(), over);
}

#[test]
fn no_file_and_no_variable_is_every_default() {
    assert_eq!(load(&environment(&[]), std::path::Path::new("/nonexistent")).unwrap(), Settings::default());
    assert_eq!(loaded("# nothing\n", &[("fledge.yaml", "")], &[]).unwrap(), Settings::default());
}

#[test]
fn a_file_that_is_no_file_or_a_flag_that_is_no_flag_is_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("fledge.yaml")).unwrap();
    let message = load(&environment(&[]), folder.path()).unwrap_err().to_string();
    assert_eq!(message, format!("cannot read {}", folder.path().join("fledge.yaml").display()));
    let message = loaded("", &[], &[("FLEDGE_NON_INTERACTIVE", "maybe")]).unwrap_err().to_string();
    assert_eq!(message, "FLEDGE_NON_INTERACTIVE: expected `1` or `0`, found `maybe`");
}

#[test]
fn a_project_can_ask_for_a_stronger_sandbox_and_not_for_a_weaker_one() {
    let own = loaded("sandbox: off\nnetwork: allow\n", &[], &[]).unwrap();
    assert_eq!((own.sandbox, own.network), (WallChoice::Off, true));
    let project = loaded("network: allow\n", &[("fledge.yaml", "sandbox: required\nnetwork: deny\n")], &[]).unwrap();
    assert_eq!((project.sandbox, project.network), (WallChoice::Required, false));
    for (text, why) in [
        ("sandbox: off", "`sandbox` in a project's file cannot be `off`"),
        ("network: allow", "`network` in a project's file cannot be `allow`"),
    ] {
        let message = loaded("", &[("fledge.local.yaml", text)], &[]).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn every_malformed_configuration_is_refused_with_its_place_and_what_to_do() {
    let model = |entry: &str| format!("models:\n  m: {{ provider: openai, model: x, {entry} }}");
    let mut sources = [
        "- a",
        "default_modle: a",
        "default_model: [a]",
        "default_model: 5",
        "protect: a",
        "protect: ['/etc']",
        "mcp: [a]",
        "mcp: { docs: {} }",
        "mcp: { docs: { command: [a], url: 'https://b' } }",
        "mcp: { 'a b': { command: [a], headers: { x: y } } }",
        "mcp: { docs: { url: 'ftp://x', timeout: 5, sandbox: on, tools: [] } }",
        "memory: 7d",
        "memory: { ephemeral_ttl: 7 }",
        "memory: { ephemeral_ttl: soon, recall: 5 }",
        "sandbox: on",
        "sandbox: [a]",
        "network: yes",
        "hooks: [a]",
        "hooks: { post_tools: cargo fmt }",
        "hooks: { post_tools: [{ timeout: 5 }, 7], pre_tools: [] }",
        "trust: /a",
        "trust: [a]",
        "budget: { usd: '2', turns: 0, time: 5, cents: 1 }",
        "approve: [a]",
        "approve: { ask: ['files-read:x', '['] }",
        "tier: write",
        "lane: false",
        "max_retries: 101\nstuck_after: 1\nloop_threshold: 2\nparallel_reads: yes",
        "compact_at: 70",
        "compact_at: 0.99",
        "commit: each-day",
        "isolation: worktree",
        "models: [a]",
        "models: { a: }",
        "models: { a: { model: x } }",
        "models: { a: { provider: openai } }",
        "models: { 'a/b': { provider: openai, model: x } }",
        "models: { a: { provider: opnai, model: x } }",
        "models: { a: { provider: gemini, model: x } }",
        "models: { a: {}, a: {} }",
        "default_model: a\ndefault_model: b",
    ]
    .map(str::to_owned)
    .to_vec();
    sources.extend(
        [
            "base_url: 'ftp://x'",
            "base_url: 'https://'",
            "base_url: 'https://me:pw@host/'",
            "base_url: 'https://a b'",
            "base_url: 'https://a/?key=1'",
            "api_key_env: sk-abc",
            "api_key_env: ''",
            "headers: { 'a b': x }",
            "headers: [x]",
            "headers: { a: 1 }",
            "headers: { a: \"x\\ny\" }",
            "max_output_tokens: 0",
            "max_output_tokens: many",
            "price: {}",
            "price: 3",
            "price: { input: -1, output: 0.0000001, cash: 1 }",
            "api_key_command: []",
            "api_key_command: a, api_key_env: B",
            "api_key_ttl: 5m",
            "api_key_file: key",
            "ca_file: ../ca.pem",
            "proxy: 'socks5://x:1'",
            "proxy: 'http://me:pw@'",
            "max_concurrent: 0, max_requests_per_minute: many",
            "max_context_tokens: 5, tier: all",
            "reasoning: hard, tools_mode: json",
            "bas_url: x",
        ]
        .map(model),
    );
    let shown: Vec<String> =
        sources.iter().map(|source| format!("{source:?}\n{}", refused(Owner::User, source))).collect();
    for line in shown.iter().flat_map(|shown| shown.lines().skip(1)) {
        assert!(line.starts_with("fledge.yaml:") && (line.ends_with(')') || line.contains("expected")), "{line}");
    }
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_projects_file_cannot_send_a_key_or_a_header_anywhere() {
    let entry = |rest: &str| format!("models:\n  m: {{ provider: openai, model: x, {rest} }}\n");
    let foreign = [
        "base_url: 'https://evil.example'",
        "base_url: 'http://127.0.0.1.evil.example'",
        "base_url: 'http://localhost.evil.example'",
        "base_url: 'http://0x7f.1/'",
        "base_url: 'http://2130706433/'",
        "base_url: 'http://[::ffff:1.2.3.4]/'",
        "base_url: 'http://127.0.0.1:80:90/'",
        "api_key_env: GITHUB_TOKEN",
        "api_key_env: ANTHROPIC_API_KEY",
        "headers: { x-a: b }",
    ];
    for rest in foreign {
        let message = refused(Owner::Project, &entry(rest));
        assert!(message.starts_with("fledge.yaml:2:"), "{message}");
        assert!(
            message.contains("say it in your own configuration, ~/.config/fledge/config.yaml, or trust"),
            "{message}"
        );
        assert!(file::parse(&entry(rest), "config.yaml", Owner::User).is_ok(), "{rest}");
    }
    for rest in ["base_url: 'http://127.0.0.1\\@evil.example'", "base_url: 'http://127.0.0.1@evil.example'"] {
        refused(Owner::Project, &entry(rest));
    }
    for rest in [
        "base_url: 'http://127.0.0.1:8080/v1'",
        "base_url: 'http://localhost'",
        "base_url: 'https://[::1]:9/'",
        "api_key_env: OPENAI_API_KEY",
        "max_output_tokens: 100",
    ] {
        assert!(file::parse(&entry(rest), "fledge.yaml", Owner::Project).is_ok(), "{rest}");
    }
}

fn resolved(name: &str, vars: &[(&str, &str)]) -> Result<ModelChoice, String> {
    let user = "models:\n  claude: { provider: anthropic, model: c }\n  gate: { provider: openai, model: g, base_url: 'https://h/v1', \
        api_key_env: GATE_KEY, max_output_tokens: 9, headers: { x-team: blue } }\n  near: { provider: openai, model: n, base_url: 'http://127.0.0.1:1/' }\n";
    resolve_model(name, &loaded(user, &[], &[]).unwrap(), &environment(vars)).map_err(|fault| fault.to_string())
}

/// A model that needs nothing.
fn choice(name: &str, entry: ModelSettings) -> ModelChoice {
    ModelChoice { name: name.into(), entry, key: None }
}

fn of_user(provider: ProviderKind, model: &str) -> ModelSettings {
    ModelSettings { origin: String::new(), ..plain(provider, model) }
}

/// The choice of a name, whatever file it stands in.
fn chosen(name: &str, vars: &[(&str, &str)]) -> Result<ModelChoice, String> {
    let mut choice = resolved(name, vars)?;
    choice.entry.origin.clear();
    Ok(choice)
}

#[test]
fn a_name_is_a_configured_model_or_a_provider_and_its_model() {
    let variable = |name: &str| Some(KeyPlace::Variable(name.into()));
    let gate = ModelSettings {
        base_url: Some("https://h/v1".into()),
        key: variable("GATE_KEY"),
        headers: BTreeMap::from([("x-team".into(), Secret::new("blue"))]),
        max_output_tokens: Some(9),
        ..of_user(ProviderKind::OpenAi, "g")
    };
    let gate = ModelChoice { key: Some(Secret::new("s")), ..choice("gate", gate) };
    assert_eq!(chosen("gate", &[("GATE_KEY", "s\n"), ("OPENAI_BASE_URL", "https://other")]), Ok(gate));
    let near = ModelSettings { base_url: Some("http://127.0.0.1:1/".into()), ..of_user(ProviderKind::OpenAi, "n") };
    assert_eq!(chosen("near", &[]), Ok(choice("near", near)));
    let vars = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "https://proxy")];
    let proxied = ModelSettings {
        base_url: Some("https://proxy".into()),
        key: variable("ANTHROPIC_API_KEY"),
        ..of_user(ProviderKind::Anthropic, "claude-x")
    };
    let proxied = ModelChoice { key: Some(Secret::new("k")), ..choice("anthropic/claude-x", proxied) };
    assert_eq!(chosen("anthropic/claude-x", &vars), Ok(proxied));
    for (name, provider, model) in [
        ("cassette/demo/fix.yaml", ProviderKind::Cassette, "demo/fix.yaml"),
        ("ollama/qwen3:8b", ProviderKind::Ollama, "qwen3:8b"),
    ] {
        assert_eq!(chosen(name, &[]), Ok(choice(name, of_user(provider, model))));
    }
}

#[test]
fn all_that_a_model_can_say_is_read() {
    let user = "models:\n  m:\n    provider: openai-responses\n    model: gpt-5-mini\n    tier: read\n    \
        price: { input: 0.25, output: 2, cached_input: 0.025, cache_write: 0.3 }\n    max_context_tokens: 200000\n    \
        max_requests_per_minute: 60\n    max_concurrent: 4\n    api_key_command: pass show key\n    api_key_ttl: 1h\n    \
        ca_file: ~/ca.pem\n    proxy: 'http://me:pw@proxy:3128'\n    reasoning: low\n    tools_mode: text\n";
    let mut found = loaded(user, &[], &[]).unwrap().models.remove("m").unwrap();
    assert!(found.origin.ends_with("config.yaml"));
    found.origin.clear();
    let expected = ModelSettings {
        key: Some(KeyPlace::Command {
            command: ["/bin/sh", "-c", "pass show key"].map(str::to_owned).to_vec(),
            ttl: Some(std::time::Duration::from_secs(3600)),
        }),
        tier: Some(Tier::Read),
        price: Some(Price { input: 250_000, output: 2_000_000, cached_input: 25_000, cache_write: 300_000 }),
        max_context_tokens: Some(200_000),
        per_minute: NonZeroU32::new(60),
        at_once: NonZeroU32::new(4),
        ca_file: Some("~/ca.pem".into()),
        proxy: Some(Secret::new("http://me:pw@proxy:3128")),
        reasoning: Some(Effort::Low),
        tools_mode: ToolsMode::Text,
        ..of_user(ProviderKind::OpenAiResponses, "gpt-5-mini")
    };
    assert_eq!(found, expected);
    let list = "models: { m: { provider: openai, model: x, api_key_command: [pass, show, my key] } }";
    let found = loaded(list, &[], &[]).unwrap().models.remove("m").unwrap();
    let command = ["pass", "show", "my key"].map(str::to_owned).to_vec();
    assert_eq!(found.key, Some(KeyPlace::Command { command, ttl: None }));
}

#[test]
fn a_price_is_what_is_configured_else_what_is_published_and_says_which() {
    let priced = |rest: &str| {
        let text = format!("models: {{ m: {{ provider: anthropic, model: claude-sonnet-4-5{rest} }} }}");
        file::parse(&text, "config.yaml", Owner::User).unwrap().models["m"].price()
    };
    let own = Price { input: 1_000_000, output: 2_000_000, cached_input: 1_000_000, cache_write: 1_250_000 };
    assert_eq!(priced(", price: { input: 1, output: 2 }"), Some((own, "config.yaml".into())));
    let known = Price { input: 3_000_000, output: 15_000_000, cached_input: 300_000, cache_write: 3_750_000 };
    assert_eq!(priced(""), Some((known, format!("built in, {PRICES_READ}"))));
    let price = |name: &str| resolved(name, &[("OPENAI_API_KEY", "k")]).unwrap().entry.price().map(|(price, _)| price);
    assert_eq!(price("openai/something-else"), None);
    assert_eq!([price("ollama/qwen3"), price("cassette/a.yaml")], [Some(Price::default()); 2]);
    let haiku =
        ModelSettings { max_context_tokens: Some(200_000), ..of_user(ProviderKind::Anthropic, "claude-haiku-5-5") };
    assert_eq!(haiku.price().map(|(price, _)| price.input), Some(500_000), "longer than its low price reaches");
}

#[test]
fn tiers_choose_models_and_the_environment_chooses_before_them() {
    let user = |default: &str| {
        format!(
            "{default}models:\n  big: {{ provider: openai, model: b, base_url: 'http://127.0.0.1:1' }}\n  \
            small: {{ provider: openai, model: s, tier: read, base_url: 'http://127.0.0.1:1' }}\n  \
            other: {{ provider: openai, model: o, tier: code, base_url: 'http://127.0.0.1:1' }}\n"
        )
    };
    let name = |default: &str, tier, vars: &[(&str, &str)]| {
        let set = loaded(&user(default), &[], vars).unwrap();
        auto_name(&set, tier, &environment(vars)).map(str::to_owned).map_err(|fault| fault.to_string())
    };
    let big = "default_model: big\n";
    assert_eq!(name(big, Tier::Read, &[]), Ok("small".into()));
    assert_eq!(name(big, Tier::Code, &[]), Ok("big".into()), "a model that says no tier is for code");
    assert_eq!(name(big, Tier::Tool, &[]), Ok("big".into()), "none is for this tier");
    assert_eq!(name("default_model: small\n", Tier::Code, &[]), Ok("other".into()));
    assert_eq!(name("", Tier::Read, &[]), Ok("small".into()));
    assert_eq!(name("", Tier::Tool, &[("ANTHROPIC_API_KEY", "k")]), Ok("anthropic/claude-sonnet-4-5".into()));
    assert_eq!(name(big, Tier::Read, &[("FLEDGE_MODEL", "cassette/x")]), Ok("cassette/x".into()));
}

#[test]
fn what_holds_for_all_tasks_comes_from_all_layers_and_a_project_can_only_narrow_it() {
    let user = "lane: check\nmax_retries: 5\ntier: tool\nbudget: { usd: 2.50, turns: 50 }\non_tamper: fail\n\
        approve: { ask: ['shell-exec:git push*'] }\nloop_threshold: 10\ncompact_at: 0.6\nconfirm_within: 5m\n";
    let project = "lane: [fmt, test]\ntier: code\nbudget: { usd: 100, turns: 20, time: 30m }\non_tamper: restore\n\
        approve: { ask: [files-delete] }\nparallel_reads: true\ncommit: on-success\nstuck_after: 3\nconfirm_within: 1h\n";
    let found = loaded(user, &[("fledge.yaml", project)], &[]).unwrap().defaults;
    let expected = Defaults {
        lanes: Some(vec!["fmt".into(), "test".into()]),
        max_retries: Some(5),
        stuck_after: Some(3),
        on_tamper: Some(OnTamper::Fail),
        tier: Some(Tier::Tool),
        commit: Some(Commit::OnSuccess),
        budget: Budget { turns: Some(20), tokens: None, usd_micros: Some(2_500_000), time_ms: Some(1_800_000) },
        approve: vec!["shell-exec:git push*".into(), "files-delete".into()],
        parallel_reads: Some(true),
        loop_threshold: Some(10),
        compact_at_percent: Some(60),
        confirm_within_ms: Some(300_000),
    };
    assert_eq!(found, expected);
}

#[test]
fn a_project_is_trusted_by_a_flag_or_by_the_users_own_configuration_and_by_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (home, workspace) = (folder.path().join("home"), folder.path().join("workspace"));
    fs::create_dir_all(home.join("fledge")).unwrap();
    fs::create_dir_all(&workspace).unwrap();
    fs::write(workspace.join("fledge.yaml"), "network: allow\n").unwrap();
    let load_with = |user: String, flag: bool| {
        fs::write(home.join("fledge/config.yaml"), user).unwrap();
        let home = home.display().to_string();
        let environment = environment(&[("XDG_CONFIG_HOME", &home)]).trusting_project(flag);
        load(&environment, &workspace).map(|set| set.network).map_err(|fault| fault.to_string())
    };
    assert!(load_with(String::new(), false).unwrap_err().contains("--trust-project"));
    assert_eq!(load_with(String::new(), true), Ok(true));
    let named = |path: &str| format!("trust: ['{path}']\n");
    assert_eq!(load_with(named(&format!("{}/", workspace.display())), false), Ok(true));
    let around = format!("{}/home/../workspace", folder.path().display());
    assert_eq!(load_with(named(&around), false), Ok(true));
    for other in [folder.path().display().to_string(), format!("{}/sub", workspace.display())] {
        assert!(load_with(named(&other), false).is_err(), "{other}");
    }
    assert!(load_with("trust: [workspace]\n".into(), false).unwrap_err().contains("no absolute path"));
}

#[test]
fn a_model_that_cannot_be_used_says_what_to_do() {
    let spelled = "or write `anthropic/<model>`, `openai/<model>`, `openai-responses/<model>`, `ollama/<model>` or `cassette/<path>`";
    let cases = [
        ("claude", vec![], "no key for the model `claude` (set ANTHROPIC_API_KEY)".to_owned()),
        ("gate", vec![("OPENAI_API_KEY", "k")], "no key for the model `gate` (set GATE_KEY)".into()),
        ("openai/x", vec![("OPENAI_API_KEY", " ")], "no key for the model `openai/x` (set OPENAI_API_KEY)".into()),
        (
            "cluade",
            vec![],
            format!("no model `cluade` (did you mean `claude`?; configured: claude, gate, near; {spelled})"),
        ),
        (
            "antropic/x",
            vec![],
            format!("no model `antropic/x` (did you mean `anthropic/x`?; configured: claude, gate, near; {spelled})"),
        ),
        ("openai/", vec![], format!("no model `openai/` (configured: claude, gate, near; {spelled})")),
        (
            "openai/x",
            vec![("OPENAI_BASE_URL", "proxy:80")],
            "OPENAI_BASE_URL: expected `base_url` to begin with `https://` or `http://`".into(),
        ),
    ];
    for (name, vars, message) in cases {
        assert_eq!(resolved(name, &vars), Err(message));
    }
}

#[test]
fn without_a_name_the_key_that_is_set_decides() {
    let auto = |vars: &[(&str, &str)]| {
        let settings = loaded("", &[], vars).unwrap();
        auto_model(&settings, Tier::Code, &environment(vars))
            .map(|choice| choice.entry.model)
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(auto(&[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")]), Ok("claude-sonnet-4-5".into()));
    assert_eq!(auto(&[("OPENAI_API_KEY", "o")]), Ok("gpt-5".into()));
    assert_eq!(auto(&[("OPENAI_API_KEY", "o"), ("FLEDGE_MODEL", "cassette/demo.yaml")]), Ok("demo.yaml".into()));
    let none = auto(&[]).unwrap_err();
    assert!(
        none.contains("ANTHROPIC_API_KEY") && none.contains("FLEDGE_MODEL") && none.contains("cassette/"),
        "{none}"
    );
}

#[test]
fn state_lives_where_the_operator_says_or_below_home() {
    let state = |vars: &[(&str, &str)]| environment(vars).state_dir().ok().map(|path| path.display().to_string());
    assert_eq!(state(&[("FLEDGE_STATE_DIR", "/s"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")]), Some("/s".into()));
    let here = std::path::absolute("st").unwrap().display().to_string();
    assert_eq!(state(&[("FLEDGE_STATE_DIR", "st")]), Some(here));
    assert_eq!(state(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")]), Some("/x/fledge".into()));
    assert_eq!(state(&[("XDG_STATE_HOME", "relative"), ("HOME", "/h")]), Some("/h/.local/state/fledge".into()));
    assert_eq!(state(&[]), None);
}

#[test]
fn children_get_what_programs_need_and_no_secret() {
    let vars = [
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("LC_ALL", "C"),
        ("LC_API_TOKEN", "x"),
        ("CARGO_HOME", "/c"),
        ("TERM", "xterm"),
        ("OPENAI_API_KEY", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("SSH_AUTH_SOCK", "x"),
        ("HTTPS_PROXY", "http://proxy:80"),
        ("HTTP_PROXY", "http://me:pw@proxy:80"),
        ("GOPROXY", "https://a,https://u:p@b"),
        ("FLEDGE_MODEL", "x"),
    ];
    let expected = [
        ("CARGO_HOME", "/c"),
        ("GIT_PAGER", "cat"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("HOME", "/h"),
        ("HTTPS_PROXY", "http://proxy:80"),
        ("LC_ALL", "C"),
        ("NO_COLOR", "1"),
        ("PAGER", "cat"),
        ("PATH", "/bin"),
        ("TERM", "dumb"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(environment(&vars).child_env(), BTreeMap::from(expected));
}

#[test]
fn no_secret_is_ever_shown() {
    let vars = [("GATE_KEY", "hush-1"), ("OTHER", "hush-2")];
    let mut choice = resolved("gate", &vars).unwrap();
    choice.entry.headers.insert("a".into(), Secret::new("hush-3"));
    choice.entry.proxy = Some(Secret::new("http://me:hush-4@proxy:1"));
    let shown = format!("{:?} {:#?}", environment(&vars), choice);
    assert!(shown.contains("***") && !shown.contains("hush"), "{shown}");
}
