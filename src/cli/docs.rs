//! `fledge docs`: the pages of the documentation, which are part of the program.

use super::failure::CliError;
use super::output::{no_output, print_data};
use crate::yaml::nearest;
use anyhow::anyhow;
use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use std::ffi::OsStr;

/// Embeds pages of the folder `docs`, in the order of the summary.
macro_rules! pages {
    ($($name:literal)*) => { &[$(Page { name: $name, text: include_str!(concat!("../../docs/", $name, ".md")) }),*] };
}

/// The table of contents, with the title of each page.
const SUMMARY: &str = include_str!("../../docs/SUMMARY.md");

/// All pages.
const PAGES: &[Page] = pages![
    "introduction"
    "tutorial/rust"
    "tutorial/python"
    "tutorial/node"
    "how-to/own-model"
    "how-to/recipes"
    "how-to/lanes"
    "how-to/deliver"
    "how-to/worktrees"
    "how-to/ci"
    "how-to/ci-merge"
    "how-to/ci-nightly"
    "how-to/ci-many-repositories"
    "how-to/batches"
    "how-to/compare-models"
    "how-to/approvals"
    "how-to/hidden-tests"
    "how-to/hold-outs"
    "how-to/memory"
    "how-to/mcp"
    "how-to/serve"
    "how-to/schedule"
    "how-to/many-machines"
    "how-to/troubleshooting"
    "reference/tasks"
    "reference/lanes"
    "reference/detection"
    "reference/fledge-toml"
    "reference/canaries"
    "reference/runners"
    "reference/configuration"
    "reference/models"
    "reference/cassettes"
    "reference/batch"
    "reference/tools"
    "reference/protected"
    "reference/dependencies"
    "reference/command-line"
    "reference/environment"
    "reference/exit-codes"
    "reference/events"
    "reference/api"
    "reference/files"
    "reference/glossary"
    "explanation/verified"
    "explanation/gate"
    "explanation/rooms"
    "explanation/sandbox"
    "explanation/threat-model"
    "explanation/architecture"
    "CONTRIBUTING"
];

/// A page of the documentation.
#[derive(Debug)]
struct Page {
    /// Its path below `docs`, without `.md`.
    name: &'static str,
    /// Its text, as Markdown.
    text: &'static str,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  fledge docs\n  fledge docs how-to/recipes\n  fledge docs troubleshooting | less")]
pub(super) struct DocsArguments {
    /// Page to print, or its last word where only one page has it [default: list all pages]
    #[arg(hide_possible_values = true, value_parser = PageName)]
    page: Option<String>,
}

/// Accepts any text, and offers the pages for shell completion.
#[derive(Debug, Clone)]
struct PageName;

impl TypedValueParser for PageName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        text: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, text)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(PAGES.iter().map(|page| PossibleValue::new(page.name))))
    }
}

/// Prints a page, or the list of all pages; returns the exit code.
///
/// # Errors
/// When there is no such page, or standard output cannot be written.
pub(super) fn run(arguments: &DocsArguments) -> Result<u8, CliError> {
    let text = match &arguments.page {
        Some(word) => find(word)?.readable(),
        None => list(),
    };
    print_data(text.trim_end()).map_err(no_output).map(|()| 0)
}

/// Finds a page by its name, by its path in fledge's repository, or by its last word.
fn find(word: &str) -> Result<&'static Page, CliError> {
    let file = word.split('#').next().unwrap_or_default().trim_start_matches("./").trim_start_matches("docs/");
    let wanted = file.trim_end_matches(".md").to_lowercase();
    let pages: Vec<&Page> = named(&wanted).collect();
    if let Some(page) = pages.iter().find(|page| pages.len() == 1 || page.name.eq_ignore_ascii_case(&wanted)) {
        return Ok(page);
    }
    let commands = |pages: &[&Page]| pages.iter().map(|page| page.command()).collect::<Vec<_>>().join(" or ");
    if !pages.is_empty() {
        let error = anyhow!("{} pages are named `{wanted}`", pages.len());
        return Err(CliError::input(error).hint(format!("use {}", commands(&pages))));
    }
    let known = PAGES.iter().flat_map(|page| [page.name, page.last_word()]);
    let near: Vec<&Page> = nearest(&wanted, known).into_iter().flat_map(named).collect();
    let hint = match near.as_slice() {
        [] => "`fledge docs` lists the pages".to_owned(),
        near => format!("did you mean {}?", commands(near)),
    };
    Err(CliError::input(anyhow!("there is no page `{word}`")).hint(hint))
}

/// Returns the pages with this name or last word.
fn named(name: &str) -> impl Iterator<Item = &'static Page> {
    PAGES.iter().filter(move |page| [page.name, page.last_word()].iter().any(|own| own.eq_ignore_ascii_case(name)))
}

/// Returns the list of all pages by part.
fn list() -> String {
    let width = PAGES.iter().map(|page| page.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in SUMMARY.lines().skip(1) {
        if let Some(part) = line.strip_prefix("# ") {
            text.push_str(&format!("\n{part}:\n"));
        } else if let Some((title, name)) = entry(line) {
            text.push_str(&format!("  {name:<width$}  {title}\n"));
        } else if line.starts_with("---") {
            text.push('\n');
        }
    }
    text + "\nTo print a page: `fledge docs introduction`\n"
}

/// Returns the title and the name of the page in a line of the summary.
fn entry(line: &str) -> Option<(&str, &str)> {
    let (title, path) = line.split_once('[')?.1.split_once("](")?;
    Some((title, path.split_once(".md)")?.0))
}

impl Page {
    fn last_word(&self) -> &'static str {
        self.name.rsplit('/').next().unwrap_or(self.name)
    }

    fn command(&self) -> String {
        format!("`fledge docs {}`", self.name)
    }

    /// Returns the text with links for a reader who has only the program.
    fn readable(&self) -> String {
        let blocks = self.text.split("```").enumerate();
        let prose = blocks.map(|(at, block)| if at % 2 == 0 { self.with_links(block) } else { block.to_owned() });
        prose.collect::<Vec<_>>().join("```")
    }

    /// Replaces links in a text without code.
    fn with_links(&self, mut text: &str) -> String {
        let mut all = String::new();
        while let Some((before, (target, after))) =
            text.split_once("](").and_then(|(before, rest)| Some((before, rest.split_once(')')?)))
        {
            let (before, label) = before.rsplit_once('[').unwrap_or((before, ""));
            all.push_str(before);
            all.push_str(&self.link(label, target));
            text = after;
        }
        all + text
    }

    fn link(&self, label: &str, target: &str) -> String {
        if target.contains("://") {
            return format!("[{label}]({target})");
        }
        let path = target.split('#').next().unwrap_or_default();
        let mut folders: Vec<&str> = vec!["docs"];
        folders.extend(self.name.rsplit_once('/').map(|(folder, _)| folder));
        for part in path.split('/') {
            match part {
                ".." => drop(folders.pop()),
                part => folders.push(part),
            }
        }
        let path = folders.join("/");
        let page = path.strip_prefix("docs/").and_then(|path| path.strip_suffix(".md"));
        match PAGES.iter().find(|page_of| page == Some(page_of.name)) {
            _ if target.starts_with('#') => label.to_owned(),
            Some(page) => format!("{label} ({})", page.command()),
            None => format!("{label} (`{path}` in fledge's repository)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_the_summary_and_a_list_has_each_with_its_title() {
        let summary: Vec<&str> = SUMMARY.lines().filter_map(entry).map(|(_, name)| name).collect();
        assert_eq!(PAGES.iter().map(|page| page.name).collect::<Vec<_>>(), summary);
        let list = list();
        assert!(summary.iter().all(|name| list.contains(&format!("  {name} "))), "{list}");
        assert!(list.contains("\nHow-to guides:\n  how-to/own-model ") && list.contains("  Run a lane by hand\n"));
    }

    #[test]
    fn a_page_is_found_by_its_name_its_file_and_a_last_word_that_no_other_page_has() {
        for word in ["how-to/lanes", "docs/how-to/lanes.md", "./docs/how-to/lanes.md#try", "How-To/Lanes"] {
            assert_eq!(find(word).unwrap().name, "how-to/lanes", "{word}");
        }
        assert_eq!(find("troubleshooting").unwrap().name, "how-to/troubleshooting");
        assert_eq!(find("contributing").unwrap().name, "CONTRIBUTING");
        for word in ["lanes", "lnaes", "", "docs/", "everything"] {
            assert!(find(word).is_err(), "{word}");
        }
    }

    #[test]
    fn links_lead_to_other_pages_and_code_stays() {
        let page = Page {
            name: "how-to/x",
            text: "See [Lanes](../reference/lanes.md#keys), [own\nmodel](own-model.md), [below](#y), [the\ndesign](../../specs/architecture.md)\nand [MCP](https://m.io).\n\n```text\n[a](b.md)\n```\n[Files](../reference/files.md)\n",
        };
        let text = "See Lanes (`fledge docs reference/lanes`), own\nmodel (`fledge docs how-to/own-model`), below, the\ndesign (`specs/architecture.md` in fledge's repository)\nand [MCP](https://m.io).\n\n```text\n[a](b.md)\n```\nFiles (`fledge docs reference/files`)\n";
        assert_eq!(page.readable(), text);
        for page in PAGES {
            assert!(!page.readable().split("```").step_by(2).any(|prose| prose.contains(".md)")), "{}", page.name);
        }
    }
}
