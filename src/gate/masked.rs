//! Masking of known secrets in the logs of steps, even of a secret that is split between two reads.
//! Blocks, longer for longer logs.

use crate::tool::SecretMask;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tempfile::NamedTempFile;
use walkdir::WalkDir;

/// The number of bytes in one read.
const PIECE: usize = 1 << 20;

/// Masks known secrets in every file at and below a folder. Removes a file that cannot be masked,
/// so that no kept log contains a secret.
pub async fn mask_logs(folder: &Path, mask: &SecretMask) {
    if !mask.is_idle() {
        let (folder, mask) = (folder.to_owned(), mask.clone());
        let _a_panic_is_told_by_its_hook = tokio::task::spawn_blocking(move || mask_all(&folder, &mask)).await;
    }
}

fn mask_all(folder: &Path, mask: &SecretMask) {
    let files = WalkDir::new(folder).follow_links(false).into_iter().flatten();
    for entry in files.filter(|entry| entry.file_type().is_file()) {
        if let Err(error) = mask_file(entry.path(), mask) {
            tracing::warn!(%error, path = %entry.path().display(), "cannot mask secrets in a log; fledge removes it");
            let _it_may_be_gone = fs::remove_file(entry.path());
        }
    }
}

/// Rewrites a file if it contains a secret.
fn mask_file(path: &Path, mask: &SecretMask) -> io::Result<()> {
    if !passed(File::open(path)?, mask, &mut io::sink())? {
        return Ok(());
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut masked = NamedTempFile::new_in(folder)?;
    passed(File::open(path)?, mask, masked.as_file_mut())?;
    masked.as_file().set_permissions(Permissions::from_mode(0o600))?;
    masked.persist(path).map(drop).map_err(|fault| fault.error)
}

/// Copies the input with its secrets masked. Returns whether there were any.
fn passed(mut from: impl Read, mask: &SecretMask, to: &mut impl Write) -> io::Result<bool> {
    let (mut held, mut piece, mut was_masked) = (Vec::new(), vec![0; PIECE], false);
    loop {
        let length = from.read(&mut piece)?;
        held.extend_from_slice(&piece[..length]);
        if let Some(hidden) = mask.hidden_in(&held) {
            (held, was_masked) = (hidden, true);
        }
        // A possible start of a secret is held back until the rest of it is read.
        let known = if length == 0 { held.len() } else { mask.safe_prefix_len_of_bytes(&held) };
        to.write_all(&held[..known])?;
        held.drain(..known);
        if length == 0 {
            return Ok(was_masked);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-canary-5f1d7c20b9";

    #[test]
    fn a_secret_is_masked_across_chunks_of_a_log_and_invalid_utf8_is_kept() {
        let dir = crate::test_support::temp_dir();
        let (log, mask) = (dir.path().join("a/step.log"), SecretMask::new([SECRET]));
        fs::create_dir(dir.path().join("a")).unwrap();
        for before in [0, 1, PIECE - 20, PIECE - 19, PIECE - 7, PIECE - 1, PIECE, 2 * PIECE - 3] {
            let text = [&vec![0xff; before][..], SECRET.as_bytes(), b" and \xfe ", SECRET.as_bytes(), b"\n"].concat();
            fs::write(&log, text).unwrap();
            mask_all(dir.path(), &mask);
            let expected = [&vec![0xff; before][..], b"*** and \xfe ***\n"].concat();
            assert!(fs::read(&log).unwrap() == expected, "after {before} bytes");
            assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_log_without_a_secret_is_not_written_again() {
        use std::os::unix::fs::MetadataExt as _;
        let dir = crate::test_support::temp_dir();
        let log = dir.path().join("step.log");
        fs::write(&log, "sk-canary, and no more of it").unwrap();
        let before = fs::metadata(&log).unwrap().ino();
        mask_all(dir.path(), &SecretMask::new([SECRET]));
        assert_eq!(fs::metadata(&log).unwrap().ino(), before);
        assert_eq!(fs::read(&log).unwrap(), b"sk-canary, and no more of it");
    }
}
