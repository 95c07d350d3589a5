//! The programs that scripts name: interpreters, and programs that wrappers start.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes to read of a script to find the program that it becomes.
const HEAD: u64 = 4096;

/// Returns the words of the first line of a script, by which the kernel finds the interpreter.
pub fn interpreter(script: &Path) -> Vec<String> {
    words_of(&head_of(script))
}

fn head_of(script: &Path) -> Vec<u8> {
    let mut head = Vec::new();
    let read = File::open(script).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    if read.is_ok() && head.starts_with(b"#!") { head } else { Vec::new() }
}

fn words_of(head: &[u8]) -> Vec<String> {
    let first = String::from_utf8_lossy(head).lines().next().unwrap_or_default().to_owned();
    first.trim_start_matches("#!").split_whitespace().map(str::to_owned).collect()
}

/// Returns the programs that a script names by their paths: the interpreter in the first line, what
/// a shell script becomes by `exec`, and the program of its last command.
pub(super) fn started(script: &Path, homes: &[PathBuf]) -> Vec<PathBuf> {
    let head = head_of(script);
    let mut found: Vec<PathBuf> = words_of(&head).into_iter().take(1).map(PathBuf::from).collect();
    if let Some(text) = shell_text(&head) {
        let starts = text.lines().filter_map(|line| line.trim_start().strip_prefix("exec "));
        found.extend(starts.flat_map(str::split_whitespace).filter_map(|word| whole_path(word, homes)));
    }
    found.extend(last_program_of(&head, homes));
    found
}

/// Returns the program of a shell script's last command, if the command names it by a path that
/// begins at the root or in the home.
pub fn last_program(script: &Path, home: &Path) -> Option<PathBuf> {
    last_program_of(&head_of(script), &[home.to_owned()])
}

fn last_program_of(head: &[u8], homes: &[PathBuf]) -> Option<PathBuf> {
    let text = shell_text(head).filter(|_| (head.len() as u64) < HEAD)?;
    let is_command = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("exit");
    let last = text.lines().map(str::trim).rfind(is_command)?;
    let is_variable = |word: &&str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let mut words = last.strip_prefix("exec ").unwrap_or(last).split_whitespace();
    whole_path(words.find(|word| !is_variable(word))?, homes)
}

/// Returns the text of a script that a shell runs.
fn shell_text(head: &[u8]) -> Option<String> {
    let is_shell = words_of(head).iter().take(2).any(|word| word.ends_with("sh"));
    is_shell.then(|| String::from_utf8_lossy(head).into_owned())
}

/// Returns the path that a word of a shell script names, if it begins at the root or in a home.
fn whole_path(word: &str, homes: &[PathBuf]) -> Option<PathBuf> {
    let word = word.trim_matches(['"', '\'', ';']);
    let below = ["$HOME/", "${HOME}/", "~/"].iter().find_map(|start| word.strip_prefix(start));
    match below {
        Some(below) => Some(homes.first()?.join(below)),
        None => Some(PathBuf::from(word)).filter(|path| path.is_absolute()),
    }
}
