//! Suggestions for mistyped verbs and flags. Swapped letters are an example: `rnu` is nearest to
//! `run`.

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

/// Returns the command line with the missing word of a verb like `fledge runs`, if the error may
/// come from its absence.
pub(super) fn completed(error: &Error, args: impl Iterator<Item = OsString>) -> Option<Vec<OsString>> {
    use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand, UnknownArgument};
    if ![DisplayHelpOnMissingArgumentOrSubcommand, MissingSubcommand, UnknownArgument].contains(&error.kind()) {
        return None;
    }
    let mut args: Vec<OsString> = args.collect();
    let is_value = |at: usize| args[at - 1] == "-C" || args[at - 1] == "--workspace";
    let is_word = |at: &usize| !args[*at].as_encoded_bytes().starts_with(b"-") && !is_value(*at);
    let verb = (1..args.len()).find(is_word)?;
    let (_, word) = USUAL.iter().find(|(usual, _)| args[verb] == *usual)?;
    args.insert(verb + 1, word.into());
    Some(args)
}

/// Adds a similar name to an error.
pub(super) fn named(mut error: Error, mut command: Command) -> Error {
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
            } else if Path::new(&word).exists() && command.get_name() == verb.get_name() {
                let tip = StyledStr::from(format!("to run it as a task: `fledge run {word}`"));
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            }
        }
        ErrorKind::UnknownArgument => {
            let flags: Vec<String> = verb.get_arguments().filter_map(flag).collect();
            let near = text(ContextKind::InvalidArg).filter(|word| word.starts_with("--"));
            let near = near.and_then(|word| nearest(&word, flags.iter().map(String::as_str)).map(str::to_owned));
            if let Some(near) = near {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(near));
            }
        }
        _ => {}
    }
    error
}

fn flag(argument: &clap::Arg) -> Option<String> {
    argument.get_long().filter(|_| !argument.is_hide_set()).map(|long| format!("--{long}"))
}
