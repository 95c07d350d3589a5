//! The log file of a step: the whole output up to a size limit. Above the limit, only the start and
//! the end are kept, and the file states how many bytes are missing. Only its owner can read the
//! file.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Bytes to read of a line of a log.
const LINE: u64 = 4096;

/// Reads a log line by line, until it ends or `take` returns `Break`. `take` gets the start of each
/// line without its line end, and the number of bytes of the line that follow it. Needs constant
/// memory. Blocks.
///
/// # Errors
/// If the log cannot be read. `take` has received the lines before the error.
pub fn each_line(log: &Path, mut take: impl FnMut(&[u8], usize) -> ControlFlow<()>) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(1 << 16, File::open(log)?);
    let mut line = Vec::new();
    loop {
        let length = (&mut reader).take(LINE).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        let is_whole = line.pop_if(|byte| *byte == b'\n').is_some();
        let rest = if is_whole { 0 } else { reader.skip_until(b'\n')?.saturating_sub(1) };
        if take(&line, rest).is_break() {
            return Ok(());
        }
        line.clear();
    }
}

/// A log being written. Half of the limit holds the start. Then two slots of a sixth each hold the
/// end, alternately. The slots are unnamed files, made when the start is full. So at most a
/// sixth of the limit is ever on the disk twice.
pub(super) struct StepLogFile {
    path: PathBuf,
    /// Created at the first write, since creating a file is costly.
    file: Option<File>,
    room: u64,
    slot: u64,
    end: Option<Slots>,
}

struct Slots {
    /// Full after the first swap.
    older: File,
    newer: File,
    /// Bytes written to `newer` since the last swap. Older bytes of the file follow them.
    filled: u64,
    swaps: u64,
}

impl StepLogFile {
    /// Prepares a log at this path, and creates its folder if that is missing. Removes an old file
    /// or a link at the path, so that nothing is written through a link.
    pub(super) fn prepare(path: PathBuf, limit: u64) -> io::Result<Self> {
        let folder = folder(&path);
        if !folder.is_dir() {
            fs::create_dir_all(folder)?;
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(Self { path, file: None, room: limit / 2, slot: (limit / 6).max(1), end: None }),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (start, mut rest) = bytes.split_at(bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX)));
        self.file()?.write_all(start)?;
        self.room -= start.len() as u64;
        while !rest.is_empty() {
            let end = match &mut self.end {
                Some(end) => end,
                none => none.insert(Slots::create(folder(&self.path))?),
            };
            if end.filled == self.slot {
                end.swap()?;
            }
            let fits = usize::try_from(self.slot - end.filled).unwrap_or(usize::MAX).min(rest.len());
            end.newer.write_all(&rest[..fits])?;
            end.filled += fits as u64;
            rest = &rest[fits..];
        }
        Ok(())
    }

    /// Completes the log: appends the end of the output, which is in the two slot files, to the log
    /// file. If bytes were dropped between, a note states how many. If nothing was written, an
    /// empty file is created only if `is_wanted` is true.
    pub(super) fn finish(mut self, is_wanted: bool) -> io::Result<()> {
        if is_wanted {
            self.file()?;
        }
        let (Some(Slots { mut older, mut newer, filled, swaps }), Some(file)) = (self.end, &mut self.file) else {
            return Ok(());
        };
        if swaps > 1 {
            let dropped = (swaps - 1) * self.slot;
            write!(file, "\n[fledge: {dropped} bytes left out here; this log has reached its limit]\n")?;
        }
        for (part, length) in [(&mut older, self.slot), (&mut newer, filled)] {
            part.rewind()?;
            io::copy(&mut part.take(length), file)?;
            part.set_len(0)?;
        }
        Ok(())
    }

    fn file(&mut self) -> io::Result<&mut File> {
        match &mut self.file {
            Some(file) => Ok(file),
            none => Ok(none.insert(File::options().write(true).create_new(true).mode(0o600).open(&self.path)?)),
        }
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Slots {
    fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self { older: tempfile::tempfile_in(folder)?, newer: tempfile::tempfile_in(folder)?, filled: 0, swaps: 0 })
    }

    /// Swaps the slots. The old content is overwritten and not truncated, which costs less.
    fn swap(&mut self) -> io::Result<()> {
        std::mem::swap(&mut self.older, &mut self.newer);
        self.newer.rewind()?;
        (self.filled, self.swaps) = (0, self.swaps + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn written(limit: u64, pieces: &[&[u8]]) -> Vec<u8> {
        let folder = crate::test_support::temp_dir();
        let path = folder.path().join("new/step.log");
        let mut log = StepLogFile::prepare(path.clone(), limit).unwrap();
        pieces.iter().for_each(|piece| log.write(piece).unwrap());
        log.finish(true).unwrap();
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
    fn at_every_length_the_end_is_whole_and_its_parts_are_in_order() {
        let long: Vec<u8> = (0..200u32).map(|n| b'a' + (n % 26) as u8).collect();
        for length in 0..=long.len() {
            let kept = written(30, &long[..length].chunks(7).collect::<Vec<_>>());
            let last = &long[..length][length - length.min(5)..];
            assert!(kept.ends_with(last) && kept.len() <= 30 + 80, "{length}: {}", String::from_utf8_lossy(&kept));
            let dropped = String::from_utf8_lossy(&kept).split(' ').nth(1).map_or(0, |count| count.parse().unwrap());
            let note = kept.len() - (length - dropped);
            assert!((dropped == 0) == (note == 0) && kept[..15.min(length)] == long[..15.min(length)], "{length}");
            assert_eq!(kept[(15 + note).min(kept.len())..], long[..length][(15 + dropped).min(length)..], "{length}");
        }
    }

    #[test]
    fn what_writes_nothing_has_a_file_only_where_one_is_wanted_and_never_an_old_one() {
        let folder = crate::test_support::temp_dir();
        let path = folder.path().join("step.log");
        fs::write(&path, "old").unwrap();
        StepLogFile::prepare(path.clone(), 600).unwrap().finish(false).unwrap();
        assert!(!path.exists());
        StepLogFile::prepare(path.clone(), 600).unwrap().finish(true).unwrap();
        assert_eq!(fs::read(path).unwrap(), b"");
    }

    #[test]
    fn a_link_in_the_place_of_the_log_is_replaced() {
        let folder = crate::test_support::temp_dir();
        let (victim, path) = (folder.path().join("victim"), folder.path().join("step.log"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        let mut log = StepLogFile::prepare(path.clone(), 600).unwrap();
        log.write(b"output").unwrap();
        log.finish(false).unwrap();
        assert_eq!((fs::read(&victim).unwrap(), fs::read(&path).unwrap()), (b"precious".to_vec(), b"output".to_vec()));
    }
}
