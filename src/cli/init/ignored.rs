//! Ignored files that a check reads. The lane includes those that neither may hold secrets nor may
//! be built from the sources; remarks tell of the others.

use super::super::failure::CliError;
use super::super::lane_trial::RoomResult;
use super::super::paint::say;
use super::trial::{LaneFile, say_place};
use crate::gate::Policy;
use crate::lane::detect::{DETECTED_LANE, DetectedLane};
use crate::verdict::{StepReport, StepStatus};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Tries of the checks with more ignored files.
const MOST_TRIES: usize = 3;
/// Bytes at the start of a file in which fledge looks for secrets and for binary data.
const START: u64 = 1 << 18;
/// Extensions of files that hold keys.
const KEYS: [&str; 10] = ["pem", "key", "p12", "pfx", "jks", "keystore", "asc", "gpg", "tfvars", "kdbx"];
/// Parts of names of files and folders that hold secrets, in lower case.
const SECRETS: [&str; 16] = [
    "secret",
    "credential",
    "password",
    "passwd",
    "id_rsa",
    "id_ecdsa",
    "id_ed25519",
    "keystore",
    "npmrc",
    "netrc",
    "pypirc",
    "pgpass",
    "kubeconfig",
    "service-account",
    "service_account",
    "tfvars",
];
/// Words of secrets that count only as whole words.
const SECRET_WORDS: [&str; 4] = ["token", "tokens", "auth", "htpasswd"];
/// Words before the value of a secret, in lower case.
const VALUED: [&str; 7] = ["token", "secret", "password", "passwd", "apikey", "api_key", "api-key"];
/// Extensions of variable files for tests, which hold no real secrets.
const FOR_TESTS: [&str; 6] = ["test", "testing", "ci", "example", "sample", "template"];

/// The kind of an ignored file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IgnoredKind {
    /// Settings and other text.
    Plain,
    /// May hold secrets.
    Secret,
    /// May be built from the sources: an old file would be judged in place of the work.
    Built,
}

/// Adds plain ignored files to the lane if a check reads them, passes by hand, and fails in the
/// room. Then tries the checks in the room again, at most [`MOST_TRIES`] times. Adds remarks on
/// other ignored files to the lane.
pub(super) async fn include(
    file: &mut LaneFile<'_>,
    detected: &mut DetectedLane,
    by_hand: &[StepReport],
    mut room: RoomResult,
) -> Result<RoomResult, CliError> {
    for _ in 0..MOST_TRIES {
        let lacked = lacked(by_hand, &room);
        let mut is_new = false;
        for (step, path) in lacked.iter().filter(|(_, path)| kind(file.root, path) == IgnoredKind::Plain) {
            is_new |= detected.include(path, step);
        }
        if !is_new || !file.amend(detected).await? {
            break;
        }
        say_place("in a clean room with the ignored files that they read");
        room = file.trial.in_room(DETECTED_LANE).await?;
    }
    let ended = room.steps.as_deref().unwrap_or_default();
    detected.keep_included(|name| ended.iter().any(|step| step.step == name && !step.status.is_failure()));
    let included: Vec<&str> = detected.included().collect();
    if !included.is_empty() {
        let paths = included.join(", ");
        say(&[format!(
            "the checks read files that git ignores, so the lane has `include_ignored: [{paths}]`: rooms get these \
            files as they were before the agent"
        )]);
    }
    for (step, path) in lacked(by_hand, &room) {
        detected.remarks.extend(remark(&step, &path, kind(file.root, &path)));
    }
    Ok(room)
}

/// Returns the steps that pass by hand and fail in the room, each with an ignored path that it
/// names.
fn lacked(by_hand: &[StepReport], room: &RoomResult) -> Vec<(String, String)> {
    let has_passed = |name: &str| by_hand.iter().any(|it| it.step == name && it.status == StepStatus::Passed);
    let steps = room.lacked.iter().filter(|(step, _)| has_passed(step));
    steps.flat_map(|(step, paths)| paths.iter().map(|path| (step.clone(), path.clone()))).collect()
}

/// Returns the reason why a path was not included.
fn remark(step: &str, path: &str, kind: IgnoredKind) -> Option<String> {
    let start = format!("`{step}` fails in a clean room, which lacks `{path}` because git ignores it");
    match kind {
        IgnoredKind::Plain => None,
        IgnoredKind::Secret => Some(format!(
            "{start}: it may hold secrets, so fledge did not include it; add `include_ignored: [{path}]` if the \
            checks may read it"
        )),
        IgnoredKind::Built => Some(format!(
            "{start}: build it in an earlier step, or add `include_ignored: [{path}]` if it does not depend on the \
            sources"
        )),
    }
}

fn kind(root: &Path, path: &str) -> IgnoredKind {
    let file = root.join(path);
    let start = start(&file);
    if path.to_lowercase().split('/').any(is_secret_name) || start.as_deref().is_some_and(holds_secret) {
        return IgnoredKind::Secret;
    }
    let is_started = file.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
    let is_text = start.is_some_and(|start| !start.contains(&0));
    if is_started || Policy::is_source(path) || !is_text { IgnoredKind::Built } else { IgnoredKind::Plain }
}

/// Returns true if a part of a path, in lower case, is a name for secrets.
fn is_secret_name(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap_or_default();
    let is_env = (name.starts_with(".env") && !FOR_TESTS.contains(&ending)) || name.ends_with(".env");
    let is_local = name.contains("settings") && name.contains("local");
    let mut words = name.split(|char: char| !char.is_alphanumeric());
    is_env
        || is_local
        || KEYS.contains(&ending)
        || SECRETS.iter().any(|part| name.contains(part))
        || words.any(|word| SECRET_WORDS.contains(&word))
}

/// Returns true if a text has a private key, or a value after a word for secrets: `API_TOKEN=x`,
/// `"password": "x"`.
fn holds_secret(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let is_valued = |after: &str| {
        // The name may continue, as in `SECRET_KEY`.
        let after = after.trim_start_matches(|char: char| char.is_alphanumeric() || char == '_' || char == '-');
        let after = after.trim_start().trim_start_matches(['"', '\'']).trim_start();
        let value = after.strip_prefix([':', '=']).map(|value| value.trim_start_matches([' ', '\t']));
        value.is_some_and(|value| value.starts_with(|char: char| !char.is_whitespace()))
    };
    let has_value = |word: &&str| text.match_indices(*word).any(|(at, _)| is_valued(&text[at + word.len()..]));
    text.contains("private key") || VALUED.iter().any(has_value)
}

/// Returns the beginning of a file; `None` if it is not a readable file.
fn start(file: &Path) -> Option<Vec<u8>> {
    let mut start = Vec::new();
    file.is_file().then_some(())?;
    File::open(file).ok()?.take(START).read_to_end(&mut start).ok()?;
    Some(start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::temp_dir;
    use std::fs::{Permissions, create_dir, set_permissions, write};

    #[test]
    fn neither_secrets_nor_what_is_built_is_taken_for_a_plain_file() {
        let root = temp_dir();
        create_dir(root.path().join("dist")).unwrap();
        for name in ["config.local.json", ".env.test", ".env", ".env.local", "tls.pem", "Secrets.yaml", "app", "gen.py"]
        {
            write(root.path().join(name), "a=1\n").unwrap();
        }
        write(root.path().join("model.bin"), [0, 1]).unwrap();
        set_permissions(root.path().join("app"), Permissions::from_mode(0o755)).unwrap();
        for (path, is) in [
            ("config.local.json", IgnoredKind::Plain),
            (".env.test", IgnoredKind::Plain),
            (".env", IgnoredKind::Secret),
            (".env.local", IgnoredKind::Secret),
            ("tls.pem", IgnoredKind::Secret),
            ("Secrets.yaml", IgnoredKind::Secret),
            ("app", IgnoredKind::Built),
            ("gen.py", IgnoredKind::Built),
            ("dist", IgnoredKind::Built),
            ("model.bin", IgnoredKind::Built),
        ] {
            assert_eq!(kind(root.path(), path), is, "{path}");
        }
    }

    #[test]
    fn secrets_are_known_by_each_part_of_a_path_and_by_what_a_file_holds() {
        for path in [
            "app.env",
            "service-account.json",
            "kubeconfig",
            ".pypirc",
            "conf/.netrc",
            "token.txt",
            "auth.json",
            ".htpasswd",
            "local.settings.json",
            "settings.local.json",
            "prod.tfvars",
            "Secrets.d/x",
        ] {
            assert!(path.to_lowercase().split('/').any(is_secret_name), "{path}");
        }
        for path in ["config.local.json", "author.json", "tokenizer.json", "settings.json", ".env.ci", "env/a.txt"] {
            assert!(!path.split('/').any(is_secret_name), "{path}");
        }
        let root = temp_dir();
        for (text, is) in [
            ("API_TOKEN=sk-live", IgnoredKind::Secret),
            ("{ \"password\" : \"x\" }", IgnoredKind::Secret),
            ("api-key: x", IgnoredKind::Secret),
            ("SECRET_KEY = 'x'", IgnoredKind::Secret),
            ("-----BEGIN RSA PRIVATE KEY-----", IgnoredKind::Secret),
            ("API_TOKEN=\nA=1", IgnoredKind::Plain),
            ("the password is not here", IgnoredKind::Plain),
        ] {
            write(root.path().join("plain.txt"), text).unwrap();
            assert_eq!(kind(root.path(), "plain.txt"), is, "{text}");
        }
    }
}
