//! The list of packages in an installation, from the metadata and archives that package managers
//! leave.

use super::Installation;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use walkdir::WalkDir;

/// The maximum number of listed packages.
const MOST: usize = 500;
/// The maximum number of files that are checked.
const LOOKED_AT: usize = 500_000;

/// Returns the names and versions of the new packages, sorted.
pub(super) fn list(installation: &Installation) -> Vec<String> {
    let over = installation.over.iter().map(|(path, at)| (Path::new(path).to_owned(), installation.folder.join(at)));
    let whole = installation.whole().map(|(path, at)| (Path::new(path).to_owned(), at));
    let caches = installation.caches().map(|(path, at)| (path.clone(), at));
    let folders = over.chain(whole).chain(caches);
    let files = folders.flat_map(|(name, at)| {
        let files = WalkDir::new(&at).into_iter().flatten().filter(|entry| entry.file_type().is_file());
        files.map(move |entry| (name.join(entry.path().strip_prefix(&at).unwrap_or(entry.path())), entry.into_path()))
    });
    let found: BTreeSet<String> =
        files.take(LOOKED_AT).filter_map(|(name, at)| package(&name.to_string_lossy(), &at)).collect();
    found.into_iter().take(MOST).collect()
}

/// Returns the package that a file belongs to, by the file's path and, if needed, its content.
fn package(path: &str, at: &Path) -> Option<String> {
    let parts: Vec<&str> = path.split('/').collect();
    let (name, folders) = parts.split_last()?;
    match (*name, folders) {
        ("package.json", [.., "node_modules", _] | [.., "node_modules", _, _]) => node(folders, at),
        ("METADATA", [.., folder]) if !folders.contains(&"uv") => {
            let package = folder.strip_suffix(".dist-info").and_then(versioned)?;
            let plugs = fs::read_to_string(at.with_file_name("entry_points.txt")).unwrap_or_default();
            let note = if plugs.contains("[pytest11]") { " (a pytest plugin)" } else { "" };
            Some(package + note)
        }
        (name, [.., "cache", _]) if folders.contains(&"registry") => name.strip_suffix(".crate").and_then(versioned),
        (name, [before @ .., "@v"]) => {
            let start = before.windows(2).position(|two| two == ["cache", "download"])? + 2;
            Some(format!("{} {}", before[start..].join("/"), name.strip_suffix(".zip")?))
        }
        (name, [before @ .., artifact, version]) if folders.contains(&"repository") => {
            name.strip_suffix(".jar").filter(|name| *name == format!("{artifact}-{version}"))?;
            let start = before.iter().position(|part| *part == "repository")? + 1;
            Some(format!("{}:{artifact} {version}", before[start..].join(".")))
        }
        (name, [.., "files-2.1", group, artifact, version, _]) => {
            name.ends_with(".jar").then(|| format!("{group}:{artifact} {version}"))
        }
        (name, [.., "specifications"]) => name.strip_suffix(".gemspec").and_then(versioned),
        _ => None,
    }
}

/// Returns a package of Node: the folder below `node_modules`, or below a folder that begins with
/// `@`.
fn node(folders: &[&str], at: &Path) -> Option<String> {
    let [.., before, last] = folders else { return None };
    let name = match (*before, *last) {
        ("node_modules", last) if !last.starts_with(['@', '.']) => last.to_owned(),
        (scope, last) if scope.starts_with('@') => format!("{scope}/{last}"),
        _ => return None,
    };
    let text = fs::read(at).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&text).ok()?;
    Some(format!("{name} {}", manifest.get("version")?.as_str()?))
}

/// Splits `NAME-VERSION` into two words. A version begins with a digit.
fn versioned(name: &str) -> Option<String> {
    let is_version = |(at, _): &(usize, &str)| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let (at, _) = name.match_indices('-').find(is_version)?;
    Some(format!("{} {}", &name[..at], &name[at + 1..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_known_by_the_files_that_their_managers_leave() {
        let dir = crate::test_support::temp_dir();
        let manifest = dir.path().join("package.json");
        fs::write(&manifest, r#"{"version": "1.2.3"}"#).unwrap();
        let cases = [
            ("node_modules/a/package.json", Some("a 1.2.3")),
            ("web/node_modules/@s/b/package.json", Some("@s/b 1.2.3")),
            ("node_modules/.pnpm/a@1.2.3/node_modules/a/package.json", Some("a 1.2.3")),
            ("node_modules/a/lib/package.json", None),
            (".venv/lib/python3.11/site-packages/ruamel.yaml-0.18.6.dist-info/METADATA", Some("ruamel.yaml 0.18.6")),
            ("/root/.cache/uv/archive-v0/x/a-1.0.dist-info/METADATA", None),
            (
                "/root/.cargo/registry/cache/index.crates.io-1949cf8c6b5b557f/foo-bar-2-1.0.0-rc.1.crate",
                Some("foo-bar 2-1.0.0-rc.1"),
            ),
            (
                "/root/.cargo/registry/cache/index.crates.io-1949cf8c6b5b557f/serde_json-1.0.0.crate",
                Some("serde_json 1.0.0"),
            ),
            (
                "/root/go/pkg/mod/cache/download/github.com/google/uuid/@v/v1.6.0.zip",
                Some("github.com/google/uuid v1.6.0"),
            ),
            ("/root/go/pkg/mod/cache/download/github.com/google/uuid/@v/v1.6.0.info", None),
            ("/root/.m2/repository/org/slf4j/slf4j-api/2.0.0/slf4j-api-2.0.0.jar", Some("org.slf4j:slf4j-api 2.0.0")),
            ("/root/.m2/repository/org/slf4j/slf4j-api/2.0.0/slf4j-api-2.0.0.pom", None),
            (
                "/root/.gradle/caches/modules-2/files-2.1/org.slf4j/slf4j-api/2.0.0/0f/slf4j-api-2.0.0.jar",
                Some("org.slf4j:slf4j-api 2.0.0"),
            ),
            ("vendor/bundle/ruby/3.1.0/specifications/rake-13.0.gemspec", Some("rake 13.0")),
        ];
        for (path, wanted) in cases {
            assert_eq!(package(path, &manifest).as_deref(), wanted, "{path}");
        }
    }
}
