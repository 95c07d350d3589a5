//! The file with a step's whole output: readable by its owner only, and never larger than its limit. Above that the middle is
//! dropped, and the file says how much.

use std::fs::{self, File};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A log being written. Half of the limit holds the start; behind it two slots of a sixth each take turns in holding the end, in
/// unnamed files, so that at most a sixth is ever needed twice.
pub(super) struct Log {
    file: File,
    room: u64,
    slot: u64,
    end: Slots,
}

struct Slots {
    older: File,
    newer: File,
    filled: u64,
    dropped: u64,
}

impl Log {
    /// Makes the file afresh, with its directory when that is missing. An old file of that name, or a link, is replaced and not
    /// written through.
    pub(super) fn create(path: &Path, limit: u64) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        let (older, newer) = (tempfile::tempfile_in(folder)?, tempfile::tempfile_in(folder)?);
        Ok(Self { file, room: limit / 2, slot: (limit / 6).max(1), end: Slots { older, newer, filled: 0, dropped: 0 } })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (start, mut rest) = bytes.split_at(bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX)));
        self.file.write_all(start)?;
        self.room -= start.len() as u64;
        while !rest.is_empty() {
            if self.end.filled == self.slot {
                self.end.turn()?;
            }
            let fits = usize::try_from(self.slot - self.end.filled).unwrap_or(usize::MAX).min(rest.len());
            self.end.newer.write_all(&rest[..fits])?;
            self.end.filled += fits as u64;
            rest = &rest[fits..];
        }
        Ok(())
    }

    /// Puts the kept end behind the start.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if self.end.dropped > 0 {
            write!(
                self.file,
                "\n[fledge: {} bytes left out here; this log has reached its limit]\n",
                self.end.dropped
            )?;
        }
        for mut part in [self.end.older, self.end.newer] {
            part.rewind()?;
            io::copy(&mut part, &mut self.file)?;
            part.set_len(0)?;
        }
        Ok(())
    }
}

impl Slots {
    /// Drops the older slot and makes it the newer one.
    fn turn(&mut self) -> io::Result<()> {
        std::mem::swap(&mut self.older, &mut self.newer);
        self.dropped += self.newer.metadata()?.len();
        self.newer.rewind()?;
        self.newer.set_len(0)?;
        self.filled = 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn written(limit: u64, pieces: &[&[u8]]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/step.log");
        let mut log = Log::create(&path, limit).unwrap();
        pieces.iter().for_each(|piece| log.write(piece).unwrap());
        log.finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::read(path).unwrap()
    }

    #[test]
    fn a_log_within_its_limit_is_whole() {
        assert_eq!(written(600, &[b"abc", b"", b"def\n"]), b"abcdef\n");
        let long: Vec<u8> = (0..500u32).map(|n| b'a' + (n % 26) as u8).collect();
        assert_eq!(written(600, &[&long[..450], &long[450..]]), long);
    }

    #[test]
    fn above_the_limit_start_and_end_are_left_and_the_cut_is_counted() {
        let long: Vec<u8> = (0..10_000u32).map(|n| b'a' + (n % 26) as u8).collect();
        let kept = written(600, &long.chunks(70).collect::<Vec<_>>());
        let note = b"\n[fledge: 9500 bytes left out here; this log has reached its limit]\n";
        assert_eq!(kept, [&long[..300], note, &long[9800..]].concat());
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("step.log"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let mut log = Log::create(&path, 600).unwrap();
        log.write(b"output").unwrap();
        log.finish().unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"precious".to_vec(), b"output".to_vec()));
    }
}
