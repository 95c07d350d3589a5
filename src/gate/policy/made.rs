//! The shell commands behind a command: scripts that it runs, and recipes of `make`. Pure.

use super::calls::{run_by, without_places};
use super::makefiles::{self, starts_make};
use super::named::{has_script_extension, inside, text};
use std::collections::BTreeSet;

/// The names of a Makefile, in the order in which `make` looks for them.
const MAKEFILES: [&str; 3] = ["GNUmakefile", "makefile", "Makefile"];
/// The maximum number of `make` commands of a CI file that are followed, and the maximum number of
/// files of a Makefile that are read.
const MOST_MADE: usize = 100;
/// Options with which `make` builds nothing.
const SAYS_OF_ITSELF: [&str; 4] = ["--version", "-v", "--help", "-h"];

/// Reads a file.
type Read<'r> = &'r mut dyn FnMut(&str) -> Option<Vec<u8>>;

/// Returns the shell scripts that a command runs and the recipes that it makes, each with the path
/// of its file. `dir` is the folder of the command.
pub(in crate::gate) fn shell_texts(command: &str, dir: Option<&str>, read: Read<'_>) -> Vec<(String, String)> {
    let folder = dir.and_then(|dir| inside("", dir)).unwrap_or_default();
    let mut run = run_by(&format!("{folder}/-"), command, &mut |path| read(path).is_some(), |_| true);
    run.dedup();
    let mut found = recipes(command, &BTreeSet::from([folder]), "$", read);
    for path in run {
        let Some(text) = text(&path, read) else { continue };
        let first = text.lines().next().unwrap_or_default();
        if has_script_extension(&path) || (first.starts_with("#!") && first.trim_end().ends_with("sh")) {
            found.push((path, text));
        }
    }
    found
}

/// Returns the words of a command, without quotes and brackets around them.
fn plain_words(command: &str) -> Vec<&str> {
    let words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'', '(', ')', '`']));
    words.filter(|word| !word.is_empty()).collect()
}

/// Returns whether a word may precede the program of a command.
fn is_before_a_command(word: &str) -> bool {
    const STARTERS: [&str; 15] =
        ["sudo", "env", "time", "exec", "nice", "nohup", "then", "do", "else", "!", "(", "{", "sh", "bash", "-"];
    STARTERS.contains(&word) || matches!(word, "-c" | "-e" | "-ec" | "-lc" | "-E") || word.contains('=')
}

/// Returns the recipes of the targets that commands build in these folders, each with the path of
/// its Makefile. `unknown` replaces what only `make` can evaluate.
pub(super) fn recipes(
    commands: &str,
    folders: &BTreeSet<String>,
    unknown: &str,
    read: Read<'_>,
) -> Vec<(String, String)> {
    let commands = commands.split(['\n', ';', '|', '&']).map(plain_words);
    let made = commands.filter_map(|words| words.iter().position(|word| starts_make(word)).map(|at| (words, at)));
    let made = made.filter(|(words, at)| words[..*at].iter().all(|word| is_before_a_command(word)));
    let made = made.map(|(words, at)| words[at + 1..].to_vec());
    let mut found = Vec::new();
    for command in made.take(MOST_MADE).filter(|words| !words.iter().any(|word| SAYS_OF_ITSELF.contains(word))) {
        let entered = command.windows(2).find(|pair| matches!(pair[0], "-C" | "--directory")).map(|pair| pair[1]);
        let below = folders.iter().filter_map(|folder| inside(folder, entered.unwrap_or(".")));
        let mut makefile = |folder: String| {
            let mut named = MAKEFILES.iter().filter_map(|name| inside(&folder, name));
            named.find(|path| read(path).is_some()).map(|path| (path.clone(), with_included(&path, read)))
        };
        let texts: Vec<(String, String)> = below.filter_map(&mut makefile).collect();
        let of = |asked: &BTreeSet<&str>| -> Vec<(String, String)> {
            let all = texts
                .iter()
                .map(|(path, text)| (path.clone(), without_places(&makefiles::recipes(text, asked, unknown))));
            all.filter(|(_, recipes)| !recipes.is_empty()).collect()
        };
        let is_target = |(at, word): (usize, &&str)| {
            let is_value = at > 0 && matches!(command[at - 1], "-C" | "--directory" | "-f" | "--file" | "--makefile");
            !is_value && !word.starts_with('-') && !word.contains(['=', '$']) && word.parse::<u32>().is_err()
        };
        // Without a target, `make` builds the first one. A target in a variable is unknown and
        // counts as none.
        let has_target = command.iter().enumerate().any(is_target);
        found.extend(of(&if has_target { command.iter().copied().collect() } else { BTreeSet::new() }));
    }
    found
}

/// Returns a Makefile joined with the files that it includes by a plain name.
fn with_included(makefile: &str, read: Read<'_>) -> String {
    let (mut whole, mut open, mut seen) = (String::new(), vec![makefile.to_owned()], BTreeSet::new());
    while let Some(path) = open.pop().filter(|_| seen.len() < MOST_MADE) {
        let Some(text) = text(&path, read).filter(|_| seen.insert(path.clone())) else { continue };
        open.extend(makefiles::included(&path, &text));
        whole.push_str(&text);
        whole.push('\n');
    }
    whole
}
