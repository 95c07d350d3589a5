//! Build output that fledge keeps between rooms by default: cargo's, which contains every compiled
//! dependency, and the folders in which CMake and Meson build. Only the run on the base fills it,
//! never an agent. Pure, except for looks at a folder.

use crate::lane::{Lane, RoomKind};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The maximum number of folders of build output in a project.
const MOST: usize = 8;
/// Words of a step that may start any build.
const ANY: [&str; 2] = ["make", "just"];
/// Words of a step that start cargo.
const CARGO: [&str; 2] = ["cargo", "maturin"];
/// The file by which cargo recognizes its build output.
const SIGN: &str = ".rustc_info.json";

/// Adds build output to the lanes that fill it: a folder `target` beside the outermost manifests of
/// cargo among `paths`, the files of the base, and the folders that steps give to CMake and Meson.
/// Leaves out folders with files of the base, and folders that a `cache` of the lane names or
/// contains.
pub(super) fn add(lanes: &mut [Lane], paths: &[String]) {
    let manifests: BTreeSet<&str> =
        paths.iter().filter_map(|path| path.strip_suffix("Cargo.toml")).filter(|dir| is_dir(dir)).collect();
    let is_inner = |dir: &str| manifests.iter().any(|other| *other != dir && dir.starts_with(other));
    let targets = manifests.iter().filter(|dir| !is_inner(dir)).map(|dir| format!("{dir}target"));
    let is_free = |target: &String| !paths.iter().any(|path| is_at(target, path));
    let targets: Vec<String> = targets.filter(is_free).take(MOST).collect();
    for lane in lanes.iter_mut().filter(|lane| lane.room == RoomKind::Clean) {
        let targets = if may_start(lane, &CARGO) { targets.as_slice() } else { &[] };
        let configured: BTreeSet<String> = lane.steps.iter().flat_map(|step| configured_folders(&step.run)).collect();
        let folders = targets.iter().chain(configured.iter().filter(|folder| is_free(folder)).take(MOST));
        let is_new = |folder: &&String| !lane.cache.iter().any(|cache| is_at(cache, folder) || is_at(folder, cache));
        lane.built = folders.filter(is_new).cloned().collect();
    }
}

/// Returns the build folders in a command, below the root of the project: `build` in
/// `cmake -S . -B build` and in `meson setup build`. Such a command configures the folder again in
/// each room, and the build compiles what is newer than its output.
fn configured_folders(command: &str) -> BTreeSet<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    if words.iter().any(|word| matches!(*word, "cd" | "pushd")) {
        return BTreeSet::new();
    }
    let is_name = |part: &str| !matches!(part, "" | "." | "..") && !part.starts_with('-');
    let is_plain = |folder: &&str| {
        folder.chars().all(|c| c.is_ascii_alphanumeric() || "._-/".contains(c)) && folder.split('/').all(is_name)
    };
    let folders = (0..words.len()).filter_map(|index| configured_folder(&words, index));
    folders.map(|folder| folder.trim_end_matches('/')).filter(is_plain).map(ToOwned::to_owned).collect()
}

/// Returns the build folder that the word at this index introduces.
fn configured_folder<'a>(words: &[&'a str], index: usize) -> Option<&'a str> {
    let is_after = |program: &str| words[..index].contains(&program);
    match words[index] {
        "-B" if is_after("cmake") => words.get(index + 1).copied(),
        "setup" if index > 0 && words[index - 1] == "meson" => words.get(index + 1).copied(),
        word if is_after("cmake") => word.strip_prefix("-B"),
        _ => None,
    }
}

/// Returns whether a folder is build output that builds of other sources may start with. Cargo
/// rebuilds what has changed, and removes nothing that matters.
pub(super) fn is_start(folder: &Path) -> bool {
    folder.join(SIGN).is_file()
}

/// Returns whether builds at the path `at` can use a folder of build output. CMake and Meson write
/// the path of the sources into their files, and refuse a folder with another path.
pub(super) fn fits(folder: &Path, at: &Path) -> bool {
    let named = ["CMakeCache.txt", "build.ninja"].map(|name| fs::read(folder.join(name)).ok());
    let is_named = |text: &Vec<u8>| String::from_utf8_lossy(text).contains(&*at.to_string_lossy());
    named.iter().flatten().all(is_named)
}

fn is_dir(dir: &str) -> bool {
    dir.is_empty() || dir.ends_with('/')
}

fn is_at(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns whether a step of a lane names one of these programs, or a program that may start any
/// build.
pub(super) fn may_start(lane: &Lane, programs: &[&str]) -> bool {
    lane.steps.iter().any(|step| programs.iter().chain(&ANY).any(|word| step.run.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lane::parse;

    fn built(lane: &str, paths: &[&str]) -> Vec<String> {
        let mut lanes = [parse("verify", "lanes/verify.yaml", lane).unwrap()];
        add(&mut lanes, &paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
        let [lane] = lanes;
        lane.built
    }

    #[test]
    fn the_output_of_cargo_is_kept_beside_the_outermost_manifests() {
        let paths = ["Cargo.toml", "crates/a/Cargo.toml", "src/lib.rs"];
        assert_eq!(built("steps: [{ run: cargo test }]", &paths), ["target"]);
        let two = ["native/Cargo.toml", "native/inner/Cargo.toml", "other/Cargo.toml", "not-Cargo.toml"];
        assert_eq!(built("steps: [{ run: make test }]", &two), ["native/target", "other/target"]);
    }

    #[test]
    fn build_output_fits_where_it_names_the_path() {
        let dir = crate::test_support::temp_dir();
        assert!(fits(dir.path(), Path::new("/p/x")), "nothing names a path");
        fs::write(dir.path().join("CMakeCache.txt"), "CMAKE_HOME_DIRECTORY:INTERNAL=/p/x\n").unwrap();
        assert!(fits(dir.path(), Path::new("/p/x")) && !fits(dir.path(), Path::new("/p/y")));
    }

    #[test]
    fn the_folders_of_cmake_and_meson_are_kept() {
        for (command, folders) in [
            ("cmake -B build -S . && cmake --build build", vec!["build"]),
            ("cmake -S . -Bout/debug/ -DX=1", vec!["out/debug"]),
            ("meson setup build && meson test -C build", vec!["build"]),
            ("cmake -B a . && cmake -B b .", vec!["a", "b"]),
            ("cd sub && cmake -B build", vec![]),
            ("cmake -B ../out .", vec![]),
            ("cmake -B /tmp/built .", vec![]),
            ("cmake -B \"$OUT\" .", vec![]),
            ("cmake -B . .", vec![]),
            ("cmake -B src .", vec![]),
            ("meson setup -Dx=y build", vec![]),
            ("python3 setup build", vec![]),
            ("sort -B build", vec![]),
        ] {
            let lane = format!("steps: [{{ run: {} }}]", serde_json::to_string(command).unwrap());
            assert_eq!(built(&lane, &["CMakeLists.txt", "src/a.c"]), folders, "{command}");
        }
    }

    #[test]
    fn nothing_is_kept_that_the_base_or_the_lane_has_another_word_on() {
        let none: [&str; 0] = [];
        assert_eq!(built("steps: [{ run: cargo test }]", &["Cargo.toml", "target/a.txt"]), none);
        assert_eq!(built("cache: [target]\nsteps: [{ run: cargo test }]", &["Cargo.toml"]), none);
        assert_eq!(built("cache: [target/debug]\nsteps: [{ run: cargo test }]", &["Cargo.toml"]), none);
        assert_eq!(built("room: in-place\nsteps: [{ run: cargo test }]", &["Cargo.toml"]), none);
        assert_eq!(built("steps: [{ run: npm test }]", &["Cargo.toml"]), none);
        assert_eq!(built("steps: [{ run: cargo test }]", &["go.mod"]), none);
    }
}
