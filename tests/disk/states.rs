//! A model of a disk, as pessimistic as POSIX. A write to a file, or a change of names in a folder,
//! is durable only after a sync of that file or folder. Before the sync, each write may be present,
//! missing, partial, or zeros.

use crate::disk::trace::Op;
use crate::support::Dice;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// The number of bytes that a disk writes atomically.
const SECTOR: usize = 512;

/// A folder and everything below it.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    /// The first node is the root.
    nodes: Vec<Node>,
}

/// The contents after a crash: files, and folders as `None`, by their path below the root.
pub(crate) type Found = BTreeMap<PathBuf, Option<Vec<u8>>>;

#[derive(Debug, Clone)]
enum Node {
    File { safe: Vec<u8>, since: Vec<Change> },
    Folder { safe: BTreeMap<String, usize>, since: Vec<Turn> },
}

/// An unsynced change of a file.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// An unsynced change of the names in a folder. Changes that happen atomically form one turn.
#[derive(Debug, Clone)]
struct Turn {
    gone: Option<String>,
    come: Option<(String, usize)>,
}

impl Disk {
    /// Returns an empty disk whose root is this folder.
    pub(crate) fn new(root: &Path) -> Self {
        let folder = Node::Folder { safe: BTreeMap::new(), since: Vec::new() };
        Self { root: root.to_owned(), nodes: vec![folder] }
    }

    /// Applies one operation. Names of removed files have no meaning.
    pub(crate) fn take(&mut self, op: &Op) {
        match op {
            Op::Open { path, is_emptied } => match (self.find(path), is_emptied) {
                (None, _) => self.link(path, Node::File { safe: Vec::new(), since: Vec::new() }),
                (Some(_), true) => self.change(path, |_| Change::Resize(0)),
                (Some(_), false) => {}
            },
            Op::Folder { path } => self.link(path, Node::Folder { safe: BTreeMap::new(), since: Vec::new() }),
            Op::Write { path, at, bytes } => self.change(path, |size| {
                let at = at.map_or(size, |at| usize::try_from(at).unwrap());
                Change::Write { at, bytes: bytes.clone() }
            }),
            Op::Resize { path, size } => self.change(path, |_| Change::Resize(usize::try_from(*size).unwrap())),
            Op::Sync { path } => {
                if let Some(node) = self.find(path) {
                    self.nodes[node] = self.nodes[node].wait_until_idle();
                }
            }
            Op::Rename { from, to } => {
                let node = self.find(from).unwrap();
                let ((old, gone), (new, come)) = (self.place(from), self.place(to));
                if old == new {
                    self.turn(old, Turn { gone: Some(gone), come: Some((come, node)) });
                } else {
                    self.turn(old, Turn { gone: Some(gone), come: None });
                    self.turn(new, Turn { gone: None, come: Some((come, node)) });
                }
            }
            Op::Remove { path } => {
                let (folder, name) = self.place(path);
                self.turn(folder, Turn { gone: Some(name), come: None });
            }
        }
    }

    /// Returns the files that another process finds when this one is killed: all operations took
    /// effect.
    pub(crate) fn as_done(&self) -> Found {
        self.found(|node| node.wait_until_idle())
    }

    /// Returns a possible state of the files after a power failure.
    pub(crate) fn after_power_loss(&self, dice: &mut Dice) -> Found {
        let mood = dice.index(5);
        self.found(|node| node.lost(dice, mood))
    }

    fn found(&self, mut fate: impl FnMut(&Node) -> Node) -> Found {
        let mut found = Found::new();
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((path, node)) = open.pop() {
            match fate(&self.nodes[node]) {
                Node::File { safe, .. } => drop(found.insert(path, Some(safe))),
                Node::Folder { safe, .. } => {
                    open.extend(safe.into_iter().map(|(name, node)| (path.join(name), node)));
                    found.insert(path, None);
                }
            }
        }
        found
    }

    fn change(&mut self, path: &Path, change: impl FnOnce(usize) -> Change) {
        if let Some(node) = self.find(path) {
            let Node::File { safe, since } = &mut self.nodes[node] else { panic!("{} is a folder", path.display()) };
            let size = since.iter().fold(safe.len(), |size, change| match change {
                Change::Write { at, bytes } => size.max(at + bytes.len()),
                Change::Resize(size) => *size,
            });
            since.push(change(size));
        }
    }

    fn link(&mut self, path: &Path, node: Node) {
        self.nodes.push(node);
        let (folder, name) = self.place(path);
        self.turn(folder, Turn { gone: None, come: Some((name, self.nodes.len() - 1)) });
    }

    fn turn(&mut self, folder: usize, turn: Turn) {
        let Node::Folder { since, .. } = &mut self.nodes[folder] else { panic!("a name in a file") };
        since.push(turn);
    }

    /// Returns the folder of a path, and the name in that folder.
    fn place(&self, path: &Path) -> (usize, String) {
        (self.find(path.parent().unwrap()).unwrap(), path.file_name().unwrap().to_str().unwrap().to_owned())
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let below = path.strip_prefix(&self.root).unwrap();
        below.components().try_fold(0, |node, name| {
            let Component::Normal(name) = name else { panic!("{}", path.display()) };
            let Node::Folder { safe, .. } = self.nodes[node].wait_until_idle() else { return None };
            safe.get(name.to_str().unwrap()).copied()
        })
    }
}

impl Node {
    /// Returns the node with all changes applied.
    fn wait_until_idle(&self) -> Self {
        self.with(|_| true, |_| Tear::Whole)
    }

    /// Returns the node with part of its unsynced changes: none, all, a prefix, or each by chance.
    fn lost(&self, dice: &mut Dice, mood: usize) -> Self {
        let until = match self {
            Self::File { since, .. } => dice.index(since.len() + 1),
            Self::Folder { since, .. } => dice.index(since.len() + 1),
        };
        let mut more = dice.clone();
        dice.throw();
        let is_there = |nth: usize| match mood {
            0 => false,
            1 => true,
            2 => nth < until,
            _ => dice.percent(60),
        };
        let tear = |sectors: usize| match more.below(4) {
            0 => Tear::At(more.index(sectors + 1)),
            1 => Tear::Some(more.throw()),
            2 if mood == 4 => Tear::Zeros(more.throw()),
            _ => Tear::Whole,
        };
        self.with(is_there, tear)
    }

    fn with(&self, mut is_there: impl FnMut(usize) -> bool, mut tear: impl FnMut(usize) -> Tear) -> Self {
        match self {
            Self::File { safe, since } => {
                let mut safe = safe.clone();
                for (_, change) in since.iter().enumerate().filter(|(nth, _)| is_there(*nth)) {
                    match change {
                        Change::Resize(size) => safe.resize(*size, 0),
                        Change::Write { at, bytes } => {
                            let tear = tear(bytes.len().div_ceil(SECTOR));
                            tear.write(&mut safe, *at, bytes);
                        }
                    }
                }
                Self::File { safe, since: Vec::new() }
            }
            Self::Folder { safe, since } => {
                let mut safe = safe.clone();
                for (_, Turn { gone, come }) in since.iter().enumerate().filter(|(nth, _)| is_there(*nth)) {
                    if let Some(gone) = gone {
                        safe.remove(gone);
                    }
                    safe.extend(come.clone());
                }
                Self::Folder { safe, since: Vec::new() }
            }
        }
    }
}

/// The part of a write that is present, in sectors of the disk. The sectors at both ends keep their
/// neighbouring bytes.
#[derive(Debug)]
enum Tear {
    Whole,
    /// The first sectors.
    At(usize),
    /// Some sectors, chosen by the bits of a number.
    Some(u64),
    /// Some sectors, chosen by the bits of a number, and zeros in place of the others.
    Zeros(u64),
}

impl Tear {
    fn write(&self, file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
        let mut from = 0;
        for nth in 0.. {
            let upto = bytes.len().min((at + from) / SECTOR * SECTOR + SECTOR - at);
            if from == upto {
                return;
            }
            let is_there = match self {
                Self::Whole => true,
                Self::At(first) => nth < *first,
                Self::Some(bits) | Self::Zeros(bits) => bits >> (nth % 64) & 1 == 1,
            };
            if is_there || matches!(self, Self::Zeros(_)) {
                file.resize(file.len().max(at + upto), 0);
                let sector = &mut file[at + from..at + upto];
                if is_there { sector.copy_from_slice(&bytes[from..upto]) } else { sector.fill(0) }
            }
            from = upto;
        }
    }
}
