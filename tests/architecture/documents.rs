//! Checks that documents match the code: specs and their laws, the generated table of exit codes,
//! and examples that parse.
#![expect(clippy::disallowed_methods, reason = "FLEDGE_BLESS says that a printed file is to be written anew")]

use super::source::{Source, modules, read, root, sources};
use fledge::verdict::{Reason, StopCause};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

// `fledge specs check` checks the claims of the specs. This test checks only what needs these
// sources.
#[test]
fn every_module_has_a_spec_that_names_what_its_sources_import() {
    let (ours, mut wrong) = (sources("src"), Vec::new());
    for module in modules(&read("src/lib.rs")) {
        let path = format!("specs/{module}/{module}.spec.md");
        let spec = fledge::spec::parse(&read(&path), &path).unwrap_or_else(|fault| panic!("{fault}"));
        let used: BTreeSet<String> =
            ours.iter().filter(|source| source.module() == module).flat_map(Source::imports).collect();
        if spec.depends_on.iter().cloned().collect::<BTreeSet<_>>() != used {
            wrong.push(format!("{path}:1: `depends_on` is not what the sources import: {used:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_exit_codes_is_the_printed_one() {
    let mut table = String::from(
        "# Exit codes\n\nOne row for each reason that a run can end with. Printed from `verdict::Reason` by a test; to write it anew, run\n\
         `FLEDGE_BLESS=1 cargo test --test it architecture::`.\n\n| reason | done_reason | exit code | meaning |\n|---|---|---|---|\n",
    );
    for reason in Reason::ALL {
        let (row, terminated) = (reason.row(), reason.exit_code(Some(StopCause::Terminate)));
        let code = if terminated == row.exit_code {
            terminated.to_string()
        } else {
            format!("{}, by SIGTERM {terminated}", row.exit_code)
        };
        table.push_str(&format!("| {reason} | {} | {code} | {} |\n", row.done_reason, row.meaning));
    }
    let path = root().join("specs/generated/exit-codes.md");
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        fs::write(&path, &table).expect("specs/generated can be written");
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, table, "specs/generated/exit-codes.md is old: FLEDGE_BLESS=1 writes it anew");
}

#[test]
fn the_table_of_what_is_protected_is_the_printed_one() {
    let (path, table) = (root().join("specs/generated/protected.md"), fledge::gate::policy::table());
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        fs::write(&path, &table).expect("specs/generated can be written");
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, table, "specs/generated/protected.md is old: FLEDGE_BLESS=1 writes it anew");
}

#[test]
fn the_table_of_installed_dependencies_is_the_printed_one() {
    let (path, table) = (root().join("specs/generated/dependencies.md"), fledge::gate::installed_table());
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        fs::write(&path, &table).expect("specs/generated can be written");
    }
    let printed = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(printed, table, "specs/generated/dependencies.md is old: FLEDGE_BLESS=1 writes it anew");
}

#[test]
fn the_documentation_names_every_tool_with_its_tier_and_no_other() {
    let text = read("docs/reference/tools.md");
    let rows = text.lines().skip_while(|line| !line.starts_with("| tool | tier |")).skip(2);
    let cell = |line: &str, at| line.split('|').nth(at).unwrap_or_default().trim_matches([' ', '`']).to_owned();
    let told: BTreeSet<_> =
        rows.take_while(|line| line.starts_with('|')).map(|row| (cell(row, 1), cell(row, 2))).collect();
    let ours = fledge::tool::TOOLS.map(|tool| (tool.name.to_owned(), tool.flags.tier.name().to_owned()));
    let others = ["subagent-spawn", "mcp-SERVER-TOOL"].map(|name| (name.to_owned(), "tool".to_owned()));
    assert_eq!(told, ours.into_iter().chain(others).collect());
}

#[test]
fn what_the_documentation_shows_is_read_as_it_says() {
    let given = [("issue".to_owned(), "12".to_owned())].into();
    for file in pages() {
        let (file, text) = (file.as_str(), read(&file));
        for block in text.split("\n```").skip(1).step_by(2) {
            let (language, block) = block.split_once('\n').unwrap_or_default();
            let read = match language {
                "markdown" if block.contains("params:") => {
                    fledge::task::parse(block, file, &given).map(drop).map_err(|e| e.to_string())
                }
                "markdown" => {
                    fledge::task::parse(block, file, &Default::default()).map(drop).map_err(|e| e.to_string())
                }
                "yaml" if block.contains("steps:") => {
                    fledge::lane::parse("verify", file, block).map(drop).map_err(|e| e.to_string())
                }
                "yaml" => {
                    let project = crate::support::temp_dir();
                    fs::write(project.path().join("fledge.yaml"), block).expect("it can be written into");
                    fledge::config::load(&Default::default(), project.path()).map(drop).map_err(|e| e.to_string())
                }
                _ => Ok(()),
            };
            assert_eq!(read, Ok(()), "{file} shows:\n{block}");
        }
    }
    for project in ["", "examples/fix-bug"].map(|folder| root().join(folder)) {
        let listed = fledge::lane_files::list(&project, "").unwrap();
        assert!(listed.fault.files.is_empty(), "{}: {}", project.display(), listed.fault);
    }
}

/// Returns the README and the pages of the book, by their paths from the root.
fn pages() -> Vec<String> {
    let found = walkdir::WalkDir::new(root().join("docs")).sort_by_file_name().into_iter().map(Result::unwrap);
    let found = found.map(|entry| entry.path().strip_prefix(root()).unwrap().display().to_string());
    ["README.md".to_owned()].into_iter().chain(found.filter(|path| path.ends_with(".md"))).collect()
}

#[test]
fn texts_of_the_program_name_pages_by_the_command_that_prints_them() {
    let named = regex::Regex::new(r"(?:fledge docs ([A-Za-z/-]*[A-Za-z])|docs/([a-z/-]+\.md))").unwrap();
    let (mut wrong, mut commands) = (Vec::new(), 0);
    for source in sources("src").iter().filter(|source| source.path != "cli/docs.rs") {
        for (at, line) in source.text.lines().enumerate() {
            for found in named.captures_iter(line).filter(|_| !line.contains("include_str!")) {
                let is_page = |page: &str| root().join(format!("docs/{page}.md")).is_file();
                commands += usize::from(found.get(1).is_some());
                if found.get(1).is_some_and(|page| !is_page(page.as_str()))
                    || found.get(2).is_some_and(|file| root().join("docs").join(file.as_str()).is_file())
                {
                    wrong.push(format!("src/{}:{}: {}", source.path, at + 1, &found[0]));
                }
            }
        }
    }
    assert!(
        wrong.is_empty() && commands > 5,
        "{commands} commands; a user has no file of the documentation: {wrong:#?}"
    );
}

/// Returns the anchors that mdBook and GitHub generate for the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.split("```").step_by(2).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|c| c.is_alphanumeric() || "-_".contains(*c)).collect()
    };
    let mut seen = BTreeMap::<String, usize>::new();
    let numbered = |name: String| {
        let count = seen.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}-{}", *count - 1) }
    };
    headings.map(anchor).map(numbered).collect()
}

#[test]
fn every_link_of_the_documentation_leads_to_a_page_and_a_heading() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").unwrap();
    let (mut wrong, mut links) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        let prose = text.split("```").step_by(2).collect::<String>();
        for to in link.captures_iter(&prose).map(|found| found[1].to_owned()) {
            if to.contains("://") || to.starts_with("mailto:") {
                continue;
            }
            links += 1;
            let (file, anchor) = to.split_once('#').unwrap_or((&to, ""));
            let path = root().join(&page);
            let path = if file.is_empty() { path } else { path.with_file_name("").join(file) };
            let is_there = path.exists()
                && (anchor.is_empty() || anchors(&fs::read_to_string(&path).unwrap_or_default()).contains(anchor));
            if !is_there {
                wrong.push(format!("{page}: {to}"));
            }
        }
    }
    assert!(wrong.is_empty() && links > 100, "{links} links, of which lead nowhere: {wrong:#?}");
}

#[test]
fn the_summary_of_the_book_lists_every_page_and_no_page_is_long() {
    let summary = read("docs/SUMMARY.md");
    for page in pages().iter().filter_map(|page| page.strip_prefix("docs/")).filter(|page| *page != "SUMMARY.md") {
        assert!(summary.contains(&format!("]({page})")), "docs/SUMMARY.md does not list {page}");
        let lines = read(&format!("docs/{page}")).lines().count();
        assert!(lines <= 200, "docs/{page} has {lines} lines, and 200 are the most");
    }
    assert!(read("README.md").lines().count() < 120, "the README is longer than a reader reads");
}
