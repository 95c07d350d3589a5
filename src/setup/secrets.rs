//! The secrets that fledge neither stores nor shows.

use crate::config::{self, EnvTemplate, EnvironmentLayer, KeyPlace, McpAt, McpServer, ModelSettings, SentHeader};
use crate::tool::{LateSecrets, SecretMask, in_url, parts, parts_of_header};

/// A secret with its name, which is empty for a part of a secret.
type NamedSecret = (String, String);

/// Returns the mask of all known secrets. They come from variables with secret names, keys and
/// headers of models, settings of MCP servers, the token of the server, and addresses. `late` adds
/// secrets that are fetched later.
pub fn secrets(environment: &EnvironmentLayer, set: &config::ProjectConfig, late: &LateSecrets) -> SecretMask {
    let own = environment.secrets().flat_map(|(name, value)| named(name, value));
    let models = set.models.values().flat_map(|model| of_model(model, environment));
    let token = set.sync.iter().flat_map(|sync| match &sync.token {
        Some(KeyPlace::Variable(name)) => named(name, environment.get(name).unwrap_or_default()),
        Some(KeyPlace::Command { .. } | KeyPlace::File(_)) | None => Vec::new(),
    });
    SecretMask::of(
        own.chain(models).chain(token).chain(set.mcp.values().flat_map(|server| of_server(server, environment))),
    )
    .with(late)
}

fn of_model(model: &ModelSettings, environment: &EnvironmentLayer) -> Vec<NamedSecret> {
    let variable = |place: &KeyPlace| match place {
        KeyPlace::Variable(name) => named(name, environment.get(name).unwrap_or_default()),
        KeyPlace::Command { .. } | KeyPlace::File(_) => Vec::new(),
    };
    let sent = |(name, sent): (&String, &SentHeader)| match sent {
        SentHeader::Text(text) => header(name, text.reveal()),
        SentHeader::At(KeyPlace::Variable(variable)) => header(name, environment.get(variable).unwrap_or_default()),
        SentHeader::At(KeyPlace::Command { .. } | KeyPlace::File(_)) => Vec::new(),
    };
    let proxy = model.proxy.iter().flat_map(|proxy| named("", proxy.reveal()));
    model.key.iter().flat_map(variable).chain(model.headers.iter().flat_map(sent)).chain(proxy).collect()
}

fn of_server(server: &McpServer, environment: &EnvironmentLayer) -> Vec<NamedSecret> {
    let value = |variable: &str| environment.get(variable);
    let within =
        |woven: &EnvTemplate| woven.variables().filter_map(|name| Some(named(name, value(name)?))).flatten().collect();
    let with = |woven: &EnvTemplate, whole: &dyn Fn(&str) -> Vec<NamedSecret>| {
        let parts: Vec<NamedSecret> = within(woven);
        parts.into_iter().chain(woven.filled(value).map_or(Vec::new(), |text| whole(text.reveal())))
    };
    let given = |(name, woven): (&String, &EnvTemplate)| with(woven, &|text| named(name, text)).collect::<Vec<_>>();
    let sent = |(name, woven): (&String, &EnvTemplate)| with(woven, &|text| header(name, text)).collect::<Vec<_>>();
    match &server.at {
        McpAt::Command { env, command } => env.iter().flat_map(given).chain(in_command(command)).collect(),
        McpAt::Url { headers, url } => {
            headers.iter().flat_map(sent).chain(in_url(url).into_iter().map(|part| (String::new(), part))).collect()
        }
    }
}

/// Returns the secrets in the words of a command: values of flags with secret names, and parts of
/// addresses.
fn in_command(command: &[String]) -> Vec<NamedSecret> {
    let is_secret = |flag: &str| {
        let flag = flag.to_ascii_lowercase();
        flag.starts_with('-') && ["key", "token", "secret", "password", "auth"].iter().any(|word| flag.contains(word))
    };
    let mut all = Vec::new();
    for (at, word) in command.iter().enumerate() {
        all.extend(in_url(word));
        match word.split_once('=') {
            Some((flag, value)) if is_secret(flag) => all.extend(parts(value)),
            Some(_) => {}
            None if at > 0 && is_secret(&command[at - 1]) && !command[at - 1].contains('=') => all.extend(parts(word)),
            None => {}
        }
    }
    all.into_iter().map(|part| (String::new(), part)).collect()
}

/// Returns a value with its name, and the parts of it that are secrets by themselves.
fn named(name: &str, value: &str) -> Vec<NamedSecret> {
    with_name(name, value, parts(value))
}

/// Returns a header's value with its name, and the parts of it that are secrets by themselves.
fn header(name: &str, value: &str) -> Vec<NamedSecret> {
    with_name(name, value, parts_of_header(value))
}

fn with_name(name: &str, value: &str, parts: Vec<String>) -> Vec<NamedSecret> {
    let named = |part: String| (if part == value.trim() { name.to_owned() } else { String::new() }, part);
    parts.into_iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn whatever_is_secret_in_a_configuration_is_masked_and_so_are_its_parts() {
        let folder = crate::test_support::temp_dir();
        fs::create_dir(folder.path().join("fledge")).unwrap();
        let config = "models:\n  m: { provider: openai, model: x, api_key_env: MINE, proxy: 'http://me:pr0xy-pass@proxy:1',\n    \
            headers: { Authorization: 'Bearer b3arer-word', x-org: { env: ORG }, cookie: 'a=c00kie-value; b=1' } }\n\
            mcp:\n  a: { command: [srv, --api-key=arg-k3y-1, --token, arg-t0ken-2], env: { T: env-t0ken-3, V: '${OWN_VALUE}', D: 'pg://u:db-p4ss@h/x' } }\n  \
            b: { url: 'https://mcp.example/u/0123456789abcdef/mcp?key=qu3ry-key', headers: { Authorization: 'Token hdr-t0ken-4', x-key: 'Bearer ${DOCS_VALUE}' } }\n";
        fs::write(folder.path().join("fledge/config.yaml"), config).unwrap();
        let home = folder.path().display().to_string();
        let vars = [
            ("XDG_CONFIG_HOME", home.as_str()),
            ("MINE", "m1ne-key"),
            ("ORG", "0rg-value"),
            ("OWN_VALUE", "0wn-value"),
            ("DOCS_VALUE", "d0cs-value"),
            ("URL", "x://u:url-p4ss@h"),
        ];
        let environment = EnvironmentLayer::from_vars(vars);
        let set = config::load(&environment, folder.path()).unwrap();
        let late = LateSecrets::default();
        let mask = secrets(&environment, &set, &late);
        late.add("r0tated-key");
        for secret in [
            "pr0xy-pass",
            "b3arer-word",
            "0rg-value",
            "c00kie-value",
            "arg-k3y-1",
            "arg-t0ken-2",
            "env-t0ken-3",
            "db-p4ss",
            "0123456789abcdef",
            "qu3ry-key",
            "hdr-t0ken-4",
            "0wn-value",
            "d0cs-value",
            "m1ne-key",
            "url-p4ss",
            "r0tated-key",
        ] {
            assert_eq!(mask.hidden(&format!("<{secret}>")).as_deref(), Some("<***>"), "{secret}");
        }
        assert_eq!(mask.hidden("Bearer of mcp.example, proxy, srv and --token"), None);
    }
}
