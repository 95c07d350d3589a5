//! Tests of parsing specs and of selecting them for tasks.

use super::*;

const DATES: &str = "---\nmodule: dates\nversion: 1.0\nstatus: active\nfiles: [src/dates.rs, 'src/zones/**']\n\
    depends_on: [specs/text/text.spec.md]\ndb_tables: []\n---\n# Dates\n\n## Purpose\n\nReads dates\nas people write them.\n\nMore.\n";

fn spec(module: &str, files: &[&str]) -> Spec {
    Spec {
        module: module.into(),
        version: "1".into(),
        status: String::new(),
        files: files.iter().map(|file| (*file).to_owned()).collect(),
        depends_on: Vec::new(),
        path: format!("specs/{module}/{module}.spec.md"),
        body: String::new(),
        purpose: String::new(),
    }
}

fn modules(choice: &SpecChoice, mentioned: &[&str]) -> Result<Vec<String>, String> {
    let specs = [
        spec("dates", &["src/dates.rs", "src/zones/**"]),
        spec("text", &["src/text/mod.rs"]),
        spec("cli", &["src/cli"]),
    ];
    let mentioned: Vec<String> = mentioned.iter().map(|path| (*path).to_owned()).collect();
    let names = |specs: Vec<&Spec>| specs.iter().map(|spec| spec.module.clone()).collect();
    select(&specs, choice, &mentioned).map(names).map_err(|fault| fault.to_string())
}

#[test]
fn a_spec_is_its_front_matter_its_text_and_its_purpose() {
    let expected = Spec {
        version: "1.0".into(),
        status: "active".into(),
        depends_on: vec!["specs/text/text.spec.md".into()],
        body: "# Dates\n\n## Purpose\n\nReads dates\nas people write them.\n\nMore.".into(),
        purpose: "Reads dates as people write them.".into(),
        ..spec("dates", &["src/dates.rs", "src/zones/**"])
    };
    assert_eq!(parse(DATES, "specs/dates/dates.spec.md"), Ok(expected));
}

#[test]
fn the_index_has_a_line_for_each_module() {
    let specs = [parse(DATES, "specs/dates/dates.spec.md").unwrap(), spec("text", &[])];
    let expected =
        "- dates (specs/dates/dates.spec.md): Reads dates as people write them.\n- text (specs/text/text.spec.md)\n";
    assert_eq!(index(&specs), expected);
}

#[test]
fn everything_wrong_with_a_spec_is_said_with_its_place() {
    let message = |text: &str| parse(text, "a.spec.md").unwrap_err().to_string();
    assert_eq!(
        message("---\nmodul: x\nversion: [1]\nfiles: src/a.rs\n---\n"),
        "a.spec.md:2:1: `module` is missing (add `module: …`)\n\
         a.spec.md:2:1: unknown key `modul` in the front matter (did you mean `module`?)\n\
         a.spec.md:3:10: expected `version` to be a number or a text, found a list (write `version: 1`)\n\
         a.spec.md:4:8: expected `files` to be a list of texts like `[a, b]`, found the text `src/a.rs` (write `[\"src/a.rs\"]`)"
    );
    assert!(message("# No front matter").starts_with("a.spec.md:1:1: the spec has no front matter"));
}

#[test]
fn a_task_gets_the_specs_whose_files_it_names() {
    let auto = |mentioned: &[&str]| modules(&SpecChoice::Auto, mentioned).unwrap().join(" ");
    assert_eq!(auto(&["src/dates.rs"]), "dates");
    assert_eq!(auto(&["dates.rs"]), "dates");
    assert_eq!(auto(&["src/zones/utc.rs", "src/cli/run.rs"]), "dates cli");
    assert_eq!(auto(&["src/text"]), "text");
    assert_eq!(auto(&["src/text/*.rs"]), "text");
    assert_eq!(auto(&["src/**"]), "dates text cli");
    assert_eq!(auto(&["docs/dates.md", "rc/dates.rs"]), "");
}

#[test]
fn a_task_can_name_its_specs() {
    let named = |names: &[&str]| SpecChoice::Modules(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(modules(&SpecChoice::All, &[]).unwrap().join(" "), "dates text cli");
    assert_eq!(modules(&SpecChoice::None, &["src/dates.rs"]), Ok(Vec::new()));
    assert_eq!(modules(&named(&["text", "dates"]), &[]).unwrap().join(" "), "text dates");
    assert_eq!(modules(&named(&["date"]), &[]), Err("no spec for the module `date` (did you mean `dates`?)".into()));
    let all = "no spec for the module `zebra` (known: dates, text, cli)";
    assert_eq!(modules(&named(&["zebra"]), &[]), Err(all.into()));
}

#[test]
fn paths_are_found_in_prose() {
    let text = "Fix `src/dates.rs:12:5` (see ./docs/dates.md#zones, https://example.com/a.rs), then run dates.rs.\n\
        Not /etc/passwd, ../x, e.g. 1.5 or v1.2; but **src/cli/** and src/dates.rs again, Cargo.toml!";
    assert_eq!(paths_in(text), ["src/dates.rs", "docs/dates.md", "dates.rs", "src/cli", "Cargo.toml"]);
}
