//! What the layers make of settings, what a name makes of a model, and what stays a secret.

use super::*;
use crate::process::wall::WallChoice;
use std::fs;

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
    let (base_url, key_variable, max_output_tokens) = (None, None, None);
    let (model, headers, origin) = (model.into(), BTreeMap::new(), "fledge.yaml".into());
    ModelSettings { provider, model, base_url, key_variable, max_output_tokens, headers, origin }
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
        ("sandbox: off", "a project cannot switch the sandbox off"),
        ("network: allow", "a project cannot grant itself the network"),
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
        "mcp: {}",
        "memory: 7d",
        "memory: { ephemeral_ttl: 7 }",
        "memory: { ephemeral_ttl: soon, recall: 5 }",
        "sandbox: on",
        "sandbox: [a]",
        "network: yes",
        "hooks: {}",
        "models: [a]",
        "models: { a: }",
        "models: { a: { model: x } }",
        "models: { a: { provider: openai } }",
        "models: { 'a/b': { provider: openai, model: x } }",
        "models: { a: { provider: opnai, model: x } }",
        "models: { a: { provider: ollama, model: x } }",
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
            "api_key_command: x",
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
            message.ends_with("(put this model into your own configuration, ~/.config/fledge/config.yaml)"),
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

fn choice(provider: ProviderKind, model: &str) -> ModelChoice {
    let key_variable = provider.key_variable().map(str::to_owned);
    let (base_url, key, headers, max_output_tokens) = (None, None, BTreeMap::new(), None);
    ModelChoice { provider, model: model.into(), base_url, key, key_variable, headers, max_output_tokens }
}

#[test]
fn a_name_is_a_configured_model_or_a_provider_and_its_model() {
    let gate = ModelChoice {
        base_url: Some("https://h/v1".into()),
        key: Some(Secret::new("s")),
        key_variable: Some("GATE_KEY".into()),
        headers: BTreeMap::from([("x-team".into(), Secret::new("blue"))]),
        max_output_tokens: Some(9),
        ..choice(ProviderKind::OpenAi, "g")
    };
    assert_eq!(resolved("gate", &[("GATE_KEY", "s\n"), ("OPENAI_BASE_URL", "https://other")]), Ok(gate));
    let local = ModelChoice { base_url: Some("http://127.0.0.1:1/".into()), ..choice(ProviderKind::OpenAi, "n") };
    assert_eq!(resolved("near", &[]), Ok(local));
    let vars = [("ANTHROPIC_API_KEY", "k"), ("ANTHROPIC_BASE_URL", "https://proxy")];
    let proxied = ModelChoice {
        base_url: Some("https://proxy".into()),
        key: Some(Secret::new("k")),
        ..choice(ProviderKind::Anthropic, "claude-x")
    };
    assert_eq!(resolved("anthropic/claude-x", &vars), Ok(proxied));
    assert_eq!(resolved("cassette/demo/fix.yaml", &[]), Ok(choice(ProviderKind::Cassette, "demo/fix.yaml")));
}

#[test]
fn a_model_that_cannot_be_used_says_what_to_do() {
    let spelled = "or write `anthropic/<model>`, `openai/<model>` or `cassette/<path>`";
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
        auto_model(&settings, &environment(vars)).map(|choice| choice.model).map_err(|fault| fault.to_string())
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
    let choice = ModelChoice {
        headers: BTreeMap::from([("a".into(), Secret::new("hush-3"))]),
        ..resolved("gate", &vars).unwrap()
    };
    let shown = format!("{:?} {:#?}", environment(&vars), choice);
    assert!(shown.contains("***") && !shown.contains("hush"), "{shown}");
}
