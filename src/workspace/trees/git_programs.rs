//! Files of a workspace that the user's git reads or runs: those that its configuration includes or
//! starts, and its hooks.

use super::TreesError;
use super::git::GitFolder;
use super::ignores::inside;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Keys whose values are paths.
const PATHS: &str = r"^(core\.(excludesfile|hookspath|attributesfile)|init\.templatedir|include(if\..*)?\.path)$";
/// Keys whose values are commands. An alias is a command only if it starts with `!`, which other
/// commands may start with too.
const COMMANDS: &str = concat!(
    r"^(core\.(fsmonitor|sshcommand|editor|pager|askpass|gitproxy|alternaterefscommand)|sequence\.editor|pager\..*",
    r"|interactive\.difffilter|filter\..*\.(clean|smudge|process)|diff\..*\.(textconv|command)|diff\.external",
    r"|merge\..*\.driver|(difftool|mergetool|guitool|browser|man)\..*\.(cmd|path)",
    r"|gpg(\..*)?\.(program|defaultkeycommand)|credential(\..*)?\.helper|remote\..*\.(uploadpack|receivepack)",
    r"|uploadpack\.packobjectshook|submodule\..*\.update|sendemail\.(.*\.)?(smtpserver|sendmailcmd|tocmd|cccmd|headercmd)",
    r"|trailer\..*\.(command|cmd)|lfs\..*\.(path|clean|smudge)|alias\..*)$"
);
/// The largest hook that is read, in bytes, and the maximum number of hooks.
const LONGEST: u64 = 256 * 1024;
const MOST: usize = 64;

/// The files of a workspace that the user's git reads or runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitPrograms {
    /// The folder of `core.hooksPath` relative to the root of the workspace, if it is inside.
    pub hooks: Option<String>,
    /// Files that the configuration includes, and targets of hooks that are links. They may be
    /// missing.
    pub files: BTreeSet<String>,
    /// Commands of the configuration, and the texts of hooks.
    pub commands: Vec<String>,
}

/// The path values of the user's configuration: the file that sets each, the key and the path.
pub(super) struct ConfiguredPaths(Vec<(PathBuf, String, String)>);

impl ConfiguredPaths {
    /// Reads the values with the user's git.
    pub(super) async fn read(git: &GitFolder, stop: &CancellationToken) -> Result<Self, TreesError> {
        let set = ask(git, &["config", "-z", "--show-origin", "--type=path", "--get-regexp", PATHS], stop).await?;
        let mut parts = set.split('\0');
        let mut values = Vec::new();
        while let (Some(origin), Some((key, path))) = (parts.next(), parts.next().and_then(|it| it.split_once('\n'))) {
            // fledge sets its own values on git's command line; these have no file.
            let file = origin.strip_prefix("file:").map(PathBuf::from);
            values.extend(file.map(|file| (file, key.to_owned(), path.to_owned())));
        }
        Ok(Self(values))
    }

    /// Returns the effective value of a key.
    pub(super) fn last(&self, key: &str) -> Option<&str> {
        self.0.iter().rfind(|(_, own, _)| own == key).map(|(.., path)| path.as_str())
    }

    /// Returns the files that the configuration includes, relative to the workspace.
    fn included(&self, roots: Checkouts<'_>) -> impl Iterator<Item = String> {
        let files = self.0.iter().filter(|(_, key, _)| key.starts_with("include"));
        let found = files.filter_map(move |(file, _, path)| roots.inside(&roots.own.join(file).parent()?.join(path)));
        found.filter(|path| !path.starts_with(".git/"))
    }

    /// Returns the file with attributes and the template of new repositories, relative to the
    /// workspace.
    fn read_by_git(&self, roots: Checkouts<'_>, top: &Path) -> impl Iterator<Item = String> {
        let files = ["core.attributesfile", "init.templatedir"].into_iter().filter_map(|key| self.last(key));
        files.filter_map(move |path| roots.inside(&top.join(path)))
    }
}

/// The root of a workspace, and the same folder in the user's main checkout. In a worktree, the
/// configuration and the hooks are those of the main checkout, and may name its files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checkouts<'p> {
    pub(super) own: &'p Path,
    pub(super) main: &'p Path,
}

impl Checkouts<'_> {
    /// Returns a path relative to the root of the checkout that has it.
    fn inside(&self, path: &Path) -> Option<String> {
        inside(self.own, path).or_else(|| inside(self.main, path))
    }
}

impl GitPrograms {
    /// Finds the files and commands. `top` is the root of the repository, `prefix` the path from
    /// there to the workspace, and `usual` the default folder of hooks.
    pub(super) async fn read(
        git: &GitFolder,
        paths: &ConfiguredPaths,
        roots: Checkouts<'_>,
        (top, prefix, usual): (&Path, &str, &Path),
        stop: &CancellationToken,
    ) -> Result<Self, TreesError> {
        let set = ask(git, &["config", "-z", "--get-regexp", COMMANDS], stop).await?;
        let pairs = set.split('\0').filter_map(|pair| pair.split_once('\n'));
        let commands = pairs.filter_map(|(key, value)| match key.starts_with("alias.") {
            true => value.strip_prefix('!'),
            false => Some(value.strip_prefix('!').unwrap_or(value)),
        });
        let mut found = Self {
            commands: commands.map(ToOwned::to_owned).collect(),
            files: paths.included(roots).chain(paths.read_by_git(roots, top)).collect(),
            hooks: None,
        };
        let folder = paths.last("core.hookspath").map(|path| top.join(path));
        found.hooks = folder.as_deref().and_then(|folder| roots.inside(folder));
        found.add_hooks(roots, folder.as_deref().unwrap_or(usual));
        let start = format!("{prefix}/");
        for command in found.commands.iter_mut().filter(|_| !prefix.is_empty()) {
            *command = command.replace(&start, "");
        }
        for root in [roots.own, roots.main].map(|root| format!("{}/", root.display())) {
            found.commands.iter_mut().for_each(|command| *command = command.replace(&root, ""));
        }
        Ok(found)
    }

    /// Adds the texts of the hooks in a folder, and the targets of hooks that are links.
    fn add_hooks(&mut self, roots: Checkouts<'_>, folder: &Path) {
        let [own, main] = [roots.own, roots.main].map(|root| root.canonicalize().unwrap_or_else(|_| root.to_owned()));
        let roots = Checkouts { own: &own, main: &main };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for hook in entries.filter(|hook| hook.extension().is_none_or(|ending| ending != "sample")).take(MOST) {
            let target = hook.canonicalize().ok().filter(|_| hook.is_symlink());
            self.files.extend(target.and_then(|target| roots.inside(&target)));
            let is_read = fs::metadata(&hook).is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST);
            let text = if is_read { fs::read(&hook).ok() } else { None };
            self.commands.extend(text.map(|text| String::from_utf8_lossy(&text).into_owned()));
        }
    }
}

async fn ask(git: &GitFolder, args: &[&str], stop: &CancellationToken) -> Result<String, TreesError> {
    let answer = git.run(args, b"", usize::MAX, stop).await?;
    Ok(if answer.code == 0 { String::from_utf8_lossy(&answer.output).into_owned() } else { String::new() })
}

#[cfg(test)]
mod tests {
    use super::super::Trees;
    use super::super::tests::{PATH, Project};
    use super::*;
    use std::os::unix::fs::symlink;

    #[tokio::test]
    async fn what_git_reads_and_runs_is_found_in_its_configuration_and_its_hooks() {
        let project = Project::new(&[("sub/a", ""), ("gitconf", "[include]\n\tpath = more\n"), ("real/push.sh", "")]);
        project.commit_all("").await;
        for (key, value) in [
            ("include.path", "../gitconf"),
            ("includeIf.onbranch:none.path", "../new/conf"),
            ("core.fsmonitor", "./sub/dev/fs.sh"),
            ("filter.f.clean", "/x/clean %f"),
            ("alias.ci", "!dev/ci.sh"),
            ("gpg.program", "./dev/sign.sh"),
            ("gpg.ssh.program", "dev/ssh.sh"),
            ("credential.helper", "!dev/cred.sh"),
            ("credential.https://example.org.helper", "dev/other.sh"),
            ("pager.log", "dev/log.sh"),
            ("sequence.editor", "dev/todo.sh"),
            ("core.editor", "dev/edit.sh"),
            ("core.sshCommand", "dev/connect.sh -q"),
            ("difftool.mine.cmd", "dev/diff.sh $LOCAL"),
            ("mergetool.mine.path", "dev/merge.sh"),
            ("merge.mine.driver", "dev/driver.sh %A"),
            ("core.attributesFile", "dev/attributes"),
            ("alias.co", "checkout"),
        ] {
            project.git("", &["config", key, value]).await;
        }
        project.write(".git/hooks/pre-commit", "./sub/a\n");
        symlink("../../real/push.sh", project.at(".git/hooks/pre-push")).unwrap();
        let read = async |dir: &str| {
            let (own, root) = (project.home.path().join("trees.git"), project.at(dir));
            let trees = Trees::open(&own, &root, PATH, &project.stop).await.unwrap();
            trees.freeze_ignores(&project.env(), &project.stop).await.unwrap()
        };
        let found = read("").await;
        assert_eq!(
            found.files.iter().collect::<Vec<_>>(),
            ["dev/attributes", "gitconf", "more", "new/conf", "real/push.sh"]
        );
        let has = |found: &GitPrograms, command: &str| found.commands.iter().any(|own| own == command);
        let signs = ["./dev/sign.sh", "dev/ssh.sh", "dev/cred.sh", "dev/other.sh", "dev/log.sh", "dev/todo.sh"];
        let others = ["dev/edit.sh", "dev/connect.sh -q", "dev/diff.sh $LOCAL", "dev/merge.sh", "dev/driver.sh %A"];
        let first = ["./sub/dev/fs.sh", "/x/clean %f", "dev/ci.sh", "./sub/a\n"];
        for command in first.into_iter().chain(signs).chain(others) {
            assert!(has(&found, command), "{command}: {found:?}");
        }
        assert!(!has(&found, "checkout") && found.hooks.is_none(), "{found:?}");
        assert!(has(&read("sub").await, "./dev/fs.sh"));
        project.git("", &["config", "core.hooksPath", "real"]).await;
        let found = read("").await;
        assert_eq!((found.hooks.as_deref(), found.files.contains("real/push.sh")), (Some("real"), false));
        let (main, linked) = (project.root(), project.home.path().join("linked"));
        project.git("", &["config", "core.hooksPath", &format!("{}/sub", main.display())]).await;
        project.git("", &["config", "core.pager", &format!("{}/dev/page.sh", main.display())]).await;
        project.git("", &["worktree", "add", "-q", &linked.display().to_string()]).await;
        let trees = Trees::open(&project.home.path().join("linked.git"), &linked, PATH, &project.stop).await.unwrap();
        let found = trees.freeze_ignores(&project.env(), &project.stop).await.unwrap();
        assert_eq!((found.hooks.as_deref(), found.files.contains("gitconf")), (Some("sub"), true), "{found:?}");
        assert!(has(&found, "dev/page.sh"), "a worktree has the configuration of the main checkout: {found:?}");
    }
}
