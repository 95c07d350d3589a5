//! A mount namespace with layers over folders and pinned files. Programs find a folder unchanged
//! and may write in it, and what they write goes elsewhere. One process holds the namespace, and
//! each program that sees it joins it first. This process reads and writes in it through `/proc`;
//! see [`MountView::seen`].

use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// The first argument of a holder (`fledge layers hold`) and of the programs that join it
/// (`fledge layers join PID PROGRAM ARGUMENTS`).
pub const LAYERS: &str = "layers";
/// The prefix of the reason that is printed if a program could not join.
pub(super) const SAYS: &[u8] = b"fledge layers: ";
/// The line that the holder prints when everything in a request is mounted.
const READY: &str = "ready";

/// A writable layer over a folder (overlayfs).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ViewLayer {
    /// The folder below. It is never written.
    pub lower: PathBuf,
    /// The folders that earlier layers over the same folder have kept, the newest first. They are
    /// between `lower` and `over`, and are not written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub between: Vec<PathBuf>,
    /// The folder that keeps what is written, in `upper`, and the kernel's working files, in
    /// `work`. No two layers share one.
    pub over: PathBuf,
    /// The path at which programs find the combined folder.
    pub at: PathBuf,
}

/// A path that cannot be renamed, removed or replaced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedPath {
    /// The file or folder.
    pub at: PathBuf,
    /// True if it cannot be written either. A folder that can be written accepts new files.
    pub read_only: bool,
}

/// Mounts of one request: first pins, outer folders before inner ones, then layers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mounts {
    /// The pins.
    pub pins: Vec<PinnedPath>,
    /// The layers.
    pub layers: Vec<ViewLayer>,
}

impl Mounts {
    /// Returns whether nothing is to be mounted.
    pub fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.layers.is_empty()
    }

    /// Moves mounts below `from` to the same places below `to`.
    pub fn relocate(&mut self, from: &Path, to: &Path) {
        let places = self.pins.iter_mut().map(|pin| &mut pin.at).chain(self.layers.iter_mut().map(|it| &mut it.at));
        for at in places {
            if let Ok(below) = at.strip_prefix(from) {
                *at = to.join(below);
            }
        }
    }
}

/// The reason why a program could not see the mounts.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The request cannot be read.
    #[error("cannot read the list of mounts: {0}")]
    Layers(#[from] serde_json::Error),
    /// The system refuses a step.
    #[error("cannot {what}: {source}")]
    Refused {
        /// The step.
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// The program could not be started.
    #[error("{}", super::super::why_not(.program, .source))]
    Program {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
}

impl ViewError {
    /// Returns the exit code that a shell would give: 127 for a program that is missing, else 126.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Program { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } | Self::Layers(_) | Self::Refused { .. } => 126,
        }
    }

    /// Returns the line to print.
    pub fn line(&self) -> String {
        format!("{}{self}", String::from_utf8_lossy(SAYS))
    }
}

fn refused<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> ViewError {
    |error| ViewError::Refused { what: what.into(), source: error.into() }
}

/// The namespace, which exists as long as this value. Cheap to clone.
#[derive(Debug, Clone)]
pub struct MountView(std::sync::Arc<Holder>);

#[derive(Debug)]
struct Holder {
    process: u32,
    /// Ends with its standard input, and so also if this process dies.
    child: tokio::sync::Mutex<tokio::process::Child>,
}

impl PartialEq for MountView {
    fn eq(&self, other: &Self) -> bool {
        self.0.process == other.0.process
    }
}

impl Eq for MountView {}

impl MountView {
    /// Returns the process that holds the namespace.
    pub(super) fn process(&self) -> u32 {
        self.0.process
    }

    /// Returns the path by which this process reaches a file or folder as programs in the namespace
    /// see it. Canonicalizing the path leads out of the namespace again, and so does following a
    /// link to an absolute path.
    pub fn seen(&self, path: &Path) -> PathBuf {
        let mut seen = PathBuf::from(format!("/proc/{}/root", self.process()));
        seen.extend(path.components().filter(|part| *part != std::path::Component::RootDir));
        seen
    }

    /// Makes a namespace that `helper`, the fledge program itself, holds. Mounts layers and pins in
    /// it as [`MountView::add`] does.
    ///
    /// # Errors
    /// The reason if this system has no overlayfs for users, or no namespaces.
    #[cfg(target_os = "linux")]
    pub async fn open(helper: &Path, mounts: &Mounts) -> Result<Self, String> {
        use std::process::Stdio;
        #[expect(clippy::disallowed_methods, reason = "this process starts itself")]
        let mut command = tokio::process::Command::new(helper);
        command.args([LAYERS, "hold"]).env_clear().current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| error.to_string())?;
        let process = child.id().ok_or("the holder of the mounts ended")?;
        let view = Self(std::sync::Arc::new(Holder { process, child: child.into() }));
        view.add(mounts).await?;
        Ok(view)
    }

    /// Mounts more layers and pins, and makes the folders that keep what is written. After an error
    /// the namespace is gone.
    ///
    /// # Errors
    /// The reason.
    #[cfg(target_os = "linux")]
    pub async fn add(&self, mounts: &Mounts) -> Result<(), String> {
        use std::os::unix::fs::PermissionsExt;
        use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
        for layer in &mounts.layers {
            for part in ["upper", "work"] {
                let path = layer.over.join(part);
                std::fs::create_dir_all(&path).map_err(|error| format!("cannot make {}: {error}", path.display()))?;
            }
        }
        let text = |error: io::Error| error.to_string();
        let mut child = self.0.child.lock().await;
        let mut reported = serde_json::to_vec(mounts).map_err(|error| error.to_string())?;
        reported.push(b'\n');
        let stdin = child.stdin.as_mut().ok_or("the holder of the mounts has no pipes")?;
        // If the holder has already ended, its last output gives the reason.
        let written = stdin.write_all(&reported).await;
        let mut line = String::new();
        let stdout = child.stdout.as_mut().ok_or("the holder of the mounts has no pipes")?;
        // The holder answers each line with one line, so nothing that is read ahead is lost.
        let mut answer = BufReader::new(stdout);
        let received = tokio::time::timeout(crate::limits::HELPER_TIMEOUT, answer.read_line(&mut line)).await;
        received.map_err(|_| "mounting took too long".to_owned())?.map_err(text)?;
        if written.is_ok() && line.trim_end() == READY {
            for layer in &mounts.layers {
                // The kernel closes its own folder to everyone but root. Once the folder is open,
                // an ordinary user can remove it.
                let own = layer.over.join("work/work");
                let _else_removing_fails = std::fs::set_permissions(own, PermissionsExt::from_mode(0o700));
            }
            return Ok(());
        }
        let mut why = String::new();
        if let Some(stderr) = child.stderr.as_mut() {
            stderr.take(1024).read_to_string(&mut why).await.map_err(text)?;
        }
        let why = why.trim_end();
        Err(why
            .strip_prefix(&String::from_utf8_lossy(SAYS).into_owned())
            .unwrap_or(if why.is_empty() { "the holder of the mounts ended" } else { why })
            .into())
    }

    /// Fails: only Linux has layers.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub async fn open(_: &Path, _: &Mounts) -> Result<Self, String> {
        Err("this system has no layers over folders".into())
    }

    /// Fails: only Linux has layers.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub async fn add(&self, _: &Mounts) -> Result<(), String> {
        Err("this system has no layers over folders".into())
    }
}

/// Mounts what each line of standard input names as JSON, and answers each line with a line. Ends
/// with the input. For a process with one thread.
///
/// # Errors
/// [`ViewError`] if a step is refused.
#[cfg(target_os = "linux")]
pub fn hold() -> Result<(), ViewError> {
    use io::{BufRead as _, Write as _};
    linux::unshare()?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(refused("read the list of mounts"))?;
        let mounts: Mounts = serde_json::from_str(&line)?;
        mounts.pins.iter().try_for_each(linux::mount_pin)?;
        mounts.layers.iter().try_for_each(linux::mount_layer)?;
        writeln!(io::stdout(), "{READY}").map_err(refused("answer"))?;
    }
    Ok(())
}

/// Becomes a program in the namespace that a process holds. Returns only if that fails. For a
/// process with one thread.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "this process becomes the program")]
pub fn join(holder: u32, program: &OsStr, args: &[OsString]) -> ViewError {
    use std::os::unix::process::CommandExt as _;
    match linux::join(holder) {
        Err(error) => error,
        Ok(()) => {
            let source = std::process::Command::new(program).args(args).exec();
            ViewError::Program { program: program.to_string_lossy().into_owned(), source }
        }
    }
}

/// Makes the file that hides a path of the layer below, in the folder that keeps what is written.
///
/// # Errors
/// The system's error, for example if the path already exists.
#[cfg(target_os = "linux")]
pub fn hide(at: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    Ok(mknodat(CWD, at, FileType::CharacterDevice, Mode::empty(), makedev(0, 0))?)
}

/// Fails: only Linux has layers.
///
/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
#[cfg(not(target_os = "linux"))]
pub fn hide(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails: only Linux has layers.
///
/// # Errors
/// Always [`ViewError::Refused`].
#[cfg(not(target_os = "linux"))]
pub fn hold() -> Result<(), ViewError> {
    Err(refused("mount")(io::Error::from(io::ErrorKind::Unsupported)))
}

/// Fails: only Linux has layers.
#[cfg(not(target_os = "linux"))]
pub fn join(_: u32, _: &OsStr, _: &[OsString]) -> ViewError {
    refused("join")(io::Error::from(io::ErrorKind::Unsupported))
}

#[cfg(target_os = "linux")]
mod linux {
    use super::{PinnedPath, ViewError, ViewLayer, refused};
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, setns};
    use rustix::fs::{StatVfsMountFlags, statvfs};
    use rustix::process::{DumpableBehavior, getegid, geteuid, set_dumpable_behavior};
    use std::fs::{self, File};
    use std::io;
    use std::path::Path;

    /// Detaches this process from the mounts of the machine, in a new user namespace if possible.
    pub(super) fn unshare() -> Result<(), ViewError> {
        // The kernel lets only the owner's own processes join, and only while this one is dumpable.
        // This process holds no secret.
        set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(refused("make the holder dumpable"))?;
        let (user, group) = (geteuid(), getegid());
        if let Err(error) = nix::sched::unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS) {
            if !user.is_root() {
                return Err(refused("make a namespace")(error));
            }
            nix::sched::unshare(CloneFlags::CLONE_NEWNS).map_err(refused("make a namespace"))?;
        } else {
            let map = |name: &str, text: String| {
                let path = Path::new("/proc/self").join(name);
                fs::write(&path, text).map_err(refused(format!("write {}", path.display())))
            };
            map("setgroups", "deny".into())?;
            map("uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
            map("gid_map", format!("{group} {group} 1", group = group.as_raw()))?;
        }
        let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
        mount(None::<&str>, "/", None::<&str>, private, None::<&str>).map_err(refused("make mounts private"))
    }

    pub(super) fn mount_layer(layer: &ViewLayer) -> Result<(), ViewError> {
        let escaped = |path: &Path| {
            let text = path.to_string_lossy();
            ["\\", ":", ","]
                .iter()
                .fold(text.into_owned(), |text, special| text.replace(special, &format!("\\{special}")))
        };
        let below: Vec<String> = layer.between.iter().chain([&layer.lower]).map(|path| escaped(path)).collect();
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr",
            below.join(":"),
            escaped(&layer.over.join("upper")),
            escaped(&layer.over.join("work"))
        );
        let flags = MsFlags::MS_NODEV | MsFlags::MS_NOSUID;
        let mounted = mount(Some("overlay"), &layer.at, Some("overlay"), flags, Some(options.as_str()));
        mounted.map_err(refused(format!("mount a layer over {}", layer.at.display())))
    }

    /// Mounts a path on itself, since a mount point can be neither renamed nor removed.
    pub(super) fn mount_pin(pin: &PinnedPath) -> Result<(), ViewError> {
        let what = format!("pin {}", pin.at.display());
        mount(Some(&pin.at), &pin.at, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(refused(what.clone()))?;
        if pin.read_only {
            // Flags that the file system already has cannot be removed.
            let has = statvfs(&pin.at).map_err(refused(what.clone()))?.f_flag;
            let kept = [
                (StatVfsMountFlags::NODEV, MsFlags::MS_NODEV),
                (StatVfsMountFlags::NOEXEC, MsFlags::MS_NOEXEC),
                (StatVfsMountFlags::NOSUID, MsFlags::MS_NOSUID),
            ];
            let kept = kept.into_iter().filter(|(flag, _)| has.contains(*flag)).map(|(_, flag)| flag);
            let flags = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY | kept.collect();
            mount(None::<&str>, &pin.at, None::<&str>, flags, None::<&str>).map_err(refused(what))?;
        }
        Ok(())
    }

    /// Enters the namespaces of a process.
    pub(super) fn join(holder: u32) -> Result<(), ViewError> {
        let place = |process: &str, name: &str| format!("/proc/{process}/ns/{name}");
        let holder = holder.to_string();
        let open = |name: &str| File::open(place(&holder, name)).map_err(refused(format!("find the {name} namespace")));
        let (users, mounts) = (open("user")?, open("mnt")?);
        let is_own = || -> io::Result<bool> {
            Ok(fs::read_link(place(&holder, "user"))? == fs::read_link(place("self", "user"))?)
        };
        if !is_own().map_err(refused("compare namespaces"))? {
            setns(users, CloneFlags::CLONE_NEWUSER).map_err(refused("join the namespace of users"))?;
        }
        setns(mounts, CloneFlags::CLONE_NEWNS).map_err(refused("join the namespace of mounts"))
    }
}
