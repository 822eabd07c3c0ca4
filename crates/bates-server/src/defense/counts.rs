//! What the server refused and closed, counted for the metrics, and told in notes. Must never grow with the number of
//! addresses, nor tell more than one note a minute.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::address::AddressBlock;

const NOTE_PERIOD: Duration = Duration::from_mins(1);

/// Something that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A wrong secret was checked.
    WrongSecret,
    /// A secret was refused without a check.
    SecretRefused,
    /// A request or a connection of a stranger was refused.
    StrangerRefused,
    /// A connection was refused: all slots were taken, or all of its address.
    ConnectionRefused,
    /// A request or a connection was refused because the memory was used up.
    MemoryRefused,
    /// A connection was closed because a new one needed its slot.
    IdleClosed,
    /// A connection was closed because others needed its memory.
    LargeClosed,
}

const EVENTS: usize = 7;

const NOUNS: [&str; EVENTS] = [
    "wrong secrets",
    "secrets refused unchecked",
    "requests without a secret refused",
    "connections refused",
    "requests refused for memory",
    "idle connections closed",
    "large connections closed",
];

#[derive(Debug, Default)]
pub(super) struct Counts {
    totals: [AtomicU64; EVENTS],
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    reported: [u64; EVENTS],
    last_at: Option<Duration>,
    last_wrong: Option<AddressBlock>,
}

impl Counts {
    pub(super) fn add(&self, event: Event, count: u64) {
        self.totals[event as usize].fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn add_wrong_secret(&self, block: AddressBlock) {
        self.add(Event::WrongSecret, 1);
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).last_wrong = Some(block);
    }

    pub(super) fn total(&self, event: Event) -> u64 {
        self.totals[event as usize].load(Ordering::Relaxed)
    }

    /// The news since the last note; `None` without news, or if that note is less than a minute old.
    pub(super) fn note(&self, now: Duration) -> Option<String> {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let totals = self.totals.each_ref().map(|total| total.load(Ordering::Relaxed));
        if totals == notes.reported || notes.last_at.is_some_and(|last| now < last + NOTE_PERIOD) {
            return None;
        }
        let news = totals.iter().zip(&notes.reported).zip(NOUNS).map(|((total, reported), noun)| {
            let count = total - reported;
            (count > 0).then(|| format!("{count} {noun}"))
        });
        let mut note = news.flatten().collect::<Vec<_>>().join(", ");
        if totals[Event::WrongSecret as usize] > notes.reported[Event::WrongSecret as usize]
            && let Some(block) = notes.last_wrong
        {
            note = format!("{note}; the latest wrong secret came from {block}");
        }
        (notes.reported, notes.last_at) = (totals, Some(now));
        Some(note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_tells_the_news_and_comes_once_a_minute() {
        let (counts, now) = (Counts::default(), Duration::from_secs(5));
        assert_eq!(counts.note(now), None);
        let block = AddressBlock::V4([203, 0, 113, 7]);
        counts.add_wrong_secret(block);
        counts.add_wrong_secret(block);
        let expected = "2 wrong secrets; the latest wrong secret came from 203.0.113.7";
        assert_eq!(counts.note(now).as_deref(), Some(expected));
        counts.add(Event::SecretRefused, 5_000);
        assert_eq!(counts.note(now + NOTE_PERIOD.mul_f32(0.9)), None);
        let expected = "5000 secrets refused unchecked";
        assert_eq!(counts.note(now + NOTE_PERIOD).as_deref(), Some(expected));
        assert_eq!(counts.note(now + 3 * NOTE_PERIOD), None, "nothing is new");
    }
}
