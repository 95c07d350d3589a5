//! `fledge completions` and `fledge man`: what shells and `man` know of the verbs, made of the table that parses them.

use super::failure::Failure;
use super::paint::{self, Tone};
use super::{no_output, print_bytes};
use crate::store::write_shared;
use anyhow::{Context, anyhow};
use clap::{Args, Command};
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Arguments of `fledge completions`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge completions bash > ~/.local/share/bash-completion/completions/fledge\n  \
    fledge completions zsh > ~/.zfunc/_fledge\n  fledge completions fish > ~/.config/fish/completions/fledge.fish")]
pub(super) struct CompletionArguments {
    /// The shell: bash, zsh, fish, elvish, powershell
    shell: Shell,
}

/// Arguments of `fledge man`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  fledge man | man -l -\n  fledge man lanes run | man -l -\n  fledge man --out ~/.local/share/man/man1"
)]
pub(super) struct ManArguments {
    /// The verb whose page is printed; the first page where none is named
    verb: Vec<String>,
    /// Write all pages to this folder, one a verb, instead of printing one
    #[arg(long, value_name = "DIR", conflicts_with = "verb")]
    out: Option<PathBuf>,
}

/// Prints the completions; gives the exit code.
///
/// # Errors
/// When standard output cannot be written.
pub(super) fn complete(arguments: &CompletionArguments, mut program: Command) -> Result<u8, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut program, "fledge", &mut script);
    print_bytes(&script).map_err(no_output).map(|()| 0)
}

/// Prints a page, or writes them all; gives the exit code.
///
/// # Errors
/// A verb that is not there, a folder that cannot be written, or standard output that cannot.
pub(super) fn man(arguments: &ManArguments, mut program: Command) -> Result<u8, Failure> {
    program.build(); // so that each verb knows its whole name
    match &arguments.out {
        Some(folder) => write_all(folder, &program),
        None => {
            print_bytes(&page(of(&program, &arguments.verb)?).map_err(Failure::own)?).map_err(no_output).map(|()| 0)
        }
    }
}

/// The verb of these words.
fn of<'c>(program: &'c Command, words: &[String]) -> Result<&'c Command, Failure> {
    words.iter().try_fold(program, |verb, word| {
        let near = || {
            let known: Vec<&str> = shown(verb).map(Command::get_name).collect();
            match crate::yaml::nearest(word, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if known.is_empty() => format!("`{}` has no verbs of its own", verb.get_name()),
                None => format!("there are: {}", known.join(", ")),
            }
        };
        shown(verb)
            .find(|own| own.get_name() == word)
            .ok_or_else(|| Failure::input(anyhow!("there is no verb `{word}` ({})", near())))
    })
}

/// Those that people are told of.
fn shown(verb: &Command) -> impl Iterator<Item = &Command> {
    verb.get_subcommands().filter(|own| !own.is_hide_set() && own.get_name() != "help")
}

fn page(verb: &Command) -> Result<Vec<u8>, anyhow::Error> {
    let mut page = Vec::new();
    let name = verb.get_display_name().unwrap_or(verb.get_name()).to_owned();
    let verb = verb.clone().display_name(&name);
    clap_mangen::Man::new(verb).title(name).render(&mut page).context("the page cannot be made")?;
    Ok(page)
}

fn write_all(folder: &Path, program: &Command) -> Result<u8, Failure> {
    let made = std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()));
    made.map_err(Failure::input)?;
    let mut left = vec![program];
    let mut written = 0_usize;
    while let Some(verb) = left.pop() {
        let name = verb.get_display_name().unwrap_or(verb.get_name());
        let path = folder.join(format!("{name}.1"));
        let text = String::from_utf8(page(verb).map_err(Failure::own)?).map_err(Failure::own)?;
        write_shared(&path, text.as_bytes())
            .with_context(|| format!("cannot write {}", path.display()))
            .map_err(Failure::input)?;
        written += 1;
        left.extend(shown(verb));
    }
    paint::line(&[
        (Tone::Good, &format!("wrote {written} pages")),
        (Tone::Plain, &format!(" to {}", folder.display())),
    ]);
    Ok(0)
}
