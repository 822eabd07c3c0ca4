//! Shows the progress of long work on one line of a terminal; prints nothing elsewhere.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use bates_core::{Runtime as _, SystemRuntime};

use crate::output::group_digits;

const PERIOD: Duration = Duration::from_millis(200);

pub(crate) struct Progress {
    is_shown: bool,
    noun: &'static str,
    size: u64,
    began: Duration,
    shown: Duration,
    first: Option<(u64, u64)>,
}

impl Progress {
    pub(crate) fn new(noun: &'static str, size: u64) -> Self {
        let (is_shown, began) = (std::io::stderr().is_terminal(), SystemRuntime.elapsed());
        Self { is_shown, noun, size, began, shown: Duration::ZERO, first: None }
    }

    pub(crate) fn show(&mut self, items: u64, work: u64) {
        let now = SystemRuntime.elapsed();
        let (items_before, work_before) = *self.first.get_or_insert((items, work));
        if !self.is_shown || now.saturating_sub(self.shown) < PERIOD {
            return;
        }
        self.shown = now;
        let seconds = now.saturating_sub(self.began).as_secs().max(1);
        let rate = (items - items_before) / seconds;
        let pace = ((work - work_before) / seconds).max(1);
        let left = self.size.saturating_sub(work) / pace;
        let percent = (work.min(self.size) * 100).checked_div(self.size).unwrap_or(100);
        let (items, rate, noun) = (group_digits(items), group_digits(rate), self.noun);
        let line = format!("{percent:>3} %  {items} {noun}  {rate}/s  {left} s left");
        let _ = write!(std::io::stderr(), "\r{line:<70}");
    }

    pub(crate) fn end(&self) {
        if self.is_shown {
            let _ = write!(std::io::stderr(), "\r{:<70}\r", "");
        }
    }
}
