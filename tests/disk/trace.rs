//! The file operations of a process below a folder, read from the output of `strace -f -y -xx`,
//! with every string in hexadecimal.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The recorded system calls.
pub(crate) const CALLS: &str = "trace=openat,creat,write,pwrite64,writev,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,\
    sync_file_range,rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,link,linkat,symlink,symlinkat,copy_file_range,sendfile";

/// An operation that succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Op {
    /// The process opened a file that may be new, and emptied it or not.
    Open {
        path: PathBuf,
        is_emptied: bool,
    },
    Folder {
        path: PathBuf,
    },
    /// A write; without an offset, at the end of the file.
    Write {
        path: PathBuf,
        at: Option<u64>,
        bytes: Vec<u8>,
    },
    Resize {
        path: PathBuf,
        size: u64,
    },
    Sync {
        path: PathBuf,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Remove {
        path: PathBuf,
    },
}

/// Returns the operations below `root`, in order.
pub(crate) fn read(text: &str, root: &Path) -> Vec<Op> {
    let mut begun: BTreeMap<&str, String> = BTreeMap::new();
    let mut ops = Vec::new();
    for line in text.lines() {
        let (pid, rest) = line.split_once(' ').unwrap();
        let rest = rest.trim_start();
        let call = if let Some(head) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(pid, head.to_owned());
            continue;
        } else if let Some((_, tail)) = rest.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            begun.remove(pid).unwrap() + tail
        } else {
            rest.to_owned()
        };
        ops.extend(op(&call).filter(|op| op.paths().iter().all(|path| path.starts_with(root))));
    }
    ops
}

fn op(call: &str) -> Option<Op> {
    let (name, rest) = call.split_once('(')?; // other lines are signals and exits
    let (args, result) = rest.rsplit_once(" = ")?;
    let args: Vec<&str> = args.trim_end().strip_suffix(')')?.split(", ").collect();
    let result: u64 = result.split(['<', ' ']).next()?.parse().ok()?; // a failed call has no effect
    Some(match name {
        "openat" if args[2].contains("O_CREAT") => {
            Op::Open { path: named(args[0], args[1]), is_emptied: args[2].contains("O_TRUNC") }
        }
        "openat" => return None,
        "write" | "pwrite64" => {
            let mut bytes = string(args[1]);
            bytes.truncate(usize::try_from(result).unwrap());
            Op::Write { path: handle(args[0])?, at: args.get(3).map(|at| at.parse().unwrap()), bytes }
        }
        "ftruncate" => Op::Resize { path: handle(args[0])?, size: args[1].parse().unwrap() },
        "fsync" | "fdatasync" => Op::Sync { path: handle(args[0])? },
        "rename" => Op::Rename { from: path(args[0]), to: path(args[1]) },
        "renameat" | "renameat2" => Op::Rename { from: named(args[0], args[1]), to: named(args[2], args[3]) },
        "unlink" | "rmdir" => Op::Remove { path: path(args[0]) },
        "unlinkat" => Op::Remove { path: named(args[0], args[1]) },
        "mkdir" => Op::Folder { path: path(args[0]) },
        "mkdirat" => Op::Folder { path: named(args[0], args[1]) },
        other => panic!("the model of the disk does not know `{other}`: {}", &call[..call.len().min(200)]),
    })
}

impl Op {
    fn paths(&self) -> Vec<&Path> {
        match self {
            Self::Open { path, .. }
            | Self::Folder { path }
            | Self::Write { path, .. }
            | Self::Resize { path, .. }
            | Self::Sync { path }
            | Self::Remove { path } => vec![path],
            Self::Rename { from, to } => vec![from, to],
        }
    }
}

/// Returns the path of a handle, `5<…>`, or `None` if the file was removed.
fn handle(arg: &str) -> Option<PathBuf> {
    let (_, path) = arg.split_once('<')?;
    let path = path.strip_suffix('>')?;
    Some(text(path).into())
}

/// Returns the path of a name, which may be relative to the folder of a handle.
fn named(folder: &str, name: &str) -> PathBuf {
    handle(folder).unwrap_or_default().join(path(name))
}

fn path(arg: &str) -> PathBuf {
    text(arg.trim_matches('"')).into()
}

fn text(hex: &str) -> String {
    String::from_utf8(bytes(hex)).unwrap()
}

fn string(arg: &str) -> Vec<u8> {
    bytes(arg.strip_prefix('"').and_then(|arg| arg.strip_suffix('"')).unwrap())
}

fn bytes(hex: &str) -> Vec<u8> {
    hex.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}
