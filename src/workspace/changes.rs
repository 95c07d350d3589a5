//! Changed, ignored and listed files of a folder, as the user's git reports them.

use crate::limits::HELPER_TIMEOUT;
use crate::process::{self, Invocation, ProcessEnd};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Switches off the settings of a repository that make git start other programs.
const NO_PROGRAMS: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.bareRepository=explicit"];

/// Returns the paths below `root` that differ from the last commit, relative to `root`. New files
/// are included. `None` without a repository, a commit or git, or if the list is too long.
pub async fn changed_paths(
    root: &Path,
    env: &[(String, String)],
    stop: &CancellationToken,
) -> Option<BTreeSet<String>> {
    let prefix = answer(root, env, &["rev-parse", "--show-prefix"], stop).await?;
    let prefix = prefix.strip_suffix(b"\n").unwrap_or(&prefix).to_vec();
    let status = ["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--", "."];
    let bytes = answer(root, env, &status, stop).await?;
    // Each entry is two letters, a space, and the path from the top of the repository.
    let entries = bytes.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)?.strip_prefix(prefix.as_slice()));
    Some(entries.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// Returns the paths below `root` that git ignores; folders end in `/`. The list is empty if there
/// is no repository or the output is too long.
pub async fn ignored_paths(root: &Path, env: &[(String, String)], stop: &CancellationToken) -> Vec<String> {
    listed(root, env, &["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"], stop).await
}

async fn listed(root: &Path, env: &[(String, String)], args: &[&str], stop: &CancellationToken) -> Vec<String> {
    let bytes = answer(root, env, args, stop).await.unwrap_or_default();
    let paths = bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect()
}

/// Returns the paths below `root` that git tracks or does not ignore. The list is empty if there is
/// no repository or the output is too long.
pub async fn listed_paths(root: &Path, env: &[(String, String)], stop: &CancellationToken) -> Vec<String> {
    listed(root, env, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"], stop).await
}

/// Returns the output of git; `None` if git fails or prints more than fledge keeps.
async fn answer(root: &Path, env: &[(String, String)], args: &[&str], stop: &CancellationToken) -> Option<Vec<u8>> {
    let args: Vec<&str> = NO_PROGRAMS.iter().chain(args).copied().collect();
    let ended = process::run(git(root, env, &args), stop, &|_| {}).await;
    let output = ended.output;
    let is_whole = output.total == (output.head.len() + output.tail.len()) as u64;
    (ended.end == ProcessEnd::Exited(0) && is_whole).then(|| [output.head, output.tail].concat())
}

fn git(root: &Path, env: &[(String, String)], args: &[&str]) -> Invocation {
    Invocation {
        program: "git".into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        dir: root.to_owned(),
        env: process::with_path_outside(env, root).into(),
        timeout: Some(HELPER_TIMEOUT),
        grace: Duration::ZERO,
        linger: Duration::ZERO,
        log: None,
        log_limit: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn done(root: &Path, env: &[(String, String)], args: &[&str]) {
        let ended = process::run(git(root, env, args), &CancellationToken::new(), &|_| {}).await;
        assert_eq!(ended.end, ProcessEnd::Exited(0), "{}", ended.output.text(1000));
    }

    #[tokio::test]
    async fn changed_new_and_removed_paths_are_told_and_outside_a_repository_nothing_is_known() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let home = root.to_string_lossy().into_owned();
        let ceiling = root.parent().unwrap().to_string_lossy().into_owned();
        let env = [
            pair("PATH", "/usr/local/bin:/usr/bin:/bin"),
            pair("HOME", &home),
            pair("GIT_CEILING_DIRECTORIES", &ceiling),
        ];
        let stop = CancellationToken::new();
        assert_eq!(changed_paths(root, &env, &stop).await, None);
        std::fs::create_dir(root.join("src")).unwrap();
        for name in ["a", "b", "src/c d"] {
            std::fs::write(root.join(name), "1").unwrap();
        }
        let me = ["-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "x"];
        done(root, &env, &["init", "-q", "."]).await;
        done(root, &env, &["add", "-A"]).await;
        done(root, &env, &me).await;
        assert_eq!(changed_paths(root, &env, &stop).await, Some(BTreeSet::new()));
        std::fs::write(root.join("src/c d"), "2").unwrap();
        std::fs::write(root.join("src/new"), "2").unwrap();
        std::fs::remove_file(root.join("a")).unwrap();
        let expected = ["a", "src/c d", "src/new"].map(str::to_owned).into();
        assert_eq!(changed_paths(root, &env, &stop).await, Some(expected));
        let below = ["c d", "new"].map(str::to_owned).into();
        assert_eq!(changed_paths(&root.join("src"), &env, &stop).await, Some(below), "a project below the top");
    }
}
