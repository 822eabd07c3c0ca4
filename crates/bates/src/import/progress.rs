//! How far an import is, for whoever looks on: on a terminal one line that is written over, elsewhere nothing.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use bates_core::{Clock as _, SystemClock};

use crate::output::grouped;

/// How often it is shown.
const PERIOD: Duration = Duration::from_millis(200);

pub(super) struct Progress {
    is_shown: bool,
    size: u64,
    began: Duration,
    shown: Duration,
    first: Option<(u64, u64)>,
}

impl Progress {
    pub(super) fn new(size: u64) -> Self {
        let now = SystemClock.elapsed();
        Self {
            is_shown: std::io::stderr().is_terminal(),
            size,
            began: now,
            shown: Duration::ZERO,
            first: None,
        }
    }

    /// So many documents have numbers, and so much of the file was read.
    pub(super) fn show(&mut self, documents: u64, bytes: u64) {
        let now = SystemClock.elapsed();
        let (documents_before, bytes_before) = *self.first.get_or_insert((documents, bytes));
        if !self.is_shown || now.saturating_sub(self.shown) < PERIOD {
            return;
        }
        self.shown = now;
        let seconds = now.saturating_sub(self.began).as_secs().max(1);
        let rate = (documents - documents_before) / seconds;
        let pace = ((bytes - bytes_before) / seconds).max(1);
        let left = self.size.saturating_sub(bytes) / pace;
        let percent = (bytes.min(self.size) * 100).checked_div(self.size).unwrap_or(100);
        let line =
            format!("{percent:>3} %  {} documents  {}/s  {left} s left", grouped(documents), grouped(rate));
        // Nobody reads what cannot be written.
        let _ = write!(std::io::stderr(), "\r{line:<70}");
    }

    pub(super) fn end(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r{:<70}\r", "");
        }
    }
}
