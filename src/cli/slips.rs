//! What was most likely meant by an argument that there is none of: a slip like `rnu` is two letters that have changed places, which is
//! nearer to `run` than to anything else.

use crate::yaml::nearest;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;
use std::path::Path;

/// Verbs that need another word, each with the one that is meant without.
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

/// Returns the command line with the word that a verb like `fledge runs` lacks, if the error may come from that.
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

/// The same error, with what is near.
pub(super) fn named(mut error: Error, mut command: Command) -> Error {
    command.build();
    // Its usage names the verb that it is about.
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
                let tip = StyledStr::from(format!("to have an agent work on it: `fledge run {word}`"));
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
