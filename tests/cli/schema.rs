//! `fledge schema`: the output equals `specs/generated/schemas`, and every file in the repository
//! fits its schema.

use crate::support::Fledge;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const NAMES: [&str; 9] =
    ["batch", "batch-event", "batch-report", "config", "eval-report", "event", "lane", "report", "task"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn printed(name: &str) -> Value {
    let ended = Fledge::new().args(&["schema", name]).run();
    ended.must_exit(0);
    let path = root().join("specs/generated/schemas").join(format!("{name}.json"));
    if std::env::var_os("FLEDGE_BLESS").is_some() {
        fs::write(&path, &ended.stdout).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == ended.stdout, "{} is old: FLEDGE_BLESS=1 writes it anew", path.display());
    serde_json::from_str(&ended.stdout).unwrap()
}

#[test]
fn every_schema_is_printed_as_it_is_kept_and_a_name_that_is_none_has_the_nearest() {
    let mut kept: Vec<String> = fs::read_dir(root().join("specs/generated/schemas"))
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    kept.sort();
    assert_eq!(kept, NAMES);
    for name in NAMES {
        let schema = printed(name);
        let id = format!("urn:fledge:schema:{name}");
        assert_eq!((&schema["$id"], schema["title"].is_string()), (&json!(id), true), "{name}");
    }
    let wrong = Fledge::new().args(&["schema", "lanes"]).run();
    wrong.must_exit(2);
    assert!(wrong.stderr.contains("'lane'"), "{}", wrong.story());
}

/// Collects all files of the repository with this ending, except build output.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && !["target", ".git"].contains(&name) {
            files(&path, ending, found);
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

#[test]
fn every_lane_and_every_task_of_the_repository_fits_its_schema() {
    let validator = |name: &str| {
        let text = fs::read_to_string(root().join(format!("specs/generated/schemas/{name}.json"))).unwrap();
        jsonschema::draft202012::new(&serde_json::from_str(&text).unwrap()).unwrap()
    };
    let (lane, task) = (validator("lane"), validator("task"));
    let must_fit = |validator: &jsonschema::Validator, yaml: &str, what: &str| {
        let value: Value = serde_yaml::from_str(yaml).unwrap();
        let wrong = validator.validate(&value).err().map(|error| format!("{}: {error}", error.instance_path()));
        assert_eq!(wrong, None, "{what}");
    };
    let mut lanes = Vec::new();
    files(root(), ".yaml", &mut lanes);
    lanes.retain(|path| path.parent().unwrap().ends_with("lanes"));
    assert!(lanes.len() >= 4, "{lanes:?}");
    for path in &lanes {
        must_fit(&lane, &fs::read_to_string(path).unwrap(), &path.display().to_string());
    }
    let mut tasks = Vec::new();
    files(&root().join("examples"), "task.md", &mut tasks);
    let mut pages = vec![root().join("README.md")];
    files(&root().join("docs"), ".md", &mut pages);
    assert!(pages.len() > 20, "{pages:?}");
    let shown: Vec<String> = pages.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let blocks =
        shown.iter().flat_map(|text| text.split("```markdown\n").skip(1)).filter_map(|rest| rest.split("\n```").next());
    let blocks: Vec<String> = blocks.map(str::to_owned).collect();
    let texts: Vec<String> = tasks.iter().map(|path| fs::read_to_string(path).unwrap()).chain(blocks).collect();
    let fronts: Vec<&str> = texts.iter().filter_map(|text| text.strip_prefix("---\n")?.split("\n---").next()).collect();
    assert!(fronts.len() >= 2, "{}", texts.len());
    fronts.iter().for_each(|front| must_fit(&task, front, front));
    let yaml =
        shown.iter().flat_map(|text| text.split("```yaml\n").skip(1)).filter_map(|rest| rest.split("\n```").next());
    let shown_lanes: Vec<&str> =
        yaml.filter(|block| block.contains("\nsteps:") || block.starts_with("steps:")).collect();
    assert!(!shown_lanes.is_empty());
    shown_lanes.iter().for_each(|block| must_fit(&lane, block, block));
}
