//! Tests of the layers of settings, and of what they refuse.

use super::*;
use crate::process::sandbox::SandboxChoice;
use crate::task::{Commit, Isolation, OnTamper, TaskBudget, Tier};
use std::fs;

pub(super) fn environment(vars: &[(&str, &str)]) -> EnvironmentLayer {
    EnvironmentLayer::from_vars(vars.iter().copied())
}

/// Loads the settings of a user's file, a project's files, and variables.
pub(super) fn loaded(
    user: &str,
    project: &[(&str, &str)],
    vars: &[(&str, &str)],
) -> Result<ProjectConfig, ConfigError> {
    let folder = crate::test_support::temp_dir();
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

pub(super) fn plain(provider: ProviderKind, model: &str) -> ModelSettings {
    ModelSettings::new(provider, model, "fledge.yaml")
}

#[test]
fn later_layers_win_and_protected_paths_add_up() {
    let user = "default_model: a\nprotect: [one]\nmemory: { ephemeral_ttl: 2d, recall_tokens: 900 }\n";
    let project = [
        ("fledge.yaml", "models: { a: { provider: openai, model: big } }\nprotect: [two]\ndefault_model: b\n"),
        ("fledge.local.yaml", "models: { a: { provider: anthropic, model: small } }\ndefault_model: c\n"),
    ];
    let small = ModelSettings::new(ProviderKind::Anthropic, "small", "fledge.local.yaml");
    let expected = ProjectConfig {
        default_model: Some(Sourced { value: "c".into(), origin: "fledge.local.yaml:2".into() }),
        models: BTreeMap::from([("a".into(), small)]),
        protect: vec!["one".into(), "two".into()],
        ephemeral_ttl: Some(std::time::Duration::from_secs(2 * 24 * 3600)),
        recall_tokens: Some(900),
        ..ProjectConfig::default()
    };
    assert_eq!(loaded(user, &project, &[]).unwrap(), expected);
    let vars = [("FLEDGE_MODEL", "d"), ("FLEDGE_NON_INTERACTIVE", "1"), ("NO_COLOR", "1"), ("FLEDGE_LOG", "debug")];
    let over = ProjectConfig {
        default_model: Some(Sourced { value: "d".into(), origin: "FLEDGE_MODEL".into() }),
        non_interactive: true,
        ..expected
    };
    assert_eq!(loaded(user, &project, &vars).unwrap(), over);
}

#[test]
fn no_file_and_no_variable_is_every_default() {
    assert_eq!(load(&environment(&[]), std::path::Path::new("/nonexistent")).unwrap(), ProjectConfig::default());
    assert_eq!(loaded("# nothing\n", &[("fledge.yaml", "")], &[]).unwrap(), ProjectConfig::default());
}

#[test]
fn a_file_that_is_no_file_or_a_flag_that_is_no_flag_is_said() {
    let folder = crate::test_support::temp_dir();
    fs::create_dir(folder.path().join("fledge.yaml")).unwrap();
    let message = load(&environment(&[]), folder.path()).unwrap_err().to_string();
    assert_eq!(message, format!("cannot read {}", folder.path().join("fledge.yaml").display()));
    let message = loaded("", &[], &[("FLEDGE_NON_INTERACTIVE", "maybe")]).unwrap_err().to_string();
    assert_eq!(message, "FLEDGE_NON_INTERACTIVE: expected `1` or `0`, found `maybe`");
}

#[test]
fn a_project_can_ask_for_a_stronger_sandbox_and_not_for_a_weaker_one() {
    let own = loaded("sandbox: off\nnetwork: allow\n", &[], &[]).unwrap();
    assert_eq!((own.sandbox, own.network), (SandboxChoice::Off, true));
    let project = loaded("network: allow\n", &[("fledge.yaml", "sandbox: required\nnetwork: deny\n")], &[]).unwrap();
    assert_eq!((project.sandbox, project.network), (SandboxChoice::Required, false));
    for weaker in ["sandbox: auto\n", "models: {}\n"] {
        let kept = loaded("sandbox: required\n", &[("fledge.yaml", weaker), ("fledge.local.yaml", weaker)], &[]);
        assert_eq!(kept.unwrap().sandbox, SandboxChoice::Required, "{weaker}");
    }
    let stronger = loaded("sandbox: off\n", &[("fledge.yaml", "sandbox: auto\n")], &[]).unwrap();
    assert_eq!(stronger.sandbox, SandboxChoice::Auto);
    for (text, why) in [
        ("sandbox: off", "`sandbox` in a project's file cannot be `off`"),
        ("network: allow", "`network` in a project's file cannot be `allow`"),
    ] {
        let message = loaded("", &[("fledge.local.yaml", text)], &[]).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    }
}

#[test]
fn a_project_cannot_put_another_model_in_the_place_of_one_of_yours() {
    let user = "models:\n  gate: { provider: openai, model: big, base_url: 'https://llm.example.com/v1' }\n";
    let other = "# theirs\nmodels:\n  gate: { provider: openai, model: other }\n";
    for file in ["fledge.yaml", "fledge.local.yaml"] {
        let message = loaded(user, &[(file, other)], &[]).unwrap_err().to_string();
        let why = format!("{file}:3:3: `gate` in a project's file would replace one of your models");
        assert!(message.starts_with(&why) && message.contains("--trust-project"), "{message}");
    }
    let free = loaded(user, &[("fledge.yaml", &other.replace("gate", "mine"))], &[]).unwrap();
    assert_eq!(free.models.keys().collect::<Vec<_>>(), ["gate", "mine"]);
}

/// Invalid configurations.
const WRONG: &[&str] = &[
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
    "memory: { recall_tokens: 99 }",
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
    "approve: { ask: ['files-read:x', '[', 'git push*'] }",
    "tier: write",
    "lane: false",
    "max_retries: 101\nstuck_after: 1\nloop_threshold: 2\nparallel_reads: yes",
    "max_tries: 0\nmax_wait: 5",
    "compact_at: 70",
    "compact_at: 0.99",
    "commit: each-day",
    "isolation: docker",
    "model: a\nturns: 5\nretries: 2",
    "models: [a]",
    "models: { a: }",
    "models: { a: { model: x } }",
    "models: { a: { provider: openai } }",
    "models: { 'a/b': { provider: openai, model: x } }",
    "models: { a: { provider: opnai, model: x } }",
    "models: { a: { provider: gemini, model: x } }",
    "models: { a: {}, a: {} }",
    "default_model: a\ndefault_model: b",
];

/// Invalid settings of a model.
const WRONG_OF_A_MODEL: &[&str] = &[
    "base_url: 'ftp://x'",
    "base_url: 'https://'",
    "base_url: 'https://me:pw@host/'",
    "base_url: 'https://a b'",
    "base_url: 'https://a/?key=1'",
    "api_key_env: sk-abc",
    "api_key_env: ''",
    "headers: { 'a b': x }",
    "headers: [x]",
    "headers: { a: {} }",
    "headers: { a: { env: lower, file: key } }",
    "headers: { a: { env: A, ttl: 5m, more: 1 } }",
    "headers: { a: { command: [] } }",
    "timeouts: 5s",
    "timeouts: { first_byte: 5, idle: 0s, all: 1m }",
    "max_response: big",
    "max_response: 1KB",
    "max_response: 5",
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
];

#[test]
fn every_malformed_configuration_is_refused_with_its_place_and_what_to_do() {
    let model = |entry: &&str| format!("models:\n  m: {{ provider: openai, model: x, {entry} }}");
    let sources = WRONG.iter().map(|source| (*source).to_owned()).chain(WRONG_OF_A_MODEL.iter().map(model));
    let shown: Vec<String> = sources.map(|source| format!("{source:?}\n{}", refused(Owner::User, &source))).collect();
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
            message.contains("set it in your own configuration, ~/.config/fledge/config.yaml, or trust"),
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

#[test]
fn what_holds_for_all_tasks_comes_from_all_layers_and_a_project_can_only_narrow_it() {
    let user = "lane: check\nmax_retries: 5\ntier: tool\nbudget: { usd: 2.50, turns: 50 }\non_tamper: fail\n\
        approve: { ask: ['shell-exec:git push*'] }\nloop_threshold: 10\ncompact_at: 0.6\nconfirm_within: 5m\nmax_tries: 6\nmax_wait: 30s\nhidden: auto 25%\n";
    let project = "lane: [fmt, test]\ntier: code\nbudget: { usd: 100, turns: 20, time: 30m }\non_tamper: restore\n\
        approve: { ask: [files-delete] }\nparallel_reads: true\ncommit: on-success\nstuck_after: 3\nconfirm_within: 1h\nmax_tries: 2\nmax_wait: 1h\nisolation: worktree\nhidden: ['tests/acceptance/**']\n";
    let found = loaded(user, &[("fledge.yaml", project)], &[]).unwrap().defaults;
    let expected = TaskDefaults {
        lanes: Some(vec!["fmt".into(), "test".into()]),
        max_retries: Some(5),
        stuck_after: Some(3),
        on_tamper: Some(OnTamper::Fail),
        tier: Some(Tier::Tool),
        commit: Some(Commit::OnSuccess),
        isolation: Some(Isolation::Worktree),
        budget: TaskBudget { turns: Some(20), tokens: None, usd_micros: Some(2_500_000), time_ms: Some(1_800_000) },
        approve: vec!["shell-exec:git push*".into(), "files-delete".into()],
        hidden: vec!["auto 25%".into(), "tests/acceptance/**".into()],
        parallel_reads: Some(true),
        loop_threshold: Some(10),
        compact_at_percent: Some(60),
        confirm_within_ms: Some(300_000),
        max_tries: Some(2),
        max_wait_ms: Some(30_000),
    };
    assert_eq!(found, expected);
}

#[test]
fn a_project_is_trusted_only_by_a_flag_or_by_the_users_configuration() {
    let folder = crate::test_support::temp_dir();
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
    assert!(load_with("trust: [workspace]\n".into(), false).unwrap_err().contains("not an absolute path"));
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
fn steps_have_every_variable_but_secrets_and_what_belongs_to_the_session() {
    let kept = [
        ("COMPATIBLE", "yes"), // PAT is not a separate part here
        ("DATABASE_URL", "postgres://db/app"),
        ("EDITOR", "vi"),
        ("GIT_AUTHOR_NAME", "A"),
        ("GIT_PAGER", "less"),
        ("LANG", "de_DE.UTF-8"),
        ("PATH", "/bin"),
        ("TERM", "xterm-256color"),
        ("TZ", "UTC"),
    ];
    let removed = [
        ("BASH_ENV", "/h/.env"),
        ("FLEDGE_MODEL", "x"),
        ("GH_PAT", "x"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_DIR", "/r/.git"),
        ("LD_PRELOAD", "/x.so"),
        ("MAILER_DSN", "x"),
        ("MAKEFLAGS", " -j4 --jobserver-auth=3,4"),
        ("MYSQL_PWD", "x"),
        ("NPM_AUTH", "x"),
        ("OPENAI_API_KEY", "x"),
        ("PGPASSWORD", "x"),
        ("SSH_AUTH_SOCK", "/s"),
        ("TEST_DATABASE_URL", "postgres://u:p@db/app"),
    ];
    let environment = environment(&[&kept[..], &removed[..]].concat());
    assert_eq!(environment.step_env(), kept.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert_eq!(environment.kept_from_steps().collect::<Vec<_>>(), removed.map(|(name, _)| name));
    assert_eq!(environment.own_env().len(), kept.len() + removed.len());
    assert!(!environment.child_env().contains_key("MAKEFLAGS"));
}
