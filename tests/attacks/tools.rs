//! Locations of the programs that the projects need, and a check for missing ones.

use crate::attacks::rows::Project;
use crate::support::BEHIND_LANDLOCK;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns the search path of every run: programs in the user's home first, then those of the
/// system.
pub(crate) fn path(first: &Path) -> String {
    let folders = folders().iter().map(|folder| folder.display().to_string());
    std::iter::once(first.display().to_string()).chain(folders).collect::<Vec<_>>().join(":")
}

/// Returns the programs that these projects need and this machine lacks.
pub(crate) fn missing<'p>(projects: impl Iterator<Item = &'p Project>) -> BTreeSet<String> {
    let needed: BTreeSet<String> = projects.flat_map(|project| project.programs.clone()).collect();
    needed.into_iter().filter(|program| !is_there(program)).collect()
}

fn is_there(program: &str) -> bool {
    let line = match program {
        "pytest" => "python3 -m pytest --version".to_owned(),
        "python3" => "python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))'".to_owned(),
        "go" => "go version".to_owned(),
        "gtest" => "c++ --version && test -f /usr/include/gtest/gtest.h".to_owned(),
        "junit4" => "test -f /usr/share/java/junit4.jar -a -f /usr/share/java/hamcrest-core.jar".to_owned(),
        _ => format!("{program} --version"),
    };
    succeeds(&line, &path(Path::new("/nonexistent")))
}

fn succeeds(line: &str, path: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env_clear().env("PATH", path).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns whether fledge can run behind Landlock alone on this machine.
pub(crate) fn has_landlock() -> bool {
    let doctor = [env!("CARGO_BIN_EXE_fledge"), "doctor", "--json"];
    let mut command = Command::new(BEHIND_LANDLOCK[0]);
    command.args(&BEHIND_LANDLOCK[1..]).args(doctor).current_dir(crate::support::place_on_disk());
    let told = command.output().map(|told| told.stdout).unwrap_or_default();
    String::from_utf8_lossy(&told).contains("landlock")
}

/// Returns the toolchain folder of rustup, if rustup is used. Tests that hide the home need it.
pub(crate) fn rustup_home() -> Option<&'static Path> {
    let toolchains = sysroot().parent().filter(|folder| folder.ends_with("toolchains"));
    toolchains.and_then(Path::parent)
}

/// Returns the toolchain itself, which works without a home.
pub(crate) fn sysroot() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| {
        let told = Command::new("rustc").args(["--print", "sysroot"]).output().map(|told| told.stdout);
        PathBuf::from(String::from_utf8_lossy(&told.unwrap_or_default()).trim())
    })
}

/// Returns the program folders: first the toolchain itself, not the rustup proxy that selects one
/// by the home. The system's folders follow, then the rest of PATH without wrappers for programs
/// somewhere in the home.
fn folders() -> &'static [PathBuf] {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| {
        let ours = std::env::var_os("PATH").unwrap_or_default();
        let passes_on = |folder: &Path| folder.ends_with("shims") || folder.join("rustup").exists();
        let rest = std::env::split_paths(&ours).filter(|folder| folder.is_absolute() && !passes_on(folder));
        let mut all = vec![sysroot().join("bin"), "/usr/local/bin".into(), "/usr/bin".into(), "/bin".into()];
        all.extend(rest.collect::<Vec<_>>());
        let mut seen = BTreeSet::new();
        all.retain(|folder| seen.insert(folder.clone()));
        all
    })
}
