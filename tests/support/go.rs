//! A shared Go build cache for all tests. Without it, Go compiles its library for each fresh home,
//! which takes half a minute.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The packages of Go's library that tests compile against, without their dependencies.
const USED: &str = "bufio bytes encoding/json errors fmt os regexp sort strconv strings testing time unicode";

/// Returns the value of `GOCACHE` for programs that run Go. The first call fills the cache, if Go
/// is installed.
pub(crate) fn go_cache() -> PathBuf {
    static CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
        let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go-build");
        let module = super::temp_dir();
        let imports: String = USED.split(' ').map(|name| format!("import _ \"{name}\"\n")).collect();
        let test = "package a\n\nimport \"testing\"\n\nfunc TestIt(t *testing.T) {}\n";
        let files = [
            ("go.mod", "module example.com/a\n\ngo 1.18\n"),
            ("a.go", &format!("package a\n\n{imports}")),
            ("a_test.go", test),
        ];
        files.iter().for_each(|(name, text)| std::fs::write(module.path().join(name), text).unwrap());
        for verb in ["test", "vet"] {
            let mut go = Command::new("go");
            go.args([verb, "./..."]).current_dir(module.path()).env("GOCACHE", &cache).env("GOFLAGS", "");
            let _there_may_be_none = go.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        cache
    });
    CACHE.clone()
}
