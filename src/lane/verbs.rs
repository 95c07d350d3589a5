//! Warnings about commands that call `fledge` with a subcommand that this program does not have.
//! Existing projects may use another program of this name.

use super::draft::LaneForm;

/// The subcommands, each with its own subcommands. Names of the same subcommand are adjacent.
pub(crate) const VERBS: [(&str, &[&str]); 26] = [
    ("run", &[]),
    ("fix", &[]),
    ("eval", &[]),
    ("batch", &["list", "show"]),
    ("init", &[]),
    ("lanes", LANES),
    ("lane", LANES),
    (
        "runs",
        &["resume", "continue", "replay", "list", "show", "watch", "diff", "attest", "undo", "logs", "export", "prune"],
    ),
    ("apply", &[]),
    ("verify-report", &[]),
    ("worktrees", &["list", "clean"]),
    ("memory", &["list", "show", "add", "forget", "export"]),
    ("models", &["list", "check"]),
    ("doctor", &[]),
    ("docs", &[]),
    ("config", &["show", "path"]),
    ("serve", &["link"]),
    ("jobs", &["list", "history", "run"]),
    ("monitors", &["list", "show", "add", "checkin", "notify", "remove"]),
    ("sync", &[]),
    ("schema", &[]),
    ("completions", &[]),
    ("man", &[]),
    ("specs", SPECS),
    ("spec", SPECS),
    ("help", &[]),
];
const LANES: &[&str] = &["list", "init", "show", "validate", "run"];
const SPECS: &[&str] = &["list", "show", "check"];

/// Shell words that may precede a command.
const BEFORE: [&str; 14] =
    ["!", "if", "then", "else", "elif", "while", "until", "do", "time", "exec", "command", "nice", "nohup", "env"];

/// Returns the warning and the remedy for an unusual call of `fledge`.
pub(super) fn strange(command: &str, form: LaneForm) -> Option<(String, String)> {
    simple_commands(command).find_map(|words| of_call(&words, form))
}

fn of_call(words: &[&str], form: LaneForm) -> Option<(String, String)> {
    let is_assignment = |word: &&str| word.split_once('=').is_some_and(|(name, _)| super::condition::is_variable(name));
    let mut words = words.iter().skip_while(|word| BEFORE.contains(word) || is_assignment(word));
    let program = words.next()?;
    if *program != "fledge" {
        return None;
    }
    let is_plain = |word: &&&str| word.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
    let mut is_folder = false; // true after `-C`
    let is_name = |word: &&&str| {
        let is_name = !is_folder && !word.starts_with('-');
        is_folder = **word == "-C" || **word == "--workspace";
        is_name
    };
    let mut names = words.take_while(is_plain).filter(is_name);
    let verb = names.next()?;
    let Some((_, own)) = VERBS.iter().find(|(known, _)| known == verb) else {
        return Some(missing(verb, VERBS.iter().map(|(known, _)| *known)));
    };
    let next = names.next()?;
    if !own.is_empty() && !own.contains(next) && *next != "help" {
        return Some(missing(&format!("{verb} {next}"), own.iter().copied()));
    }
    let is_task = form == LaneForm::Toml && *verb == "run" && !next.contains(['.', '/']);
    is_task.then(|| {
        let message = format!("`fledge run {next}` hands the file `{next}` to a model, and runs no task of this name");
        (message, "name the task as a step, or in `deps` of another".to_owned())
    })
}

fn missing<'v>(verb: &str, known: impl Iterator<Item = &'v str>) -> (String, String) {
    let word = verb.rsplit(' ').next().unwrap_or(verb);
    let near = crate::yaml::nearest(word, known);
    let hint = near.map_or_else(|| "`fledge help` has the verbs".into(), |near| format!("did you mean `{near}`?"));
    (format!("`fledge {verb}` is a verb that this fledge does not have"), hint)
}

/// Splits a command line into the words of its simple commands, as far as its text shows them.
fn simple_commands(command: &str) -> impl Iterator<Item = Vec<&str>> {
    let mut quote = None;
    let is_end = move |char: char| match (quote, char) {
        (None, '\'' | '"') => {
            quote = Some(char);
            false
        }
        (None, '\n' | ';' | '&' | '|' | '(' | ')' | '{' | '}' | '`') => true,
        (Some(open), char) if open == char => {
            quote = None;
            false
        }
        (None | Some(_), _) => false,
    };
    command.split(is_end).map(|one| one.split_whitespace().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(command: &str, form: LaneForm) -> String {
        strange(command, form).map(|(message, hint)| format!("{message} ({hint})")).unwrap_or_default()
    }

    #[test]
    fn a_verb_that_this_program_does_not_have_is_strange_wherever_it_is_called() {
        let unknown = |verb: &str| format!("`fledge {verb}` is a verb that this fledge does not have");
        for (command, text) in [
            ("fledge release patch", unknown("release") + " (`fledge help` has the verbs)"),
            ("fledge lnes run ci", unknown("lnes") + " (did you mean `lanes`?)"),
            ("cargo test && CI=1 fledge changelog", unknown("changelog") + " (`fledge help` has the verbs)"),
            ("if true; then fledge -v review; fi", unknown("review") + " (`fledge help` has the verbs)"),
            ("echo a\nfledge lanes publish", unknown("lanes publish") + " (`fledge help` has the verbs)"),
            ("fledge spec chekc --strict", unknown("spec chekc") + " (did you mean `check`?)"),
        ] {
            assert_eq!(usage(command, LaneForm::Yaml), text, "{command}");
        }
        for fine in [
            "fledge spec check --strict && fledge specs list",
            "fledge lanes run ci --ni",
            "fledge lane run ci",
            "fledge --version",
            "fledge run task.md",
            "fledge \"$VERB\"",
            "echo 'a; fledge release'",
            "my-fledge release",
            "fledge memory forget 3",
            "fledge -C web lanes run ci",
        ] {
            assert_eq!(usage(fine, LaneForm::Toml), "", "{fine}");
        }
    }

    #[test]
    fn a_task_that_another_fledge_would_run_is_told() {
        let text = "`fledge run lint` hands the file `lint` to a model, and runs no task of this name (name the task as a step, or in `deps` of another)";
        assert_eq!(usage("fledge run lint", LaneForm::Toml), text);
        assert_eq!(usage("fledge run lint", LaneForm::Yaml), "");
    }
}
