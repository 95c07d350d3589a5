//! What is in a user's home that programs need, and what is none of their business. Lists; a wall is made of them.

use crate::process::Variables;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Toolchains and their caches, below a home.
pub(super) const TOOLCHAINS: &[&str] = &[
    ".cargo",
    ".rustup",
    "go",
    ".npm",
    ".nvm",
    ".fnm",
    ".volta",
    ".bun",
    ".deno",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".sdkman",
    ".ghcup",
    ".m2",
    ".gradle",
    ".gem",
    ".dotnet",
    ".nuget",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/pnpm",
    ".local/share/uv",
    ".local/share/pipx",
    ".local/pipx",
    ".local/share/hatch",
    ".local/share/virtualenvs",
    ".local/share/nvm",
    ".local/share/fnm",
    ".local/share/rtx",
    ".cache/node/corepack",
    ".npm-global",
    ".nodenv",
    ".goenv",
    ".jenv",
    ".proto",
    ".pixi",
    "miniconda3",
    "anaconda3",
    "miniforge3",
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    ".cache/yarn",
    ".cache/pnpm",
    ".cache/deno",
];

/// Those of them that their tools write into while they work: locks, logs, indexes. Each folder is private then, with what is in it read-only.
pub(super) const WRITTEN: &[&str] = &[
    ".cargo",
    ".cargo/registry",
    ".cargo/git",
    "go",
    "go/pkg",
    "go/pkg/mod",
    "go/pkg/mod/cache",
    ".npm",
    ".npm/_cacache",
    ".m2",
    ".gradle",
    ".gradle/caches",
    ".gradle/wrapper",
    ".gradle/wrapper/dists",
    ".gem",
    ".bun",
    ".dotnet",
    ".nuget",
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    ".cache/yarn",
    ".cache/pnpm",
];
/// The most entries of a folder that are shown one by one.
pub(super) const MOST_ENTRIES: usize = 64;

/// Credentials below a home, also where the home itself is the workspace.
pub(super) const CREDENTIALS: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".pgpass",
    ".my.cnf",
    ".vault-token",
    ".terraform.d",
    ".terraformrc",
    ".boto",
    ".s3cfg",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".composer/auth.json",
    ".bundle/config",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/pip",
    ".config/pypoetry/auth.toml",
    ".config/containers/auth.json",
    ".config/rclone",
    ".config/fledge",
    ".local/share/keyrings",
    ".local/state/fledge",
    ".password-store",
    ".bash_history",
];

/// Variables that lead to a toolchain which is else looked for in the home, with its place there.
pub(super) const LED_TO: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("GOPATH", "go"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("VOLTA_HOME", ".volta"),
    ("npm_config_cache", ".npm"),
];

/// A home and a temporary folder of its own for a program that nothing stands around, both made anew in `own`; the toolchains of the user's
/// home are found in it by links, as they are seen behind a wall.
///
/// # Errors
/// When they cannot be made.
pub fn at_home_in(own: &Path, env: &Variables) -> io::Result<Variables> {
    let [home, temp] = ["home", "tmp"].map(|name| own.join(name));
    [&home, &temp].into_iter().try_for_each(std::fs::create_dir_all)?;
    let theirs = env.get("HOME").map(Path::new).filter(|theirs| theirs.is_absolute());
    for toolchain in theirs.iter().flat_map(|_| TOOLCHAINS) {
        let (real, at) = (theirs.map(|it| it.join(toolchain)).unwrap_or_default(), home.join(toolchain));
        if real.is_dir() && at.symlink_metadata().is_err() {
            at.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::os::unix::fs::symlink(real, at)?;
        }
    }
    let changed = [("HOME", &home), ("TMPDIR", &temp)];
    let changed = changed.map(|(name, at)| (name.to_owned(), at.to_string_lossy().into_owned()));
    Ok(env.with(changed.iter().map(|(name, value)| (name, value))))
}

/// Whether a folder is in, is, or has in it what is listed among the credentials of any home.
pub fn holds_credentials(folder: &Path) -> bool {
    folder.ancestors().any(|home| {
        CREDENTIALS.iter().any(|at| {
            let secret = home.join(at);
            folder.starts_with(&secret) || (home != folder && secret.starts_with(folder) && secret.exists())
        })
    })
}

/// The folders that links in a folder of programs lead to, each with all that its program needs: `~/bin/tool` may lead to
/// `~/apps/tool/bin/tool`, which needs `~/apps/tool`. Only those below `home` count, and never the home itself or a folder right in it.
pub(super) fn behind_links(folder: &Path, home: &Path) -> Vec<PathBuf> {
    let is_deep = |path: &&Path| path.strip_prefix(home).is_ok_and(|below| below.components().count() > 1);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let runs =
        |real: &PathBuf| real.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    let real = links.filter_map(|link| link.path().canonicalize().ok()).filter(runs);
    let wholes = real.filter_map(|real| {
        let around = real.ancestors().skip(1).take(2).collect::<Vec<_>>();
        around.into_iter().rev().find(|path| is_deep(path) && !holds_credentials(path)).map(Path::to_owned)
    });
    let mut wholes: Vec<PathBuf> = wholes.collect();
    wholes.sort();
    wholes.dedup();
    wholes
}

/// The homes that a folder of programs is in, each with the toolchain that has it there.
pub(super) fn of_program(folder: &Path) -> impl Iterator<Item = (&Path, &'static str)> {
    let in_home = |home: &&Path, toolchain: &str| folder.starts_with(home.join(toolchain));
    folder.ancestors().skip(1).flat_map(move |home| {
        TOOLCHAINS
            .iter()
            .copied()
            .filter(move |toolchain| in_home(&home, toolchain))
            .map(move |toolchain| (home, toolchain))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_in_a_folder_of_programs_leads_to_what_its_program_needs_and_to_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for (link, to) in [
            ("tool", "apps/tool/bin/tool"),
            ("lone", "lone/x"),
            ("own", "own"),
            ("secret", ".aws/sso/cache/x"),
            ("data", "apps/data/bin/x"),
        ] {
            std::fs::create_dir_all(home.join("bin")).unwrap();
            std::fs::create_dir_all(home.join(to).parent().unwrap()).unwrap();
            std::fs::write(home.join(to), "").unwrap();
            let mode = if link == "data" { 0o644 } else { 0o755 };
            std::fs::set_permissions(home.join(to), std::fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::symlink(home.join(to), home.join("bin").join(link)).unwrap();
        }
        assert_eq!(behind_links(&home.join("bin"), &home), [home.join("apps/tool")]);
    }
}
