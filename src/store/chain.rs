//! The hash chain of a journal's records. The link of a record is a digest over the previous link
//! and the record's number, time, kind and data. The link before the first record is a digest of
//! the run's head and task. A changed, lost or swapped record breaks the chain.

use super::{RunHead, TaskCopy};
use ring::digest::{Context, Digest, SHA256, digest};

/// A link of the chain.
pub(super) type ChainLink = [u8; 32];

/// Returns the link before the first record.
pub(super) fn initial_link(head: &RunHead, task: &TaskCopy) -> ChainLink {
    let text = serde_json::to_vec(&(head, task)).unwrap_or_default();
    plain(digest(&SHA256, &text))
}

/// Returns the link of a record whose data has this digest.
pub(super) fn next(before: &ChainLink, seq: u64, at_ms: u64, kind: &str, data: &ChainLink) -> ChainLink {
    let mut context = Context::new(&SHA256);
    for part in [before.as_slice(), &seq.to_be_bytes(), &at_ms.to_be_bytes(), data, kind.as_bytes()] {
        context.update(part);
    }
    plain(context.finish())
}

/// Returns the digest of data.
pub(super) fn of(data: &str) -> ChainLink {
    plain(digest(&SHA256, data.as_bytes()))
}

/// Formats a link or a digest in hexadecimal.
pub(super) fn hex(link: &ChainLink) -> String {
    link.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses a link from lower-case hexadecimal.
pub(super) fn from_hex(text: &str) -> Option<ChainLink> {
    let mut link = ChainLink::default();
    let pairs: Vec<&[u8]> = text.as_bytes().chunks(2).collect();
    if text.len() != 2 * link.len() || text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    for (byte, pair) in link.iter_mut().zip(pairs) {
        let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
        *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
    }
    Some(link)
}

fn plain(digest: Digest) -> ChainLink {
    let mut link = ChainLink::default();
    link.copy_from_slice(digest.as_ref());
    link
}
