//! Tests of the tools through a [`ToolHost`], with real files and real processes.

mod attacks;
mod files;
mod logs;
mod search;
mod shell;

use super::*;
use crate::test_support::PATIENCE;
use crate::workspace::ProtectedRule;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A temporary workspace `tree` with a host.
pub(super) struct ToolFixture {
    pub(super) home: tempfile::TempDir,
    pub(super) host: ToolHost,
    next: AtomicU64,
}

impl ToolFixture {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut HostSettings)) -> Self {
        let home = crate::test_support::temp_dir();
        fs::create_dir(home.path().join("tree")).unwrap();
        let mut settings = HostSettings {
            root: home.path().join("tree"),
            outputs_dir: home.path().join("outputs"),
            protected: vec![ProtectedRule { pattern: "lanes/**".into(), why: "it defines the gate".into() }],
            allow_edit: Vec::new(),
            files: Vec::new(),
            env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()), ("WORD".into(), "given".into())],
            max_result: 4096,
            shell_timeout: PATIENCE,
            bounds: crate::process::ProcessBounds::default(),
        };
        change(&mut settings);
        let host = ToolHost::new(settings).unwrap();
        Self { home, host, next: AtomicU64::new(1) }
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.home.path().join("tree")
    }

    pub(super) fn file(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.tree().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.tree().join(path)).unwrap()
    }

    pub(super) async fn call(&self, name: &str, input: Value) -> ToolOutcome {
        let call = CallId(self.next.fetch_add(1, Ordering::Relaxed));
        let request = ToolRequest { call, name: name.into(), input };
        self.host.call(request, &CancellationToken::new(), &|_| {}).await
    }

    async fn output(&self, name: &str, input: Value) -> String {
        self.call(name, input).await.content
    }
}

#[test]
fn all_specs_together_are_short_and_strict() {
    let specs = TOOLS.map(|tool| tool.spec());
    let size = serde_json::to_string(&specs).unwrap().len();
    assert!(size < 3700, "{size} bytes");
    for spec in specs {
        assert_eq!((&spec.schema["type"], &spec.schema["additionalProperties"]), (&json!("object"), &json!(false)));
    }
}

#[tokio::test]
async fn every_tool_takes_the_arguments_of_its_schema_and_no_others() {
    let fixture = ToolFixture::new();
    for tool in TOOLS {
        let mut input = serde_json::Map::new();
        for (name, property) in tool.spec().schema["properties"].as_object().unwrap() {
            let value = match property["type"].as_str().unwrap() {
                "string" if property["enum"].is_array() => property["enum"][0].clone(),
                "string" => json!("x"),
                "integer" => json!(1),
                _ => json!(true),
            };
            input.insert(name.clone(), value);
        }
        let output = fixture.output(tool.name, input.clone().into()).await;
        assert!(!output.contains("; expected {"), "{output}");
        input.insert("extra".into(), json!(1));
        let output = fixture.output(tool.name, input.into()).await;
        assert!(output.starts_with(&format!("{}: unknown field `extra`", tool.name)), "{output}");
    }
}

#[tokio::test]
async fn wrong_arguments_are_explained() {
    let fixture = ToolFixture::new();
    for (name, input, output) in [
        (
            "files-edit",
            json!({"path": "a", "new": "b"}),
            "files-edit: missing field `old`; expected {new: string, old: string, path: string, replace_all?: boolean}",
        ),
        (
            "files-read",
            json!({"path": "a", "offset": 0}),
            "files-read: `offset` must be a whole number of at least 1, found 0; expected {path: string, limit?: integer, offset?: integer}",
        ),
        ("files-delete", json!({"path": 7}), "files-delete: `path` must be a string, found 7; expected {path: string}"),
        ("files-delete", json!("a"), "files-delete: expected a JSON object, found string; expected {path: string}"),
    ] {
        assert_eq!(fixture.call(name, input).await, ToolOutcome::error(output));
    }
    assert!(
        fixture
            .output("files-move", json!({}))
            .await
            .starts_with("there is no tool `files-move`; there are files-delete, ")
    );
}

#[tokio::test]
async fn a_long_result_is_cut_and_kept_for_paging() {
    let fixture = ToolFixture::new();
    let names: Vec<String> = (0..500).map(|number| format!("a-file-with-a-long-name-{number:04}")).collect();
    for name in &names {
        fixture.file(name, "");
    }
    let cut = fixture.output("files-glob", json!({"pattern": "**"})).await;
    assert!(cut.len() <= 4096 && cut.starts_with(&names[0]) && cut.ends_with("0499\n"), "{cut}");
    assert!(cut.contains("bytes left out; all of it: files-read @output/1 …]\n"), "{cut}");
    let page = fixture.output("files-read", json!({"path": "@output/1", "offset": 300, "limit": 1})).await;
    assert_eq!(page, format!("   300\t{}\n[lines 300-300 of 500; continue with offset 301]\n", names[299]));
    let kept = fs::metadata(fixture.home.path().join("outputs/1.txt")).unwrap();
    assert_eq!(kept.permissions().mode() & 0o777, 0o600);
}

#[test]
fn outputs_inside_the_workspace_are_refused() {
    let fixture = ToolFixture::new();
    let settings = HostSettings {
        root: fixture.tree(),
        outputs_dir: fixture.tree().join("outputs"),
        protected: Vec::new(),
        allow_edit: Vec::new(),
        files: Vec::new(),
        env: Vec::new(),
        max_result: 0,
        shell_timeout: Duration::ZERO,
        bounds: crate::process::ProcessBounds::default(),
    };
    assert!(matches!(ToolHost::new(settings), Err(HostError::OutputsInside { .. })));
}
