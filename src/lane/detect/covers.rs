//! The question whether checks of the root cover a module of the same kind in a folder below. Pure.

use super::facts::{ProjectFacts, has_table};
use toml::de::{DeTable, DeValue};

/// Returns true if checks of the root cover a folder with this marker. The root must have checks of
/// this kind.
pub(super) fn covers(root: &ProjectFacts, folder: &str, marker: &str) -> bool {
    match marker {
        "Cargo.toml" => is_cargo_member(root.text("Cargo.toml"), folder),
        "package.json" => {
            let is_said =
                ["pnpm-workspace.yaml", "lerna.json", "nx.json", "turbo.json"].iter().any(|file| root.has(file));
            is_said || root.text("package.json").contains("\"workspaces\"")
        }
        // These tools stop at a folder that is a separate module.
        "go.mod" | "Gemfile" | "Package.swift" => false,
        // pytest and unittest search every folder. Gradle and Maven list their modules. Recipes are
        // not searched twice.
        _ => true,
    }
}

/// Returns true if a crate in this folder is a member of the root's workspace.
fn is_cargo_member(text: &str, folder: &str) -> bool {
    if !has_table(text, "workspace") {
        return false;
    }
    let Ok(table) = DeTable::parse(text) else { return true }; // cargo reports the error
    let workspace = table.get_ref().get("workspace").and_then(|workspace| workspace.get_ref().as_table());
    let listed = |key: &str| {
        let paths = workspace.and_then(|workspace| workspace.get(key)).and_then(|paths| paths.get_ref().as_array());
        paths.into_iter().flatten().filter_map(|path| path.get_ref().as_str()).any(|path| is_meant(path, folder))
    };
    !listed("exclude") && (listed("members") || depends_on(table.get_ref(), folder))
}

/// Returns true if a path in a manifest, with `*` as a wildcard for one name, matches this folder.
fn is_meant(path: &str, folder: &str) -> bool {
    let names =
        |path: &str| path.split('/').filter(|name| !["", "."].contains(name)).map(str::to_owned).collect::<Vec<_>>();
    let (path, folder) = (names(path), names(folder));
    let is_name = |(wanted, name): (&String, &String)| match wanted.split_once('*') {
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
        None => wanted == name,
    };
    path.len() == folder.len() && path.iter().zip(&folder).all(is_name)
}

/// Returns true if a manifest depends on the crate in this folder. Crates of this kind are members
/// too.
fn depends_on(table: &DeTable<'_>, folder: &str) -> bool {
    let is_path = |value: &DeValue<'_>| value.as_str().is_some_and(|path| is_meant(path, folder));
    table.iter().any(|(key, value)| {
        let is_below = value.get_ref().as_table().is_some_and(|below| depends_on(below, folder));
        is_below || key.get_ref() == "path" && is_path(value.get_ref())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_is_a_member_where_the_workspace_names_it_or_something_depends_on_it() {
        let is_member = |text: &str| is_cargo_member(text, "crates/api");
        assert!(is_member("[workspace]\nmembers = ['crates/*']"));
        assert!(is_member("[workspace]\nmembers = ['./crates/a*']"));
        assert!(is_member("[workspace]\n[dependencies]\napi = { path = 'crates/api' }"));
        assert!(!is_member("[workspace]\nmembers = ['crates/*']\nexclude = ['crates/api']"));
        assert!(!is_member("[workspace]\nmembers = ['crates', 'crates/b*', '*']"));
        assert!(!is_member("[package]\nname = 'a'"));
    }
}
