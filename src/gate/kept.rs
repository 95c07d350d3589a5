//! The stored form of a frozen gate, for a run that may be resumed. It is one file: its first line
//! is JSON, and the contents of the sealed files follow, one after the other. The caller must
//! verify the bytes by their digest.

use super::policy::{FrozenPolicy, Policy};
use super::seal::{Seal, Sealed};
use super::{Gate, HiddenTests, InstalledPackages};
use crate::id::TreeId;
use crate::lane::{Lane, RoomKind};
use crate::pattern::PatternError;
use crate::process::sandbox::SandboxKind;
use crate::workspace::replica::SourceRepository;
use crate::workspace::trees::path_text;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::sync::OnceCell;

const VERSION: u32 = 3;

/// An error of restoring a gate from its stored form.
#[derive(Debug, thiserror::Error)]
pub enum ThawError {
    /// The first line is invalid.
    #[error("cannot parse the header of the stored gate")]
    Head(#[source] serde_json::Error),
    /// Another version of fledge wrote it.
    #[error("unsupported gate format version {0}: expected {VERSION}")]
    Other(u32),
    /// It is shorter or longer than its first line says.
    #[error("the stored gate is truncated or has trailing data")]
    Length,
    /// A rule is not a glob.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

#[derive(Debug, Deserialize)]
struct KeptVersion {
    schema_version: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct KeptHead {
    schema_version: u32,
    lanes: Vec<Lane>,
    held_out: Vec<Lane>,
    base: TreeId,
    digest: String,
    notes: Vec<String>,
    policy: FrozenPolicy,
    files: Vec<File>,
    /// The sandbox of the agent.
    sandbox: SandboxKind,
    /// The git directories.
    gits: Vec<OsString>,
    installed: InstalledPackages,
    repository: Option<SourceRepository>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hidden: Option<HiddenTests>,
}

/// A sealed path. Names need not be UTF-8.
#[derive(Debug, Serialize, Deserialize)]
struct File {
    path: OsString,
    what: What,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    /// A file. `bytes` is the length of its content, if that is kept.
    File {
        digest: String,
        mode: u32,
        bytes: Option<usize>,
    },
    Link(OsString),
    Other,
}

impl Gate {
    /// Returns the gate in its stored form.
    pub fn keep(&self, sandbox: SandboxKind) -> Vec<u8> {
        let mut contents: Vec<u8> = Vec::new();
        let mut files = Vec::new();
        for (path, sealed) in &self.seal.files {
            let what = match sealed {
                Sealed::File { digest, mode, bytes } => {
                    contents.extend(bytes.iter().flatten());
                    What::File { digest: digest.clone(), mode: *mode, bytes: bytes.as_ref().map(Vec::len) }
                }
                Sealed::Link(leads_to) => What::Link(leads_to.clone()),
                Sealed::Other => What::Other,
            };
            files.push(File { path: path.clone().into_os_string(), what });
        }
        let head = KeptHead {
            schema_version: VERSION,
            lanes: self.lanes.clone(),
            held_out: self.held_out.clone(),
            base: self.base.clone(),
            digest: self.digest.clone(),
            notes: self.notes.clone(),
            policy: self.policy.frozen().clone(),
            files,
            sandbox,
            gits: self.seal.gits.iter().map(|place| place.clone().into_os_string()).collect(),
            installed: self.installed.clone(),
            repository: self.repository.clone(),
            hidden: self.hidden.clone(),
        };
        let mut kept = serde_json::to_vec(&head).unwrap_or_default();
        kept.push(b'\n');
        kept.extend(contents);
        kept
    }

    /// Restores the gate of the workspace at `root` from its stored form. `allow_edit` must be the
    /// patterns with which it was frozen.
    ///
    /// # Errors
    /// When the bytes are not from [`Gate::keep`].
    pub fn thaw(kept: &[u8], root: &Path, allow_edit: &[String]) -> Result<Self, ThawError> {
        let end = kept.iter().position(|byte| *byte == b'\n').ok_or(ThawError::Length)?;
        let KeptVersion { schema_version } = serde_json::from_slice(&kept[..end]).map_err(ThawError::Head)?;
        if schema_version != VERSION {
            return Err(ThawError::Other(schema_version));
        }
        let head: KeptHead = serde_json::from_slice(&kept[..end]).map_err(ThawError::Head)?;
        let mut rest = &kept[end + 1..];
        let mut files = BTreeMap::new();
        for File { path, what } in head.files {
            let sealed = match what {
                What::File { digest, mode, bytes } => {
                    let length = bytes.unwrap_or(0);
                    let (content, after) = rest.split_at_checked(length).ok_or(ThawError::Length)?;
                    rest = after;
                    Sealed::File { digest, mode, bytes: bytes.map(|_| content.to_vec()) }
                }
                What::Link(leads_to) => Sealed::Link(leads_to),
                What::Other => Sealed::Other,
            };
            files.insert(path.into(), sealed);
        }
        if !rest.is_empty() {
            return Err(ThawError::Length);
        }
        let KeptHead {
            lanes,
            held_out,
            base,
            digest,
            notes,
            policy: mut frozen,
            gits,
            sandbox,
            installed,
            repository,
            hidden,
            ..
        } = head;
        frozen.allow_edit = allow_edit.to_vec();
        let policy = Arc::new(Policy::thaw(frozen)?);
        let is_clean = lanes.iter().all(|lane| lane.room == RoomKind::Clean);
        let (root, protection) = (root.to_owned(), policy.protection().clone());
        let scope = is_clean.then(|| Seal::scope(&protection, files.keys().map(|path: &PathBuf| path_text(path))));
        let gits = gits.into_iter().map(Into::into).collect();
        let seal = Arc::new(Seal { root, protection, scope, files, gits });
        Ok(Self {
            lanes,
            held_out,
            digest,
            notes,
            policy,
            seal,
            base,
            installed,
            repository,
            hidden,
            hidden_evidence: OnceCell::new(),
            sandbox: Some(sandbox),
            checkout: OnceCell::new(),
            protected_files: OnceCell::new(),
            judged: OnceCell::new(),
            planted: OnceCell::new(),
            failed: Mutex::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::{GateDefinition, freeze};
    use crate::workspace::trees::GitPrograms;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_kept_gate_is_the_same_gate_again_whatever_the_workspace_says_by_then() {
        let dir = crate::test_support::temp_dir();
        let root = dir.path();
        fs::create_dir_all(root.join("lanes")).unwrap();
        fs::create_dir_all(root.join("specs")).unwrap();
        let lane = "timeout: 90s\nsteps:\n  - { run: test -f done, when: '!CI=1', timeout: 1500ms }\n  - parallel: [{ run: 'true' }]\n";
        fs::write(root.join("lanes/verify.yaml"), lane).unwrap();
        fs::write(root.join("specs/bytes"), [0, b'\n', 255]).unwrap();
        symlink("nowhere", root.join("specs/link")).unwrap();
        let (lanes, protect) = (["verify".to_owned()], ["open/**".to_owned()]);
        let allow_edit = ["specs/free".to_owned()];
        let (base, path) = (TreeId::empty(), "/bin");
        let (lanes, protect, allow_edit) = (lanes.as_slice(), protect.as_slice(), allow_edit.as_slice());
        let from = GateDefinition {
            root,
            origin: root,
            lanes,
            holdout: None,
            protect,
            allow_edit,
            path,
            base: &base,
            paths: &[],
            git: &GitPrograms::default(),
            repository: None,
        };
        let gate = freeze(from, None).unwrap();
        let kept = gate.keep(SandboxKind::Off);
        fs::write(root.join("lanes/verify.yaml"), "steps: [{ run: 'true' }]").unwrap();
        fs::remove_file(root.join("specs/bytes")).unwrap();
        let thawed = Gate::thaw(&kept, root, &["specs/free".into()]).unwrap();
        assert_eq!((&thawed.lanes, &thawed.digest, &thawed.notes), (&gate.lanes, &gate.digest, &gate.notes));
        assert_eq!(thawed.seal.files, gate.seal.files);
        assert_eq!((thawed.keep(SandboxKind::Off), thawed.sandbox), (kept.clone(), Some(SandboxKind::Off)));
        let changed: Vec<String> = {
            let findings = thawed.seal.inspect();
            assert_eq!(thawed.seal.restore(&findings, &dir.path().join("aside")), [""; 0]);
            findings.into_iter().map(|finding| finding.path).collect()
        };
        assert_eq!(changed, ["lanes/verify.yaml", "specs/bytes"]);
        assert_eq!(fs::read(root.join("specs/bytes")).unwrap(), [0, b'\n', 255]);
        assert!(
            thawed.seal.protection().rule("specs/free").is_none() && thawed.seal.protection().rule("open/a").is_some()
        );
        let older = String::from_utf8_lossy(&kept).replacen("\"schema_version\":3", "\"schema_version\":1", 1);
        let fault = Gate::thaw(older.as_bytes(), root, &[]).unwrap_err();
        assert_eq!(fault.to_string(), "unsupported gate format version 1: expected 3");
        for cut in [0, 1, kept.len() / 2, kept.len() - 1] {
            assert!(Gate::thaw(&kept[..cut], root, &[]).is_err(), "cut at {cut}");
        }
    }
}
