//! The wall around what an agent starts: its programs see the machine read-only, write where they are told to, and reach neither the
//! network, nor other processes, nor what the operator keeps to themselves. Bubblewrap builds it where it works; else Landlock and seccomp
//! by this program itself, which is weaker and is called so. What cannot be walled is not run.

mod bounds;
mod bubblewrap;
mod caches;
mod gits;
mod holes;
mod homes;
mod inside;
#[cfg(target_os = "linux")]
mod landlock;
mod placeholders;
mod probe;
mod programs;
mod scripts;
#[cfg(target_os = "linux")]
mod seccomp;
mod starts;
mod trust;
mod view;

pub use bounds::WallLimits;
pub use caches::{ToolCache, add_layers, tool_caches};
pub use gits::{git_led_to, gits_below};
pub use holes::{Holes, Mount};
pub use homes::{at_home_in, hides_versions, holds_credentials};
pub use inside::{Fence, enter};
pub use placeholders::Placeholders;
pub use probe::{NoWall, WITHOUT};
pub use scripts::{interpreter, last_program};
pub use trust::trusted_in_copy;
pub use view::{LAYERS, Layer, Mounts, Pin, View, ViewError, hide, hold, join};

use super::{End, Ended, Invocation};
use crate::limits::HELPER_TIMEOUT;
use crate::process;
use bubblewrap::{Bubblewrap, Sockets};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// The word that the program behind the wall is started with first: `fledge inside FENCE PROGRAM ARGUMENTS`.
pub const INSIDE: &str = "inside";

/// Looks for the program `$0` as a start would find it.
const LOOK: &str = "case $0 in */*) test -x \"$0\";; *) command -v -- \"$0\";; esac >/dev/null || exit 86";
/// What that ends with where it is not there.
const NOWHERE: i32 = 86;

/// What a wall is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WallKind {
    /// Namespaces and mounts of its own, by bubblewrap.
    Bubblewrap,
    /// Landlock and seccomp: `.git` can be written, and attributes of files can be changed.
    Landlock,
    /// None.
    Off,
}

/// Which wall is wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WallChoice {
    /// The best that there is; none is a refusal.
    #[default]
    Auto,
    /// Bubblewrap.
    Required,
    /// None.
    Off,
}

impl WallChoice {
    /// The names of all.
    pub const NAMES: [&str; 3] = ["auto", "required", "off"];

    /// The choice of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "auto" => Some(Self::Auto),
            "required" => Some(Self::Required),
            "off" => Some(Self::Off),
            _ => None,
        }
    }
}

impl WallKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Off => "off",
        }
    }
}

/// A wall that was tried and stands. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Wall(Build);

#[derive(Debug, Clone)]
enum Build {
    Bubblewrap { bwrap: Bubblewrap, helper: PathBuf },
    Landlock { helper: PathBuf, scratch: Arc<Scratch> },
    Off,
}

/// Private folders for homes and temporary files, where there are no mounts. Gone with the last wall that uses it.
#[derive(Debug)]
struct Scratch {
    folder: TempDir,
    count: AtomicU64,
}

impl Wall {
    /// No wall.
    pub fn off() -> Self {
        Self(Build::Off)
    }

    /// Finds out which wall stands here by starting a program behind it, once for this process. `helper` is the fledge program itself,
    /// which does from within what cannot be done from without; `path` is the search path for bubblewrap.
    ///
    /// # Errors
    /// [`NoWall`] with all that was tried, and the one line that mends it.
    pub async fn raise(choice: WallChoice, helper: Option<&Path>, path: &str) -> Result<Self, NoWall> {
        match choice {
            WallChoice::Off => Ok(Self::off()),
            WallChoice::Auto | WallChoice::Required => probe::raise(choice, helper, path).await,
        }
    }

    /// The second best one, also where the best one stands.
    ///
    /// # Errors
    /// [`NoWall`] where the kernel does not know it.
    pub async fn landlock(helper: &Path, path: &str) -> Result<Self, NoWall> {
        probe::landlock(helper, path)
            .await
            .map_err(|why| NoWall { tried: vec![why], mend: "use a newer kernel".into() })
    }

    /// What it is made of.
    pub fn kind(&self) -> WallKind {
        match &self.0 {
            Build::Bubblewrap { .. } => WallKind::Bubblewrap,
            Build::Landlock { .. } => WallKind::Landlock,
            Build::Off => WallKind::Off,
        }
    }

    /// Returns whether programs in the sandbox can be shown layers over folders, with what they
    /// write kept in `folder`, and whether this process can read and hide files there.
    pub async fn has_layers(&self, folder: &Path) -> bool {
        let Build::Bubblewrap { helper, .. } = &self.0 else { return false };
        let Ok(trial) = tempfile::Builder::new().prefix("layers-").tempdir_in(folder) else { return false };
        let (lower, over) = (trial.path().join("lower"), trial.path().join("over"));
        let made = || -> std::io::Result<()> {
            std::fs::create_dir_all(over.join("upper"))?;
            std::fs::create_dir(&lower)?;
            std::fs::write(lower.join("hidden"), [])?;
            view::hide(&over.join("upper/hidden"))
        };
        if made().is_err() {
            return false;
        }
        let layer = Layer { lower: lower.clone(), between: Vec::new(), over, at: lower.clone() };
        let mounts = Mounts { pins: Vec::new(), layers: vec![layer] };
        let Ok(view) = View::open(helper, &mounts).await else { return false };
        let seen = view.seen(&lower);
        !seen.join("hidden").exists() && std::fs::write(seen.join("new"), []).is_ok() && !lower.join("new").exists()
    }

    /// The program that does its part from within. Whoever can change it can open the wall.
    pub fn helper(&self) -> Option<&Path> {
        match &self.0 {
            Build::Bubblewrap { helper, .. } | Build::Landlock { helper, .. } => Some(helper),
            Build::Off => None,
        }
    }

    /// Whether the program that does its part from within stays as it is, when a folder can be written behind the wall or is hidden there.
    ///
    /// # Errors
    /// [`NoWall`] where it does not.
    pub fn stands_outside(&self, folder: &Path) -> Result<(), NoWall> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.into());
        match self.helper().filter(|helper| helper.starts_with(folder)) {
            None => Ok(()),
            Some(helper) => Err(NoWall {
                tried: vec![format!(
                    "fledge itself, `{}`, is inside the workspace, where an agent could change it",
                    helper.display()
                )],
                mend: "run a copy of it that is elsewhere".into(),
            }),
        }
    }

    /// The same program behind the wall. Its variables are all that anything behind the wall can read, but for those that say where its
    /// home and its temporary files are.
    fn built(&self, holes: &Holes, inner: Invocation, sockets: Sockets) -> Invocation {
        match &self.0 {
            Build::Bubblewrap { bwrap, helper } => bwrap.around(helper, holes, inner, sockets),
            Build::Landlock { helper, scratch } => {
                let number = scratch.count.fetch_add(1, Ordering::Relaxed);
                landlocked(helper, &scratch.folder.path().join(number.to_string()), holes, inner)
            }
            Build::Off => inner,
        }
    }

    /// The folder below which homes and temporary files of the programs are. Behind bubblewrap they are in a file system of their own.
    pub fn temporary_folder(&self) -> Option<&Path> {
        match &self.0 {
            Build::Landlock { scratch, .. } => scratch.folder.path().parent(),
            Build::Bubblewrap { .. } | Build::Off => None,
        }
    }

    /// What has to stand in the workspace for walls with these holes: to be asked for before the first program is started, and dropped after
    /// the last. Another run in the same workspace keeps what it needs.
    pub fn placeholders(&self, holes: &Holes) -> Placeholders {
        match self.kind() {
            WallKind::Bubblewrap => Placeholders::hold(holes),
            WallKind::Landlock | WallKind::Off => Placeholders::default(),
        }
    }

    /// Tells what stopped at the wall from what ended behind it: a program that was never started is [`End::NotStarted`]. Whatever ran can
    /// print what the wall would: it is believed where that is all that was said, and a second start with the same `holes`, of no more than a
    /// look for the program of `inner`, comes to the same.
    pub async fn told(&self, ended: Ended, holes: &Holes, inner: Invocation, stop: &CancellationToken) -> Ended {
        let Some(why) = self.claimed(&ended) else { return ended };
        let args = ["-c", LOOK, &inner.program].map(str::to_owned).into();
        let look = Invocation { program: "/bin/sh".into(), args, timeout: Some(HELPER_TIMEOUT), log: None, ..inner };
        let second = process::run(self.built(holes, look, Sockets::None), stop, &|_| {}).await;
        let is_nowhere = ended.end != End::Exited(1) && second.end == End::Exited(NOWHERE);
        if is_nowhere || self.claimed(&second).as_ref() == Some(&why) {
            return Ended { end: End::NotStarted(why), ..ended };
        }
        ended
    }

    /// Why a program was not started, by the one line that is its whole output.
    fn claimed(&self, ended: &Ended) -> Option<String> {
        let said: &[&[u8]] = match (self.kind(), &ended.end) {
            (WallKind::Bubblewrap, End::Exited(1)) => &[b"bwrap: "],
            (WallKind::Bubblewrap | WallKind::Landlock, End::Exited(126 | 127)) => &[inside::SAYS, view::SAYS],
            _ => return None,
        };
        let line = said.iter().find_map(|said| ended.output.head.strip_prefix(*said))?.strip_suffix(b"\n")?;
        let is_all = ended.output.total == ended.output.head.len() as u64 && !line.contains(&b'\n');
        is_all.then(|| String::from_utf8_lossy(line).into_owned())
    }
}

#[cfg(target_os = "linux")]
fn landlocked(helper: &Path, scratch: &Path, holes: &Holes, inner: Invocation) -> Invocation {
    landlock::around(helper, scratch, holes, inner)
}

#[cfg(not(target_os = "linux"))]
fn landlocked(_: &Path, _: &Path, _: &Holes, inner: Invocation) -> Invocation {
    inner // never raised there
}
