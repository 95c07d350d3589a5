//! Tests of model names: the address, key and price of a model, and that no secret is shown.

use super::tests::{environment, loaded, plain};
use super::*;
use crate::chat::Price;
use crate::provider::{Effort, Secret, TurnTimeouts};
use crate::task::Tier;
use std::num::NonZeroU32;

fn resolved(name: &str, vars: &[(&str, &str)]) -> Result<ModelChoice, String> {
    let user = "models:\n  claude: { provider: anthropic, model: c }\n  gate: { provider: openai, model: g, base_url: 'https://h/v1', \
        api_key_env: GATE_KEY, max_output_tokens: 9, headers: { x-team: blue } }\n  near: { provider: openai, model: n, base_url: 'http://127.0.0.1:1/' }\n";
    resolve_model(name, &loaded(user, &[], &[]).unwrap(), &environment(vars)).map_err(|fault| fault.to_string())
}

/// Creates a choice without a key.
fn choice(name: &str, entry: ModelSettings) -> ModelChoice {
    ModelChoice { name: name.into(), entry, key: None }
}

fn of_user(provider: ProviderKind, model: &str) -> ModelSettings {
    ModelSettings { origin: String::new(), ..plain(provider, model) }
}

/// Resolves a name, and clears the name of its file.
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
        headers: Headers::from([("x-team".into(), SentHeader::Text(Secret::new("blue")))]),
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
        ca_file: ~/ca.pem\n    proxy: 'http://me:pw@proxy:3128'\n    reasoning: low\n    tools_mode: text\n    \
        timeouts: { first_byte: 5s, turn: 2m }\n    max_response: 2MB\n    \
        headers: { x-a: b, x-org: { env: ORG }, x-key: { command: show it, ttl: 5m }, x-file: { file: ~/token } }\n";
    let mut found = loaded(user, &[], &[]).unwrap().models.remove("m").unwrap();
    assert!(found.origin.ends_with("config.yaml"));
    found.origin.clear();
    let shown = ["/bin/sh", "-c", "show it"].map(str::to_owned).to_vec();
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
        clocks: TurnTimeouts {
            first_byte: Duration::from_secs(5),
            turn: Duration::from_secs(120),
            ..TurnTimeouts::default()
        },
        max_response: Some(2_000_000),
        headers: Headers::from([
            ("x-a".into(), SentHeader::Text(Secret::new("b"))),
            ("x-org".into(), SentHeader::At(KeyPlace::Variable("ORG".into()))),
            ("x-key".into(), SentHeader::At(KeyPlace::Command { command: shown, ttl: Some(Duration::from_secs(300)) })),
            ("x-file".into(), SentHeader::At(KeyPlace::File("~/token".into()))),
        ]),
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
fn the_prices_and_the_key_of_a_provider_are_for_its_own_address_alone() {
    let found = |rest: &str, vars: &[(&str, &str)]| {
        let text = format!("models: {{ m: {{ provider: anthropic, model: claude-sonnet-4-5{rest} }} }}");
        let set = loaded(&text, &[], &[]).unwrap();
        resolve_model("m", &set, &environment(vars))
            .map(|choice| (choice.key.map(|key| key.reveal().to_owned()), choice.entry.price().is_some()))
            .map_err(|fault| fault.to_string())
    };
    let vars = [("ANTHROPIC_API_KEY", "own"), ("MY_KEY", "mine")];
    let key = |key: &str| Some(key.to_owned());
    assert_eq!(found("", &vars), Ok((key("own"), true)));
    assert_eq!(found(", base_url: 'https://api.anthropic.com/'", &vars), Ok((key("own"), true)));
    for base in [
        "https://h/v1",
        "https://api.anthropic.com.evil.org",
        "http://api.anthropic.com",
        "https://h/api.anthropic.com",
    ] {
        assert_eq!(
            found(&format!(", base_url: '{base}'"), &vars),
            Err(format!(
                "the model `m` is at {base}, and fledge sends ANTHROPIC_API_KEY to the provider's own address alone (add `api_key_env: MY_KEY`, \
                 `api_key_file` or `api_key_command` to the model, or `api_key_env: ANTHROPIC_API_KEY` to use that key)"
            ))
        );
    }
    assert_eq!(found(", base_url: 'https://h/v1', api_key_env: MY_KEY", &vars), Ok((key("mine"), false)));
    let price = ", price: { input: 1, output: 2 }";
    assert_eq!(
        found(&format!(", base_url: 'https://h/v1', api_key_env: MY_KEY{price}"), &vars),
        Ok((key("mine"), true))
    );
    assert_eq!(found(", base_url: 'https://h/v1', headers: { x-api-key: k }", &vars), Ok((None, false)));
    assert_eq!(found(", base_url: 'http://127.0.0.1:9'", &vars), Ok((None, false)), "not even on this machine");
    let both = [("ANTHROPIC_API_KEY", "own"), ("ANTHROPIC_BASE_URL", "https://proxy")];
    assert_eq!(found("", &both), Ok((key("own"), false)), "the environment says both");
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
        ("openai/", vec![], "no model `openai/` (this is a provider: add the model, e.g. `openai/gpt-5`)".into()),
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
fn a_header_whose_variable_is_not_set_is_told_of_before_anything_is_sent() {
    let user = "models: { m: { provider: ollama, model: x, headers: { x-org: { env: ORG } } } }";
    let resolved = |vars: &[(&str, &str)]| {
        let choice = resolve_model("m", &loaded(user, &[], &[]).unwrap(), &environment(vars));
        choice.map(|choice| choice.entry.headers).map_err(|fault| fault.to_string())
    };
    assert_eq!(resolved(&[]), Err("no value for the header `x-org` of the model `m` (set ORG)".into()));
    let sent = Headers::from([("x-org".into(), SentHeader::Text(Secret::new("blue")))]);
    assert_eq!(resolved(&[("ORG", "blue\n")]), Ok(sent));
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
fn no_secret_is_ever_shown() {
    let vars = [("GATE_KEY", "hush-1"), ("OTHER", "hush-2")];
    let mut choice = resolved("gate", &vars).unwrap();
    choice.entry.headers.insert("a".into(), SentHeader::Text(Secret::new("hush-3")));
    choice.entry.proxy = Some(Secret::new("http://me:hush-4@proxy:1"));
    let shown = format!("{:?} {:#?}", environment(&vars), choice);
    assert!(shown.contains("***") && !shown.contains("hush"), "{shown}");
}
