//! `fledge completions` and `fledge man`: shell completions and manual pages, generated from the
//! command-line parser.

use super::failure::CliError;
use super::output::{no_output, print_bytes};
use super::paint::{self, Tone};
use crate::store::write_shared;
use anyhow::{Context, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge completions bash > ~/.local/share/bash-completion/completions/fledge\n  \
    fledge completions zsh > ~/.zfunc/_fledge\n  fledge completions fish > ~/.config/fish/completions/fledge.fish")]
pub(super) struct CompletionArguments {
    /// The shell
    shell: Shell,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge man | man -l -\n  fledge man lanes run | man -l -\n  fledge man --out ~/.local/share/man/man1"
)]
pub(super) struct ManArguments {
    /// Print the page of this verb [default: fledge itself]
    verb: Vec<String>,
    /// Write all pages to this folder, one per verb, instead of printing one
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

/// Prints a completion script; returns the exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn complete(arguments: &CompletionArguments, mut program: Command) -> Result<u8, CliError> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "fledge", &mut script);
    print_bytes(&script).map_err(no_output).map(|()| 0)
}

/// Prints a page or writes all pages; returns the exit code.
///
/// # Errors
/// When the verb does not exist, or the folder or standard output cannot be written.
pub(super) fn man(arguments: &ManArguments, mut program: Command) -> Result<u8, CliError> {
    program.build(); // sets the full names of verbs
    match &arguments.out {
        Some(folder) => write_all(folder, &program),
        None => print_bytes(&page(find_verb(&program, &arguments.verb)?).map_err(CliError::own)?)
            .map_err(no_output)
            .map(|()| 0),
    }
}

/// Returns the verb with this path of names.
fn find_verb<'c>(program: &'c Command, words: &[String]) -> Result<&'c Command, CliError> {
    words.iter().try_fold(program, |verb, word| {
        let near = || {
            let known: Vec<&str> = shown(verb).map(Command::get_name).collect();
            match crate::yaml::nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => format!("`{}` has no subcommands", verb.get_name()),
                None => format!("expected one of: {}", known.join(", ")),
            }
        };
        shown(verb)
            .find(|own| own.get_name() == word)
            .ok_or_else(|| CliError::input(anyhow!("unknown command `{word}` ({})", near())))
    })
}

/// Returns the visible verbs.
fn shown(verb: &Command) -> impl Iterator<Item = &Command> {
    verb.get_subcommands().filter(|own| !own.is_hide_set() && own.get_name() != "help")
}

fn page(verb: &Command) -> Result<Vec<u8>, anyhow::Error> {
    let mut page = Vec::new();
    let name = verb.get_display_name().unwrap_or(verb.get_name()).to_owned();
    let verb = verb.clone().display_name(&name);
    clap_mangen::Man::new(verb).title(name).render(&mut page).context("cannot create the page")?;
    Ok(page)
}

fn write_all(folder: &Path, program: &Command) -> Result<u8, CliError> {
    let made =
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()));
    made.map_err(CliError::input)?;
    let mut left = vec![program];
    let mut written = 0_usize;
    while let Some(verb) = left.pop() {
        let name = verb.get_display_name().unwrap_or(verb.get_name());
        let path = folder.join(format!("{name}.1"));
        let text = String::from_utf8(page(verb).map_err(CliError::own)?).map_err(CliError::own)?;
        write_shared(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(CliError::input)?;
        written += 1;
        left.extend(shown(verb));
    }
    paint::line(&[
        (Tone::Good, &format!("wrote {written} pages")),
        (Tone::Plain, &format!(" to {}", folder.display())),
    ]);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Arguments;
    use clap::{CommandFactory, Parser};

    /// Returns every verb below the program with its path and the text after its help.
    fn verbs(verb: &Command, words: &[String]) -> Vec<(Vec<String>, String)> {
        let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
        let below = shown(verb).flat_map(|verb| verbs(verb, &[words, &[verb.get_name().to_owned()]].concat()));
        // The program's own help shows its exit codes there.
        let own = (words.len() > 1).then(|| (words.to_vec(), help));
        own.into_iter().chain(below).collect()
    }

    /// Splits a shell line into commands and words, well enough for examples.
    fn commands(line: &str) -> Vec<Vec<String>> {
        let (mut all, mut word, mut quote) = (vec![Vec::new()], String::new(), None);
        for c in line.chars().chain([' ']) {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => quote = Some(c),
                (' ', None) if ["|", "&&"].contains(&word.as_str()) => {
                    all.push(Vec::new());
                    word.clear();
                }
                (' ', None) => {
                    let word = std::mem::take(&mut word);
                    all.last_mut().unwrap().extend((!word.is_empty()).then_some(word));
                }
                (c, _) => word.push(c),
            }
        }
        // Redirections are not arguments of the program.
        let ends =
            |words: &Vec<String>| words.iter().position(|word| word == ">" || word == "<").unwrap_or(words.len());
        all.iter().map(|words| words[..ends(words)].to_vec()).collect()
    }

    #[test]
    fn every_verb_shows_examples_and_each_is_a_command_line_of_that_verb() {
        let mut program = Arguments::command();
        program.build();
        for (words, help) in verbs(&program, &["fledge".to_owned()]) {
            let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("{words:?} has no examples"));
            let lines = examples.lines().take_while(|line| line.starts_with("  "));
            let told: Vec<Vec<String>> =
                lines.flat_map(commands).filter(|c| c.first().is_some_and(|w| w == "fledge")).collect();
            assert!(!told.is_empty(), "{words:?} has no examples");
            for command in told {
                assert!(command.starts_with(&words), "{command:?} is no example of {words:?}");
                let parsed = Arguments::try_parse_from(&command).map_err(|error| error.to_string());
                assert!(parsed.is_ok(), "{command:?}: {}", parsed.unwrap_err());
            }
        }
    }
}
