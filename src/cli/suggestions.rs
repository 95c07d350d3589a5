//! Suggestions for mistyped verbs and flags. Swapped letters are an example: `rnu` is nearest to
//! `run`.

use crate::verdict::shell_word;
use crate::yaml::nearest;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;
use std::path::Path;

/// Verbs that need another word, each with the default for it.
const USUAL: [(&str, &str); 10] = [
    ("batch", "list"),
    ("config", "show"),
    ("jobs", "list"),
    ("lanes", "list"),
    ("memory", "list"),
    ("models", "list"),
    ("monitors", "list"),
    ("runs", "list"),
    ("specs", "list"),
    ("worktrees", "list"),
];

/// Flags of other programs, each with the way in fledge.
const OTHER_FLAGS: [(&str, &str); 9] = [
    ("--max-turns", "in the task's front matter: `budget: { turns: 40 }`"),
    ("--max-steps", "in the task's front matter: `budget: { turns: 40 }`"),
    ("--max-tokens", "in the task's front matter: `budget: { tokens: 200000 }`"),
    ("--timeout", "in the task's front matter: `budget: { time: 30m }`"),
    ("--port", "`--listen 127.0.0.1:7777` sets address and port"),
    ("--host", "`--listen 127.0.0.1:7777` sets address and port"),
    ("--file", "name the file without a flag: `fledge run task.md`"),
    ("--task", "name the file without a flag: `fledge run task.md`"),
    ("--message", "`--prompt TEXT` gives the task as text"),
];

/// Returns the command line with the missing word of a verb like `fledge runs`, if the error may
/// come from its absence.
pub(super) fn complete_command(error: &Error, args: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand, UnknownArgument};
    if ![DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand, UnknownArgument].contains(&error.kind()) {
        return None;
    }
    let mut args: Vec<OsString> = args.collect();
    let is_value = |at: usize| ["-C", "--workspace", "--color"].iter().any(|option| args[at - 1] == *option);
    let is_word = |at: &usize| !args[*at].as_encoded_bytes().starts_with(b"-") && !is_value(*at);
    let verb = (1..args.len()).find(is_word)?;
    let (_, word) = USUAL.iter().find(|(usual, _)| args[verb] == *usual)?;
    args.insert(verb + 1, word.into());
    Some(args)
}

/// Adds a similar name to an error.
pub(super) fn add_suggestion(mut error: Error, mut command: Command) -> Error {
    command.build();
    // The usage in the error names its verb.
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let verb = usage.split_whitespace().fold(&command, |verb, word| verb.find_subcommand(word).unwrap_or(verb));
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let Some(word) = text(ContextKind::InvalidSubcommand) else { return error };
            let verbs = verb.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
            if let Some(near) = nearest(&word, verbs) {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near.to_owned()]));
                return error;
            }
            let tip = match (verb.get_name(), Path::new(&word).exists()) {
                ("fledge", true) => format!("to run it as a task: `fledge run {word}`"),
                ("fledge", false) if word.contains(' ') => {
                    format!("to run it as a task: `fledge run -p {}`", shell_word(&word))
                }
                ("lanes", _) => format!("to run the lane of this name: `fledge lanes run {word}`"),
                _ => return error,
            };
            suggest(&mut error, tip);
        }
        ErrorKind::UnknownArgument => {
            let flags: Vec<String> = verb.get_arguments().filter_map(flag).collect();
            let word = text(ContextKind::InvalidArg).unwrap_or_default();
            let near = nearest(&word, flags.iter().map(String::as_str)).filter(|_| word.starts_with("--"));
            let other = OTHER_FLAGS.iter().find(|(other, _)| *other == word);
            // clap's own suggestion can be far from the word.
            error.remove(ContextKind::SuggestedArg);
            match (verb.get_name(), near, other) {
                ("run" | "fix" | "eval" | "serve", _, Some((_, way))) => suggest(&mut error, (*way).to_owned()),
                (_, Some(near), _) => {
                    error.insert(ContextKind::SuggestedArg, ContextValue::String(near.to_owned()));
                }
                ("fledge", ..) if ["-p", "--prompt"].contains(&word.as_str()) => {
                    suggest(&mut error, "to run a task: `fledge run -p 'TEXT'`".to_owned());
                }
                ("fix", ..) if !word.starts_with('-') => {
                    suggest(&mut error, "`fledge fix` takes no task: `fledge run -p 'TEXT'`".to_owned());
                }
                _ => {}
            }
        }
        ErrorKind::MissingRequiredArgument => {
            if let Some((_, way)) = MISSING.iter().find(|(usual, _)| usage_names(&usage, usual)) {
                suggest(&mut error, (*way).to_owned());
            }
        }
        _ => {}
    }
    error
}

/// Examples for verbs that need an argument.
const MISSING: [(&str, &str); 4] = [
    ("run", "name a task file, `fledge run task.md`, or give the text, `fledge run -p 'TEXT'`"),
    ("lanes run", "`fledge lanes` lists the lanes; the usual one is `fledge lanes run verify`"),
    ("apply", "the newest run is `fledge apply last`; `fledge runs` lists all runs"),
    ("runs show", "the newest run is `fledge runs show last`; `fledge runs` lists all runs"),
];

/// Returns true if a usage line is that of this verb.
fn usage_names(usage: &str, verb: &str) -> bool {
    let rest = usage.trim_start_matches("Usage:").trim().strip_prefix("fledge ").unwrap_or_default();
    rest.strip_prefix(verb).is_some_and(|rest| rest.starts_with(' '))
}

/// Adds a tip to an error.
fn suggest(error: &mut Error, tip: String) {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
}

fn flag(argument: &clap::Arg) -> Option<String> {
    argument.get_long().filter(|_| !argument.is_hide_set()).map(|long| format!("--{long}"))
}
