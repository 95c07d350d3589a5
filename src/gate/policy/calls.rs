//! The files that a script, a Makefile or a git hook runs. Pure.

use super::ecosystems::GIT_READS;
use super::manifest;
use super::named::{RUNNERS, inside, is_script, text, words};
use crate::gate::names::name_of;
use crate::workspace::ProtectedRule;
use crate::workspace::trees::GitPrograms;
use std::collections::BTreeSet;

/// Reason for protecting a script that a git hook or the git configuration runs.
const GIT_RUNS: &str = "a git hook or the git configuration runs it";
/// The maximum number of scripts that are followed.
pub(super) const MOST: usize = 500;
/// The maximum number of folders that one script enters.
const MOST_ENTERED: usize = 64;

/// Returns the rules for the files that the user's git reads and runs. `read` returns the content
/// of a file of the workspace.
pub(in crate::gate) fn rules_of_git(
    git: &GitPrograms,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> Vec<ProtectedRule> {
    let rule = |path: &str, why: &str| ProtectedRule { pattern: super::exactly(path), why: why.into() };
    let mut rules: Vec<ProtectedRule> = git.hooks.iter().chain(&git.files).map(|path| rule(path, GIT_READS)).collect();
    let commands = git.commands.iter().map(|command| without_places(command));
    let run = commands.flat_map(|command| {
        // A program of the configuration may be missing. A new file would be the program then.
        let is_path = |path: &str| path.contains('/') && !path.contains(|c: char| "$*?[]%:\\~#!".contains(c));
        let is_new = |path: &str| !command.contains('\n') && is_path(path);
        let mut has = |path: &str| read(path).is_some() || is_new(path);
        run_below("", &command, &entered(&command), &mut has, |_| true)
    });
    let run: BTreeSet<String> = run.filter(|path| !path.contains("node_modules/")).collect();
    rules.extend(with_called(run, read).iter().map(|path| rule(path, GIT_RUNS)));
    rules
}

/// Returns these scripts and the scripts that they run in turn, without manifests.
pub(super) fn with_called(
    scripts: BTreeSet<String>,
    read: &mut dyn FnMut(&str) -> Option<Vec<u8>>,
) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), scripts);
    open.retain(|script| !manifest::is_one(script));
    while let Some(script) = open.pop_first().filter(|_| found.len() < MOST) {
        let text = without_places(&text(&script, read).unwrap_or_default());
        let called = run_below(&script, &text, &entered(&text), &mut |path| read(path).is_some(), is_script);
        found.insert(script);
        open.extend(called.into_iter().filter(|path| !found.contains(path)));
    }
    found
}

/// Returns the files that a script runs: words in the place of a command and words after a program
/// that runs files. `is_meant` selects among them. Files that the script only reads are left out,
/// since they may be the product.
pub(super) fn run_by(
    script: &str,
    text: &str,
    has: &mut dyn FnMut(&str) -> bool,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<String> {
    run_below(script, text, &BTreeSet::new(), has, is_meant)
}

/// Returns the files of [`run_by`] for a script that may run commands in these folders too. The
/// folders are relative to the root or to the folder of the script.
pub(super) fn run_below(
    script: &str,
    text: &str,
    below: &BTreeSet<String>,
    has: &mut dyn FnMut(&str) -> bool,
    is_meant: impl Fn(&str) -> bool,
) -> Vec<String> {
    let folder = script.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut folders = BTreeSet::from(["", folder].map(str::to_owned));
    folders.extend(["", folder].iter().flat_map(|from| below.iter().filter_map(|below| inside(from, below))));
    let mut found = Vec::new();
    for command in text.split(['\n', ';', '|', '&', '(', ')', '{', '}', '"', '\'', '`']).map(words) {
        for (number, word) in command.iter().enumerate() {
            let before = number.checked_sub(1).map(|before| command[before].trim_start_matches(['@', '-']));
            let plain = word.trim_start_matches(['@', '-', '+']);
            let is_file = plain.contains(['/', '.']) && before.is_none_or(|before| RUNNERS.contains(&name_of(before)));
            let mut names = if is_file && is_meant(plain) { vec![plain.to_owned()] } else { Vec::new() };
            if number > 1 && before == Some("m") && name_of(command[number - 2]).starts_with("python") {
                names.extend(module_files(plain).into_iter().filter(|name| is_meant(name)));
            }
            for name in names {
                let files = folders.iter().filter_map(|folder| inside(folder, &name));
                found.extend(files.filter(|path| has(path)));
            }
        }
    }
    found
}

/// Returns the folders that a script may enter: those that it names after `cd`, and those that it
/// assigns to variables, since a variable may follow `cd`. A later folder may be below an earlier
/// one.
pub(super) fn entered(text: &str) -> BTreeSet<String> {
    let is_plain = |word: &&str| !word.starts_with('-') && !word.contains(|c: char| "$*?[]<>".contains(c));
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (mut all, mut below) = (BTreeSet::new(), BTreeSet::from([String::new()]));
    for command in text.split(['\n', ';', '|', '&', '(', ')', '{', '}', '`']) {
        if below.len().max(all.len()) >= MOST_ENTERED {
            break;
        }
        let mut words = command.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        let assigned = words.clone().filter_map(|word| word.split_once('='));
        let assigned = assigned.filter(|(name, _)| is_name(name)).map(|(_, value)| value.trim_matches(['"', '\'']));
        all.extend(assigned.filter(is_plain).filter_map(|value| inside("", value)));
        if !words.by_ref().any(|word| matches!(word, "cd" | "pushd" | "chdir" | "-C")) {
            continue;
        }
        let Some(folder) = words.find(is_plain) else { continue };
        let found: Vec<String> = below.iter().filter_map(|from| inside(from, folder)).collect();
        below.extend(found.into_iter().take(MOST_ENTERED));
    }
    all.extend(below);
    all.into_iter().take(MOST_ENTERED).collect()
}

/// Returns the files that may hold the module of `python -m`.
pub(super) fn module_files(module: &str) -> [String; 2] {
    let path = module.replace('.', "/");
    [format!("{path}.py"), format!("{path}/__main__.py")]
}

/// Removes the expressions for the folder in which a path begins: `"$(dirname "$0")/../lib/a.sh"`
/// becomes `../lib/a.sh"`.
pub(super) fn without_places(text: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find('$') {
        kept.push_str(&rest[..start]);
        rest = &rest[start..];
        let is_start = kept.chars().next_back().is_none_or(|c| c.is_whitespace() || "\"'=@;(".contains(c));
        let end = place_end(rest.trim_start_matches('$')).filter(|_| is_start);
        let after = end.map(|end| &rest[rest.len() - rest.trim_start_matches('$').len() + end..]);
        let after = after.and_then(|after| after.strip_prefix('"').unwrap_or(after).strip_prefix('/'));
        if let Some(after) = after {
            kept.truncate(kept.trim_end_matches('"').len());
            rest = after;
        } else {
            kept.push('$');
            rest = &rest[1..];
        }
    }
    kept + rest
}

/// Removes these expressions from the lines of a script that read other files by `.` or `source`.
/// In other lines, the path may be that of the product.
pub(super) fn with_plain_sources(script: &str) -> String {
    let reads = |command: &str| words(command).first().is_some_and(|word| matches!(*word, "." | "source"));
    let line = |line: &str| match line.split([';', '|', '&']).any(reads) {
        true => without_places(line),
        false => line.to_owned(),
    };
    script.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns the end of the call or variable after a `$`, within the same line.
fn place_end(text: &str) -> Option<usize> {
    let line = text.lines().next()?;
    if !line.starts_with(['(', '{']) {
        let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(line.len());
        return (end > 0).then_some(end);
    }
    let mut depth = 0_usize;
    line.char_indices().find_map(|(at, c)| {
        match c {
            '(' | '{' => depth += 1,
            ')' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0).then_some(at + c.len_utf8())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_place_in_which_a_path_begins_is_left_out() {
        for (text, plain) in [
            ("source \"$(dirname \"$0\")/../lib/a.sh\"", "source ../lib/a.sh\""),
            (". \"$(dirname \"$0\")\"/a.sh", ". a.sh"),
            (". ${0%/*}/a.sh; x", ". a.sh; x"),
            ("exec \"$ROOT/dev/a.sh\" $1", "exec dev/a.sh\" $1"),
            ("\t@$$PWD/a.sh $(CURDIR)/b", "\t@a.sh b"),
            ("a$B/c $(x y", "a$B/c $(x y"),
            ("é $é/x", "é $é/x"),
        ] {
            assert_eq!(without_places(text), plain, "{text}");
        }
        let script = ". \"$HERE/a.sh\"\nsh \"$HERE/b.sh\"";
        assert_eq!(with_plain_sources(script), ". a.sh\"\nsh \"$HERE/b.sh\"");
    }

    #[test]
    fn files_that_git_reads_or_runs_are_protected() {
        let files = BTreeMap::from([
            ("dev/lint.sh", "sh tools/more.sh\nnode src/app.js\n"),
            ("tools/more.sh", ""),
            ("src/app.js", ""),
            ("qa/hook.py", ""),
            ("qa/all.py", ""),
            ("dev/fs", ""),
            ("dev/in/after.sh", ""),
            ("dev/in/by.sh", ""),
            ("dev/in/there.sh", ""),
            ("dev/other.sh", ""),
            ("here/other.sh", ""),
            ("package.json", ""),
            ("node_modules/.bin/x", ""),
        ]);
        let git = GitPrograms {
            hooks: Some("hooks".into()),
            files: BTreeSet::from(["gitconf".into()]),
            commands: [
                "#!/bin/sh\nexec \"$(git rev-parse --show-toplevel)/dev/lint.sh\" \"$@\"\npython3 -m qa.all\n",
                "./dev/fs clean %f",
                "python3 qa/hook.py && npx package.json; cat src/app.js",
                "node_modules/.bin/x",
                "root=$(git rev-parse --show-toplevel)\ncd \"$root/dev\" && ./in/after.sh\ncd in; sh there.sh\n",
                "dir=\"$root/dev/in\"\n(cd \"$dir\" && ./by.sh)\n",
                "dev/new.sh --sign",
                "true",
            ]
            .map(str::to_owned)
            .to_vec(),
        };
        let rules = rules_of_git(&git, &mut |path| files.get(path).map(|text| text.as_bytes().to_vec()));
        let rules: Vec<(&str, &str)> = rules.iter().map(|rule| (rule.pattern.as_str(), rule.why.as_str())).collect();
        let read = ["/hooks", "/gitconf"].map(|path| (path, GIT_READS));
        let run = [
            "/dev/fs",
            "/dev/in/after.sh",
            "/dev/in/by.sh",
            "/dev/in/there.sh",
            "/dev/lint.sh",
            "/dev/new.sh",
            "/qa/all.py",
            "/qa/hook.py",
            "/tools/more.sh",
        ]
        .map(|it| (it, GIT_RUNS));
        assert_eq!(rules, [&read[..], &run].concat());
    }
}
