//! Documents that say what is there: specs and their laws, the printed table of exit codes, and examples that can be read.
#![expect(clippy::disallowed_methods, reason = "FLEDGE_BLESS says that a printed file is to be written anew")]

use super::source::{Source, modules, read, root, sources};
use fledge::verdict::{Reason, StopCause};
use std::collections::BTreeSet;
use std::fs;

const SECTIONS: [&str; 7] =
    ["Purpose", "Public API", "Invariants", "Behavioral Examples", "Error Cases", "Dependencies", "Change Log"];

#[test]
fn every_module_has_a_spec_that_is_true() {
    let (ours, theirs) = (sources("src"), sources("tests"));
    let is_test = |name: &str| {
        let (place, test) = name.rsplit_once("::").unwrap_or(("", name));
        let place = place.split("::").next().unwrap_or_default();
        let says =
            |source: &Source| ["fn {}(", "mod {};"].iter().any(|form| source.text.contains(&form.replace("{}", test)));
        let there = |source: &Source| (place.is_empty() || source.module() == place) && says(source);
        ours.iter().chain(&theirs).any(there)
    };
    let (mut wrong, map) = (Vec::new(), read("src/lib.rs"));
    for module in modules(&map) {
        let path = format!("specs/{module}/{module}.spec.md");
        let Ok(text) = fs::read_to_string(root().join(&path)) else {
            wrong.push(format!("{path}:1: `{module}` has no spec"));
            continue;
        };
        let spec = fledge::spec::parse(&text, &path).unwrap_or_else(|fault| panic!("{fault}"));
        let gone = spec.files.iter().filter(|file| !root().join(file.trim_end_matches("/**")).exists());
        wrong.extend(gone.map(|file| format!("{path}:1: there is no file `{file}`")));
        let used: BTreeSet<String> =
            ours.iter().filter(|source| source.module() == module).flat_map(Source::imports).collect();
        if spec.module != module || spec.depends_on.iter().cloned().collect::<BTreeSet<_>>() != used {
            wrong.push(format!("{path}:1: `module` or `depends_on` is not what the sources say: {module}, {used:?}"));
        }
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        if headings != SECTIONS {
            wrong.push(format!("{path}:1: the sections are not {SECTIONS:?}"));
        }
        let mut laws: Vec<(usize, String)> = Vec::new();
        let inside = text.lines().enumerate().skip_while(|(_, line)| *line != "## Invariants").skip(1);
        for (at, line) in inside.take_while(|(_, line)| !line.starts_with("## ")) {
            match (line.starts_with(|c: char| c.is_ascii_digit()), laws.last_mut()) {
                (true, _) => laws.push((at + 1, line.to_owned())),
                (false, Some((_, law))) if line.starts_with(' ') => law.push_str(line),
                (false, _) => {}
            }
        }
        let held = |law: &str| law.ends_with('`') && law.rsplit('`').nth(1).is_some_and(is_test);
        let unheld = laws.iter().filter(|(_, law)| !held(law));
        wrong.extend(unheld.map(|(line, law)| format!("{path}:{line}: no test of that name holds `{law}`")));
        if laws.is_empty() {
            wrong.push(format!("{path}:1: no invariants"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_table_of_exit_codes_is_the_printed_one() {
    let mut table = String::from(
        "# Exit codes\n\nOne row for each reason that a run can end with. Printed from `verdict::Reason` by a test; to write it anew, run\n\
         `FLEDGE_BLESS=1 cargo test --test architecture`.\n\n| reason | done_reason | exit code | meaning |\n|---|---|---|---|\n",
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
fn what_the_documentation_shows_is_read_as_it_says() {
    let given = [("issue".to_owned(), "12".to_owned())].into();
    for file in ["README.md", "docs/tasks-and-lanes.md"] {
        let text = read(file);
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
                    let project = tempfile::tempdir().expect("a folder can be made");
                    fs::write(project.path().join("fledge.yaml"), block).expect("it can be written into");
                    fledge::config::load(&Default::default(), project.path()).map(drop).map_err(|e| e.to_string())
                }
                _ => Ok(()),
            };
            assert_eq!(read, Ok(()), "{file} shows:\n{block}");
        }
    }
    for project in ["", "examples/fix-bug"].map(|folder| root().join(folder)) {
        let listed = fledge::gate::list(&project, "").unwrap();
        assert!(listed.fault.files.is_empty(), "{}: {}", project.display(), listed.fault);
    }
}
