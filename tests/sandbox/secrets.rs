//! Tests that secrets do not leak: a run tries everything to spread the operator's secrets. No
//! secret, in any encoding, reaches its journal, events, logs, reports, output or model.

use crate::support::{Ended, Fledge, Model, Need, amount, call, say, shell, write};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

/// Returns the secret of this number. It has 24 bytes, so its base64 needs no padding.
pub(crate) fn canary(number: usize) -> String {
    format!("canary-{number:02}/5f1d+7c20b9e84a")[..24].to_owned()
}

/// The paths in the home of the canaries from number 2 on.
const FILES: [&str; 9] = [
    ".netrc",
    ".npmrc",
    ".cargo/credentials.toml",
    ".aws/credentials",
    ".ssh/id_ed25519",
    ".config/gh/hosts.yml",
    ".docker/config.json",
    ".config/fledge/notes",
    ".git-credentials",
];
const PROVIDERS_KEY: usize = 0;
const OWN_KEY: usize = 1;
const HEADER: usize = 2 + FILES.len();
const OTHER_PROCESS: usize = HEADER + 1;
const COUNT: usize = OTHER_PROCESS + 1;

/// A process of the user with a secret in its environment.
struct Neighbour(Child);

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _it_has_ended = self.0.kill();
        let _it_is_gone = self.0.wait();
    }
}

/// Returns a command that searches for secrets everywhere.
fn spying(home: &Path) -> String {
    let home = home.display();
    let files: Vec<String> = FILES.iter().map(|file| format!("{home}/{file} $HOME/{file}")).collect();
    format!(
        "env; cat /proc/*/environ | tr '\\0' '\\n'; cat {} {home}/.config/fledge/config.yaml; grep -rs canary {home} ~; \
         for f in {}; do base64 $f; od -An -tx1 $f; done; true",
        files.join(" "),
        files.join(" "),
    )
}

/// Returns a file with a secret in each encoding.
pub(crate) fn dressed(secret: &str) -> String {
    let (head, tail) = secret.split_at(11);
    let [_, base64, hex, url] = dresses(secret);
    format!("raw {secret}\nsplit {head}\n{tail}\nbase64 {base64}\nhex {hex}\nurl {url}\n")
}

/// Returns the secret raw, in base64, in hex and URL-encoded.
fn dresses(secret: &str) -> [String; 4] {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let three = |bytes: &[u8]| bytes.iter().fold(0, |sum: usize, byte| sum << 8 | usize::from(*byte));
    let four = |sum: usize| [18, 12, 6, 0].map(|by| char::from(LETTERS[sum >> by & 63]));
    let base64 = secret.as_bytes().chunks(3).flat_map(|bytes| four(three(bytes))).collect();
    let hex = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    [secret.to_owned(), base64, hex, secret.replace('/', "%2F").replace('+', "%2B")]
}

/// Insists that a text has no canary, even after white space is removed.
#[track_caller]
pub(crate) fn must_be_clean(place: &str, text: &[u8]) {
    let text = String::from_utf8_lossy(text).replace("\\n", "");
    let squeezed: String = text.split_whitespace().collect();
    for number in 0..COUNT {
        for dress in dresses(&canary(number)) {
            let found = squeezed.find(&dress);
            assert!(
                found.is_none(),
                "canary {number} as {dress} is in {place}: {:?}",
                found.map(|at| { squeezed.get(at.saturating_sub(80)..at + 60).unwrap_or_default().to_owned() })
            );
        }
    }
}

fn must_be_clean_below(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "checkouts" => {} // the files of the base, which git has too
            true => must_be_clean_below(&path),
            false => must_be_clean(&path.display().to_string(), &fs::read(&path).unwrap()),
        }
    }
}

fn scene(model: &Model) -> Fledge {
    let fledge = Fledge::new().task("Make the file `done`.").anthropic(model);
    let home = fledge.workspace().parent().unwrap().join("home");
    let lane = format!("steps:\n  - name: spy\n    run: |\n      {}\n      test -f done\n", spying(&home));
    let config = format!(
        "default_model: claude\nmodels:\n  claude:\n    provider: anthropic\n    model: scripted\n    headers: {{ x-team: {} }}\n",
        canary(HEADER)
    );
    let files = FILES.iter().enumerate();
    let fledge =
        files.fold(fledge, |fledge, (at, file)| fledge.file(&format!("../home/{file}"), canary(at + 2) + "\n"));
    fledge
        .lane("verify", &lane)
        .file("../home/.config/fledge/config.yaml", config)
        .file("notes.txt", dressed(&canary(PROVIDERS_KEY)) + &dressed(&canary(HEADER)) + &dressed(&canary(OWN_KEY)))
        .env("ANTHROPIC_API_KEY", &canary(PROVIDERS_KEY))
        .env("DEPLOY_TOKEN", &canary(OWN_KEY))
        .args(&["run", "task.md", "--report", "../report.json", "-vv"])
}

fn turns(home: &Path) -> Vec<crate::support::Turn> {
    let own = canary(PROVIDERS_KEY);
    vec![
        shell(&spying(home)),
        shell("cat notes.txt; base64 notes.txt; printf 'canary-0'; sleep 0.05; tail -c +13 notes.txt"),
        call("files-read", json!({"path": "notes.txt"})),
        call("search-grep", json!({"pattern": "canary"})),
        call("files-read", json!({"path": "../home/.netrc"})),
        call("files-read", json!({"path": "/proc/self/environ"})),
        call("memory-store", json!({"text": format!("the key is {own}")})),
        call("memory-recall", json!({"query": "key"})),
        say(&format!("It is {own}, is it not?")),
        write("done", "yes\n").saying(&dressed(&own)),
        say(&format!("Done by {own}.")),
    ]
}

#[track_caller]
fn must_be_clean_all_over(ended: &Ended, model: &Model) {
    must_be_clean("standard output", ended.stdout.as_bytes());
    must_be_clean("standard error", ended.stderr.as_bytes());
    let state = ended.run_folder().ancestors().nth(3).unwrap().to_owned();
    must_be_clean_below(&state);
    must_be_clean("the report", &fs::read(state.with_file_name("report.json")).unwrap());
    for asked in model.asked() {
        must_be_clean("what the model was sent", asked.text.as_bytes());
        assert_eq!(asked.headers["x-api-key"], canary(PROVIDERS_KEY));
        assert_eq!(asked.headers["x-team"], canary(HEADER));
        for (name, value) in asked.headers.iter().filter(|(name, _)| !["x-api-key", "x-team"].contains(&name.as_str()))
        {
            must_be_clean(name, value.as_bytes());
        }
    }
}

#[test]
fn a_run_that_tries_everything_spreads_no_secret_in_any_dress() {
    long_test!();
    let _neighbour = Neighbour(Command::new("sleep").arg("600").env("OTHER", canary(OTHER_PROCESS)).spawn().unwrap());
    let all: &[bool] = amount(&[true], &[true, false]);
    for json in all {
        let (model, fledge) = spied(turns);
        let ended = if *json { fledge.arg("--json") } else { fledge }.run();
        let report = ended.must_be(0, "verified");
        if report["sandbox"] != "bubblewrap" {
            Need::Sandbox.lacks("bubblewrap does not work here, and no other sandbox hides all secrets");
            return;
        }
        assert_eq!((model.count(), report["attempts"].as_array().unwrap().len()), (11, 2), "{}", ended.story());
        assert!(model.asked()[3].newest().contains("raw ***"), "the file was not read: {}", model.asked()[3].newest());
        must_be_clean_all_over(&ended, &model);
    }
}

#[test]
fn without_a_wall_the_same_would_get_at_them_but_not_at_what_fledge_knows() {
    let (model, fledge) = spied(|home| vec![shell(&spying(home)), say("Done.")]);
    fledge.args(&["run", "task.md", "--no-verify", "--sandbox=off"]).run().must_be(0, "skipped");
    let told = model.asked()[1].newest();
    assert!(told.contains(&canary(2)), "it does not even try: {told}");
    for known in [PROVIDERS_KEY, OWN_KEY, HEADER] {
        assert!(!told.contains(&canary(known)), "{told}");
    }
}

#[test]
fn a_secret_that_is_too_plain_to_be_masked_is_named() {
    let model = Model::new([say("They are qzxvkjwpmtrlbnfd, p@ss1!x and tuesday.")]);
    let fledge = Fledge::simple(&model).task("---\nlane: false\n---\nSay it.").env("SMTP_PASSWORD", "qzxvkjwpmtrlbnfd");
    let ended = fledge.env("DB_PASSWORD", "p@ss1!x").env("ROOM_KEY", "tuesday").run();
    let report = ended.must_be(0, "skipped");
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("`ROOM_KEY` is too simple to mask"), "{warnings}");
    assert!(!warnings.contains("SMTP_PASSWORD") && !warnings.contains("DB_PASSWORD"), "{warnings}");
    let told = ended.traces();
    for known in ["qzxvkjwpmtrlbnfd", "p@ss1!x"] {
        assert!(!told.contains(known), "{known} is somewhere");
    }
}

/// Returns a run and a model whose script depends on the path of the home. The path is known only
/// after the folder is made.
fn spied(script: impl FnOnce(&Path) -> Vec<crate::support::Turn> + Send + 'static) -> (Model, Fledge) {
    let (tell, told) = std::sync::mpsc::channel::<std::path::PathBuf>();
    let (mut script, mut turns) = (Some(script), Vec::new());
    let model = Model::thinking(move |_, count| {
        if let Some(script) = script.take() {
            turns = script(&told.recv().unwrap());
        }
        (turns.get(count - 1).cloned(), count)
    });
    let fledge = scene(&model);
    tell.send(fledge.workspace().parent().unwrap().join("home")).unwrap();
    (model, fledge)
}

#[test]
fn stored_logs_of_lane_steps_contain_no_known_secret_and_only_the_owner_reads_them() {
    use crate::support::{KEY, needs};
    use std::os::unix::fs::PermissionsExt as _;
    let model = Model::new([write("done", "x"), say("Done.")]);
    let lane = format!("{}  - {{ name: tells, run: cat leak }}\n", needs("done"));
    let place = Fledge::simple(&model).lane("verify", &lane).file("leak", format!("before {KEY} after\n"));
    let ended = place.run();
    ended.must_be(0, "verified");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&ended.run_folder()), ended.run_folder().join("gate").is_file()), (0o700, true));
    let logs = |folder: &Path| -> String {
        let files = walkdir::WalkDir::new(folder).into_iter().flatten().filter(|entry| entry.file_type().is_file());
        files.map(|entry| fs::read_to_string(entry.path()).unwrap()).collect()
    };
    let own = logs(&ended.run_folder().join("logs"));
    assert!(own.contains("before *** after") && !own.contains(KEY), "{own}");
    let project = ended.run_folder().ancestors().nth(2).unwrap().to_owned();
    let by_hand = ended.again(&["lanes", "run", "verify", "--ni"]).env("ANTHROPIC_API_KEY", KEY).run();
    by_hand.must_exit(0);
    let hand = logs(&project.join("lanes"));
    assert!(hand.contains("before *** after") && !hand.contains(KEY), "{hand}");
}
