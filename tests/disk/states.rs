//! A disk, as pessimistic as POSIX: what is written to a file, or done to the names in a folder, is there for sure only after a sync of
//! that file or folder. Before it may be there or not, each write by itself, in part, or as zeros.

use crate::disk::trace::Op;
use crate::support::Dice;
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// What a disk writes whole.
const SECTOR: usize = 512;

/// A folder and all that is below it.
#[derive(Debug, Clone)]
pub(crate) struct Disk {
    root: PathBuf,
    /// The first is the root.
    nodes: Vec<Node>,
}

/// What is found after a crash: files, and folders as `None`, by their path below the root.
pub(crate) type Found = BTreeMap<PathBuf, Option<Vec<u8>>>;

#[derive(Debug, Clone)]
enum Node {
    File { safe: Vec<u8>, since: Vec<Change> },
    Folder { safe: BTreeMap<String, usize>, since: Vec<Turn> },
}

/// A change of a file that was not synced.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

/// A change of the names in a folder that was not synced. What happens together stands together.
#[derive(Debug, Clone)]
struct Turn {
    gone: Option<String>,
    come: Option<(String, usize)>,
}

impl Disk {
    /// An empty one that stands for this folder.
    pub(crate) fn new(root: &Path) -> Self {
        let folder = Node::Folder { safe: BTreeMap::new(), since: Vec::new() };
        Self { root: root.to_owned(), nodes: vec![folder] }
    }

    /// Does one thing. Names of files that are removed mean nothing.
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
                    self.nodes[node] = self.nodes[node].settled();
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

    /// What another process finds when this one is killed: everything that was done.
    pub(crate) fn as_done(&self) -> Found {
        self.found(|node| node.settled())
    }

    /// What may be found when the power fails.
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

    /// The folder of a path, and its name there.
    fn place(&self, path: &Path) -> (usize, String) {
        (self.find(path.parent().unwrap()).unwrap(), path.file_name().unwrap().to_str().unwrap().to_owned())
    }

    fn find(&self, path: &Path) -> Option<usize> {
        let below = path.strip_prefix(&self.root).unwrap();
        below.components().try_fold(0, |node, name| {
            let Component::Normal(name) = name else { panic!("{}", path.display()) };
            let Node::Folder { safe, .. } = self.nodes[node].settled() else { return None };
            safe.get(name.to_str().unwrap()).copied()
        })
    }
}

impl Node {
    /// With all that was done to it.
    fn settled(&self) -> Self {
        self.with(|_| true, |_| Tear::Whole)
    }

    /// With a part of what was not synced: nothing, all, a beginning, or each by itself.
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

/// How much of a write is there. Sectors are those of the disk, and those at its ends keep what they had beside it.
#[derive(Debug)]
enum Tear {
    Whole,
    /// The first ones.
    At(usize),
    /// Some of them, by the bits of a number.
    Some(u64),
    /// The same, and zeros where the others were to be.
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
