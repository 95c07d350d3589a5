//! The environment variables that a model may see when it asks in prose. They never hold a secret.

/// The variables that may be shown.
const SHOWN: [&str; 16] = [
    "CI",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "PWD",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "VIRTUAL_ENV",
    "XDG_RUNTIME_DIR",
];

/// Answers a question about one variable, or about all that are set. `env` is the environment of
/// tools: a sandbox has another home and temporary folder.
pub(super) fn describe(env: &[(String, String)], name: Option<&str>) -> String {
    let value = |name: &str| env.iter().find(|(other, _)| other == name).map(|(_, value)| value);
    let line = |name: &&str| value(name).map(|value| format!("{name}={value}"));
    match name {
        Some(name) if !SHOWN.contains(&name) => {
            format!("`{name}` is not shown here. Variables that are shown: {}", SHOWN.join(", "))
        }
        Some(name) => line(&name).unwrap_or_else(|| format!("{name} is not set")),
        None => {
            let set: Vec<String> = SHOWN.iter().filter_map(line).collect();
            format!("Variables that are set, among those shown here:\n{}", set.join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_never_holds_a_secret_is_told() {
        let env =
            [("PATH", "/bin"), ("API_KEY", "sk-1"), ("TZ", "UTC")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(describe(&env, Some("PATH")), "PATH=/bin");
        assert_eq!(describe(&env, Some("HOME")), "HOME is not set");
        assert_eq!(describe(&env, None), "Variables that are set, among those shown here:\nPATH=/bin\nTZ=UTC");
        for hidden in ["API_KEY", "NO_SUCH_KEY"] {
            assert!(describe(&env, Some(hidden)).starts_with(&format!("`{hidden}` is not shown here.")), "{hidden}");
        }
    }
}
