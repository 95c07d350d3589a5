//! Lists of paths in a user's home: those that programs need, and those that they must not see.

use crate::process::{Variables, has_password, is_secret};
use std::io;
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
    ".mix",
    ".hex",
    ".pub-cache",
    ".elm",
    ".opam",
    ".cabal",
    ".stack",
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
    ".local/share/gem",
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

/// Toolchains, and folders in them, into which tools write locks, logs and indexes while they work.
/// In a sandbox each is a private folder whose entries are read-only.
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
    ".mix",
    ".hex",
    ".pub-cache",
    ".elm",
    ".bun",
    ".dotnet",
    ".nuget",
    ".cache/pip",
    ".cache/uv",
    ".cache/pypoetry",
    ".cache/yarn",
    ".cache/pnpm",
];
/// The maximum number of entries of a folder that a sandbox shows one by one.
pub(super) const MOST_ENTRIES: usize = 64;

/// Credentials below a home. They are hidden even if the home itself is the workspace.
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

/// Variables that name the folder of a toolchain, each with the default place of the toolchain
/// below the home.
pub(super) const LED_TO: &[(&str, &str)] = &[
    ("CARGO_HOME", ".cargo"),
    ("RUSTUP_HOME", ".rustup"),
    ("GOPATH", "go"),
    ("NVM_DIR", ".nvm"),
    ("PYENV_ROOT", ".pyenv"),
    ("RBENV_ROOT", ".rbenv"),
    ("VOLTA_HOME", ".volta"),
    ("npm_config_cache", ".npm"),
    ("ASDF_DATA_DIR", ".asdf"),
    ("MISE_DATA_DIR", ".local/share/mise"),
    ("COREPACK_HOME", ".cache/node/corepack"),
    ("PNPM_HOME", ".local/share/pnpm"),
    ("SDKMAN_DIR", ".sdkman"),
    ("MIX_HOME", ".mix"),
    ("HEX_HOME", ".hex"),
    ("PUB_CACHE", ".pub-cache"),
    ("ELM_HOME", ".elm"),
];

/// Variables that name an installation, in any place.
pub(super) const INSTALLATIONS: &[&str] = &[
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "ASDF_DIR",
    "BUN_INSTALL",
    "CONDA_PREFIX",
    "DENO_DIR",
    "DENO_INSTALL",
    "DOTNET_ROOT",
    "FLUTTER_ROOT",
    "FNM_DIR",
    "GOENV_ROOT",
    "GOROOT",
    "GRADLE_HOME",
    "JAVA_HOME",
    "JENV_ROOT",
    "M2_HOME",
    "MAVEN_HOME",
    "NODENV_ROOT",
    "PIPX_HOME",
    "POETRY_HOME",
    "PROTO_HOME",
    "UV_PYTHON_INSTALL_DIR",
    "UV_TOOL_DIR",
    "VIRTUAL_ENV",
];

/// Files below a home that name versions of programs, for the version managers that start these
/// programs.
pub(super) const VERSIONS: &[&str] = &[
    ".tool-versions",
    ".asdfrc",
    ".nvmrc",
    ".node-version",
    ".python-version",
    ".ruby-version",
    ".java-version",
    ".go-version",
];
/// The folder with a link for each configuration that mise trusts. mise also writes there.
const TRUSTED: &str = ".local/state/mise/trusted-configs";
/// The maximum number of trust links that are shown.
const MOST_TRUSTED: usize = 500;
/// Files in TOML that name versions. Users also set variables in them.
const TOML_VERSIONS: &[&str] = &[".config/mise/config.toml", ".config/mise.toml", ".mise.toml", "mise.toml"];
/// The folder of further files of this kind.
const TOML_FOLDER: &str = ".config/mise/conf.d";
/// Tables of these files that hold no values of variables.
const PLAIN_TABLES: [&str; 6] = ["tools", "alias", "tool_alias", "plugins", "settings", "tasks"];
/// The table with values of variables.
const ENV_TABLE: &str = "[env]";
/// Words that mark a line as a possible credential.
const SECRET_WORDS: [&str; 5] = ["token", "secret", "password", "passwd", "key"];

/// Returns the files of a home that name versions of programs and contain no credentials.
pub(super) fn version_files(home: &Path) -> impl Iterator<Item = PathBuf> {
    let plain = VERSIONS.iter().map(|name| home.join(name)).filter(|path| path.exists());
    plain.chain(toml_files(home).filter(|path| shows_versions_alone(path)))
}

/// Returns the links of a home by which mise trusts configuration.
pub(super) fn trust_links(home: &Path) -> impl Iterator<Item = PathBuf> {
    let links = std::fs::read_dir(home.join(TRUSTED)).into_iter().flatten().flatten().map(|entry| entry.path());
    links.filter(|path| path.is_symlink()).take(MOST_TRUSTED)
}

/// Returns whether a home names versions of programs in a file that a sandbox does not show.
pub fn hides_versions(home: &Path) -> bool {
    toml_files(home).any(|path| path.exists() && !shows_versions_alone(&path))
}

fn shows_versions_alone(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| names_versions_alone(&text))
}

/// Returns the files of a home in which mise looks for versions.
fn toml_files(home: &Path) -> impl Iterator<Item = PathBuf> {
    let more = std::fs::read_dir(home.join(TOML_FOLDER)).into_iter().flatten().flatten().map(|file| file.path());
    let more = more.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    TOML_VERSIONS.iter().map(|name| home.join(name)).chain(more)
}

/// Returns whether a file of mise names versions of tools and sets no variables, except for plain
/// ones without a secret in `[env]`.
fn names_versions_alone(toml: &str) -> bool {
    let mut sets_variables = false;
    let mut is_plain = |line: &str| {
        let (line, small) = (line.trim(), line.to_lowercase());
        if SECRET_WORDS.iter().any(|word| small.contains(word)) {
            return false;
        }
        if let Some(header) = line.strip_prefix('[') {
            sets_variables = line == ENV_TABLE;
            let table = header.trim_start_matches('[').split(['.', ']']).next().unwrap_or_default();
            return sets_variables || PLAIN_TABLES.contains(&table.trim());
        }
        let is_other = !sets_variables && !small.trim_start().starts_with("env");
        is_other || line.is_empty() || line.starts_with('#') || (sets_variables && is_plain_variable(line))
    };
    toml.lines().all(&mut is_plain)
}

/// Returns whether a line of `[env]` sets a variable to a plain value: no template, no directive of
/// mise (`_.file`), no secret.
fn is_plain_variable(line: &str) -> bool {
    let Some((name, value)) = line.split_once('=') else { return false };
    let (name, value) = (name.trim(), value.trim());
    let quoted = |quote: char| {
        let (inner, rest) = value.strip_prefix(quote)?.split_once(quote)?;
        let is_end = rest.trim().is_empty() || rest.trim().starts_with('#');
        Some(is_end && !inner.contains(['\\', '{', '$']) && !has_password(inner))
    };
    let is_name = !name.starts_with('_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_bare = || value.chars().all(|c| c.is_ascii_alphanumeric()) && !value.is_empty();
    is_name && !name.is_empty() && !is_secret(name) && quoted('"').or(quoted('\'')).unwrap_or_else(is_bare)
}

/// Makes a home and a temporary folder in `own` for a program without a sandbox. Links in the home
/// lead to the toolchains of the user's home, which a sandbox would show. Returns the environment
/// with both folders.
///
/// # Errors
/// If a folder or a link cannot be made.
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
    theirs.map_or(Ok(()), |theirs| link_versions(theirs, &home))?;
    let changed = [("HOME", &home), ("TMPDIR", &temp)];
    let changed = changed.map(|(name, at)| (name.to_owned(), at.to_string_lossy().into_owned()));
    Ok(env.with(changed.iter().map(|(name, value)| (name, value))))
}

/// Links the files of another home that name versions of programs, and what mise trusts there, into
/// a home.
fn link_versions(theirs: &Path, home: &Path) -> io::Result<()> {
    for real in version_files(theirs).chain(trust_links(theirs)) {
        let at = home.join(real.strip_prefix(theirs).unwrap_or(&real));
        at.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        if at.symlink_metadata().is_err() {
            std::os::unix::fs::symlink(real, at)?;
        }
    }
    Ok(())
}

/// Links toolchains of the user's home into the private home of a sandbox without mounts. Skips
/// toolchains that a variable names, and those that their tools write into.
///
/// # Errors
/// If a link cannot be made.
pub(super) fn link_toolchains(theirs: &Path, home: &Path) -> io::Result<()> {
    let is_led_to = |name: &str| LED_TO.iter().any(|(_, place)| *place == name);
    for name in TOOLCHAINS.iter().filter(|name| !is_led_to(name) && !WRITTEN.contains(name)) {
        let (real, at) = (theirs.join(name), home.join(name));
        if real.is_dir() && at.symlink_metadata().is_err() {
            at.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            std::os::unix::fs::symlink(real, at)?;
        }
    }
    link_versions(theirs, home)
}

/// Returns whether a folder is, is in, or contains a credential listed for any home.
pub fn holds_credentials(folder: &Path) -> bool {
    let mut homes = folder.ancestors().skip(1).filter_map(|home| Some((home, folder.strip_prefix(home).ok()?)));
    homes.any(|(home, rest)| {
        let leads_to = |at: &str| Path::new(at).starts_with(rest) && home.join(at).exists();
        CREDENTIALS.iter().any(|at| rest.starts_with(at) || leads_to(at))
    })
}

/// Returns the homes that contain a folder of programs, each with the toolchain that the folder
/// belongs to.
pub(super) fn of_program(folder: &Path) -> impl Iterator<Item = (&Path, &'static str)> {
    let homes = folder.ancestors().skip(1).filter_map(|home| Some((home, folder.strip_prefix(home).ok()?)));
    homes.flat_map(|(home, rest)| {
        let own = TOOLCHAINS.iter().copied().filter(move |toolchain| rest.starts_with(toolchain));
        own.map(move |toolchain| (home, toolchain))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_versions_is_shown_unless_it_sets_variables() {
        for (text, is_shown) in [
            ("[tools]\nnode = \"22\"\n[settings]\nexperimental = true\n", true),
            ("min_version = '2024'\n[tools.python]\nversion = '3'\n", true),
            ("[tools]\nnode = '22'\n[env]\n# plain\nA = 'b' # c\nB=\"c\"\nC = true\n[settings]\nd = ['x']\n", true),
            ("[env]\nA = '{{ exec(command=\"x\") }}'\n", false),
            ("[env]\nA = \"x$HOME\"\n", false),
            ("[env]\nA = { value = 'b', redact = true }\n", false),
            ("[env]\nA = \"\"\"\nb\"\"\"\n", false),
            ("[env]\n_.file = '.env'\n", false),
            ("[env]\nDB_DSN = 'b'\n", false),
            ("[env]\nA = 'https://me:b@host'\n", false),
            ("[env]\nA = false\n[env._]\nfile = 'x'\n", false),
            ("env.A = 'b'\n", false),
            ("[settings]\ngithub_token = 'x'\n", false),
            ("[[env]]\nA = 'b'\n", false),
        ] {
            assert_eq!(names_versions_alone(text), is_shown, "{text}");
        }
    }
}
