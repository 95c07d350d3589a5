//! The private git directory. fledge writes it itself, with settings that nothing else can change.
//! It has a scratch folder with an index for each run.

use super::TreesError;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use tempfile::{NamedTempFile, TempDir};

const SETTINGS: &str = "[core]
\trepositoryformatversion = 0
\tbare = false
\tattributesFile = /dev/null
\tautocrlf = false
\tcheckStat = default
\texcludesFile = /dev/null
\tfileMode = true
\tfsmonitor = false
\thooksPath = /dev/null
\tignoreCase = false
\tlogAllRefUpdates = false
\tlooseCompression = 1
\tprecomposeUnicode = false
\tpreloadIndex = true
\tprotectHFS = true
\tprotectNTFS = true
\tsafecrlf = false
\tsparseCheckout = false
\tsplitIndex = false
\tsymlinks = true
\ttrustctime = true
\tuntrackedCache = false
[checkout]
\tthresholdForParallelism = 1000
\tworkers = 2
[gc]
\tauto = 0
[maintenance]
\tauto = false
[protocol]
\tallow = never
";

/// Overrides everything that a `.gitattributes` file of the workspace says about the bytes of a
/// file: git reads this file first. Attributes with `!` are unspecified, so differences show files
/// by their content too.
const ATTRIBUTES: &str =
    "* -text -eol -crlf -filter -ident !working-tree-encoding !diff !merge !export-ignore !export-subst\n";

/// A run's scratch folder in the git directory. It is locked while the run lives, and removed with
/// it.
#[derive(Debug)]
pub(super) struct GitScratch {
    folder: TempDir,
    _lock: File,
}

/// Makes a folder a git directory, or repairs one. Correct files stay untouched.
pub(super) fn prepare(git_dir: &Path) -> Result<(), TreesError> {
    for folder in ["objects", "refs/kept", "info", "bases", "scratch"].map(|name| git_dir.join(name)) {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder);
        made.map_err(TreesError::io("make", folder))?;
    }
    write(&git_dir.join("HEAD"), b"ref: refs/heads/none\n")?;
    write(&git_dir.join("config"), SETTINGS.as_bytes())?;
    write(&git_dir.join("info/attributes"), ATTRIBUTES.as_bytes())
}

/// Writes a file completely or not at all, unless it already has these bytes.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), TreesError> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let put = || -> io::Result<()> {
        let mut file = NamedTempFile::new_in(path.parent().unwrap_or(Path::new("/")))?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    put().map_err(TreesError::io("write", path))
}

/// Copies an index with its modification time. From that time git knows which files may have
/// changed unnoticed while the index was written.
pub(super) fn copy_index(from: &Path, to: &Path) -> Result<(), TreesError> {
    let copy = || -> io::Result<()> {
        let mut old = File::open(from)?;
        if !is_whole(&mut old)? {
            return Ok(()); // a crash can leave an index that git refuses; it is only a cache
        }
        let mut new = NamedTempFile::new_in(to.parent().unwrap_or(Path::new("/")))?;
        io::copy(&mut old, &mut new)?;
        new.as_file().set_modified(old.metadata()?.modified()?)?;
        new.as_file().sync_data()?;
        new.persist(to)?;
        Ok(())
    };
    match copy() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done.map_err(TreesError::io("copy", from)),
    }
}

/// The checksum at the end of a git index.
pub(super) type IndexChecksum = [u8; 20];

/// Reads the checksum of an index. Returns `None` without an index or without a checksum in it.
pub(super) fn checksum(index: &Path) -> Option<IndexChecksum> {
    let mut checksum = IndexChecksum::default();
    let mut read = || -> io::Result<()> {
        let mut file = File::open(index)?;
        file.seek(SeekFrom::End(-20))?;
        file.read_exact(&mut checksum)
    };
    (read().is_ok() && checksum != IndexChecksum::default()).then_some(checksum)
}

/// Returns whether a file starts like an index and is long enough for a checksum.
fn is_whole(index: &mut File) -> io::Result<bool> {
    const LEAST: u64 = 12 + 20;
    let mut start = [0; 4];
    let is_long = index.metadata()?.len() >= LEAST;
    let is_whole = is_long && index.read_exact(&mut start).is_ok() && &start == b"DIRC";
    index.rewind()?;
    Ok(is_whole)
}

impl GitScratch {
    /// Makes a scratch folder, and removes those of dead processes.
    pub(super) fn make(git_dir: &Path) -> Result<Self, TreesError> {
        let all = git_dir.join("scratch");
        let make = || -> io::Result<Self> {
            let door = File::create(git_dir.join("scratch.lock"))?;
            door.lock()?; // so that no process removes a folder that is not locked yet
            for old in fs::read_dir(&all)?.flatten() {
                if File::open(old.path().join("lock")).is_ok_and(|lock| lock.try_lock().is_ok()) {
                    let _it_is_tried_again_next_time = fs::remove_dir_all(old.path());
                }
            }
            let folder = TempDir::new_in(&all)?;
            let lock = File::create(folder.path().join("lock"))?;
            lock.try_lock()?;
            Ok(Self { folder, _lock: lock })
        };
        make().map_err(TreesError::io("make a folder in", all.clone()))
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}
