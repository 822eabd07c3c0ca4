//! The file of numbers next to the documents. Decides where an import continues.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::Value;

pub(super) struct NumbersFile {
    path: PathBuf,
    file: BufWriter<File>,
    pub(super) done: u64,
}

impl NumbersFile {
    /// Keeps complete lines up to the first document without a number. Calls `check` for every line, with the
    /// document if it has a number; if `check` fails, the file is not changed.
    pub(super) fn open(path: PathBuf, mut check: impl FnMut(Option<&Value>) -> Result<()>) -> Result<Self> {
        let context = || format!("cannot write {}", path.display());
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.with_context(context)?;
        // The operating system unlocks it when the process ends.
        file.try_lock().with_context(|| format!("another import is writing {}", path.display()))?;
        let (mut done, mut kept, mut has_failed) = (0, 0, false);
        let mut reader = BufReader::new(file.try_clone()?);
        let mut line = Vec::new();
        while let Some(read) = super::read_line(&mut reader, &mut line)? {
            let found: Value = serde_json::from_slice(&line).unwrap_or_default();
            if !line.ends_with(b"\n") {
                break;
            }
            let document = found.get("id").and_then(|_| found.get("document"));
            check(document)?;
            has_failed |= document.is_none();
            if !has_failed {
                (done, kept) = (done + 1, kept + read as u64);
            }
        }
        file.set_len(kept)?;
        file.seek(SeekFrom::Start(kept))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file), done })
    }

    pub(super) fn write(&mut self, line: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.file, line)?;
        self.file.write_all(b"\n")?;
        self.done += 1;
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<()> {
        self.file.flush().with_context(|| format!("cannot write {}", self.path.display()))
    }

    pub(super) fn close(mut self) -> Result<PathBuf> {
        self.flush()?;
        self.file.get_ref().sync_all()?;
        Ok(self.path)
    }
}
