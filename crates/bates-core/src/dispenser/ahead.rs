//! Numbers of a busy scope, rendered ahead of their callers: a shuffled number takes six times as long alone as among
//! many.
//!
//! Invariant: a number rendered ahead is still held. It is answered only if its positions are the next ones held, and
//! leaves together with them.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bates_pattern::{AcceptedPositions, Position, SHUFFLE_BATCH_LEN, Scope};
use zeroize::Zeroizing;

use super::cell::{Cell, WithRefill};
use crate::planted::numbers_leave_late;
use crate::range::PositionRange;
use crate::series::{ListValue, Series};

/// Max positions that are tried at once, while the other scopes of the shard wait: some microseconds.
const POSITIONS_MAX: u64 = 2 * SHUFFLE_BATCH_LEN as u64;

/// Max scopes with numbers ahead, of some kilobytes each.
const SCOPES_MAX: usize = 4_096;

/// Numbers are rendered ahead from the second grant of a scope on.
const BUSY_GROWTHS: u8 = 2;

/// A scope ready to render, as one description of its series shows it.
#[derive(Clone, Debug)]
pub(crate) struct Rendering {
    pub(crate) series: Series,
    pub(crate) scope: Scope,
    pub(crate) value: ListValue,
}

/// The number that was taken from memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Popped {
    /// The number of this position was answered.
    Answered(u64),
    /// To be rendered by the caller; the rules may reject it.
    Position(u64),
}

pub(super) struct NumbersAhead {
    rendering: Arc<Rendering>,
    numbers: Vec<NumberAhead>,
    /// The index of the first number that was not answered.
    next: usize,
    /// They are secret until they are issued.
    text: Zeroizing<Vec<u8>>,
    _room: Room,
}

struct NumberAhead {
    /// The rules reject the positions of it before `position`.
    from: u64,
    position: u64,
    /// Where its value stands in the text.
    value: Range<usize>,
}

/// How many scopes have numbers ahead.
#[derive(Default)]
pub(super) struct Rooms(Arc<AtomicUsize>);

struct Room(Arc<AtomicUsize>);

impl Rooms {
    fn take(&self) -> Option<Room> {
        let room = Room(self.0.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < SCOPES_MAX).then_some(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl NumbersAhead {
    /// `None` if too many scopes have numbers ahead.
    pub(super) fn new(rendering: Rendering, rooms: &Rooms) -> Option<Self> {
        let room = rooms.take()?;
        Some(Self {
            rendering: Arc::new(rendering),
            numbers: Vec::with_capacity(SHUFFLE_BATCH_LEN),
            next: 0,
            text: Zeroizing::default(),
            _room: room,
        })
    }

    pub(super) fn rendering(&self) -> &Arc<Rendering> {
        &self.rendering
    }

    /// The next number, if the first of the `held` positions that the rules accept is near: the last of its positions, and
    /// its value.
    #[inline]
    pub(super) fn next(&mut self, held: PositionRange) -> Option<(u64, &[u8])> {
        let is_next = |number: &NumberAhead| {
            numbers_leave_late() || number.from == held.from() && number.position < held.to()
        };
        if !self.numbers.get(self.next).is_some_and(is_next) {
            self.render(held);
        }
        let NumberAhead { position, value, .. } = self.numbers.get(self.next)?;
        self.next += 1;
        Some((*position, &self.text[value.clone()]))
    }

    fn is_any_left(&self) -> bool {
        self.next < self.numbers.len()
    }

    /// Replaces all numbers by those of the first `held` positions.
    #[cold]
    fn render(&mut self, held: PositionRange) {
        let Self { rendering, numbers, next, text, .. } = self;
        *next = 0;
        numbers.clear();
        text.clear();
        let Some(range) = held.split(POSITIONS_MAX).0 else { return };
        let mut from = range.from();
        rendering.walk(range, text, |position, _, value| {
            numbers.push(NumberAhead { from, position, value });
            from = position + 1;
            numbers.len() < SHUFFLE_BATCH_LEN
        });
    }
}

impl Rendering {
    /// The value of the only position of a range, unless the rules reject it. `text` is scratch space.
    pub(crate) fn render_one<'t>(&self, range: PositionRange, text: &'t mut Vec<u8>) -> Option<&'t [u8]> {
        let mut found = None;
        self.walk(range, text, |_, _, value| {
            found = Some(value);
            false
        });
        Some(&text[found?])
    }

    /// Appends the values of a range whose numbers the rules accept; before each, `begin` appends what stands before a value
    /// of that length, and after each comes `end`.
    pub(crate) fn append(
        &self,
        range: PositionRange,
        out: &mut Vec<u8>,
        begin: impl Fn(&mut Vec<u8>, usize),
        end: &[u8],
    ) {
        let bounds = Position::new(range.from()).zip(Position::new(range.to() - 1));
        let Some((first, last)) = bounds else { return };
        let mut numbers = self.scope.accepted(first, last);
        // Numbers seldom differ in length: what stands before one is written for the length of the one before it.
        let mut length = 0;
        loop {
            let start = out.len();
            begin(out, length);
            let number = out.len();
            if numbers.next_into(out).is_none() {
                return out.truncate(start);
            }
            let value = self.value_in(number..out.len());
            if value != (number..number + length) || value.end != out.len() {
                let text = out[value].to_vec();
                out.truncate(start);
                length = text.len();
                begin(out, length);
                out.extend_from_slice(&text);
            }
            let end_of_value = out.len();
            out.extend_from_slice(end);
            if self.scope.are_numbers_alike() {
                let value = end_of_value - length..end_of_value;
                return self.append_alike(start, value, range.count() - 1, &mut numbers, out);
            }
        }
    }

    /// Appends further numbers: copies of all that was appended from `start` on, with other values of `{seq}`.
    fn append_alike(
        &self,
        start: usize,
        value: Range<usize>,
        count: u64,
        numbers: &mut AcceptedPositions<'_>,
        out: &mut Vec<u8>,
    ) {
        let (length, first_copy) = (out.len() - start, out.len());
        let end = first_copy + length * usize::try_from(count).expect("numbers that fit the memory");
        while out.len() < end {
            // Whole copies, and twice as many each time.
            let copied = (out.len() - start).min(end - out.len());
            out.extend_from_within(start..start + copied);
        }
        let seq = match self.value {
            ListValue::Id => self.scope.seq_range(value.len()),
            ListValue::Seq => 0..value.len(),
        };
        let seq = value.start - start + seq.start..value.start - start + seq.end;
        numbers.fill_seqs(out[first_copy..].chunks_exact_mut(length).map(|copy| &mut copy[seq.clone()]));
    }

    /// Where the value stands in a number.
    fn value_in(&self, number: Range<usize>) -> Range<usize> {
        match self.value {
            ListValue::Id => number,
            ListValue::Seq => {
                let seq = self.scope.seq_range(number.len());
                number.start + seq.start..number.start + seq.end
            }
        }
    }

    /// Appends the numbers of a range that the rules accept, as long as `visit` wants more. It gets the position of each, and
    /// where its value stands in the text.
    fn walk(
        &self,
        range: PositionRange,
        text: &mut Vec<u8>,
        mut visit: impl FnMut(u64, &[u8], Range<usize>) -> bool,
    ) {
        let bounds = Position::new(range.from()).zip(Position::new(range.to() - 1));
        let Some((first, last)) = bounds else { return };
        let mut numbers = self.scope.accepted(first, last);
        let mut begin = text.len();
        while let Some(position) = numbers.next_into(text) {
            if !visit(position.value(), text, self.value_in(begin..text.len())) {
                return;
            }
            begin = text.len();
        }
    }
}

impl Cell {
    /// Takes the next number. Rendered ahead in a busy scope; in others only its position is taken, and the rules may reject
    /// it. `series` is the description that it is rendered by.
    #[inline]
    pub(super) fn try_pop(
        &mut self,
        series: &Series,
        rooms: &Rooms,
        open: impl FnOnce() -> Option<Rendering>,
        answer: impl FnOnce(&[u8]),
    ) -> Option<WithRefill<Popped>> {
        if self.waiters.is_some() {
            return None;
        }
        let held = self.held.first_range()?;
        let popped = match self.ahead_of(series, rooms, open) {
            None => Popped::Position(held.from()),
            Some(ahead) => {
                let (position, value) = ahead.next(held)?;
                answer(value);
                Popped::Answered(position)
            }
        };
        let (Popped::Position(last) | Popped::Answered(last)) = popped;
        let stays = numbers_leave_late() && self.ahead.as_ref().is_some_and(|ahead| ahead.is_any_left());
        if !stays {
            self.held.take_through(last);
        }
        self.is_used = true;
        Some((popped, self.refill_if_low()))
    }

    /// The numbers ahead, as `series` renders them; `None` if the scope is not busy, or too many others are.
    #[inline]
    fn ahead_of(
        &mut self,
        series: &Series,
        rooms: &Rooms,
        open: impl FnOnce() -> Option<Rendering>,
    ) -> Option<&mut NumbersAhead> {
        if self.growths < BUSY_GROWTHS {
            return None;
        }
        let is_current = self.ahead.as_ref().is_some_and(|ahead| ahead.rendering().series.is(series));
        if !is_current {
            self.ahead = None;
            self.ahead = Some(Box::new(NumbersAhead::new(open()?, rooms)?));
        }
        self.ahead.as_deref_mut()
    }

    /// How a busy scope is rendered.
    pub(super) fn rendering(
        &mut self,
        series: &Series,
        rooms: &Rooms,
        open: impl FnOnce() -> Option<Rendering>,
    ) -> Option<Arc<Rendering>> {
        self.ahead_of(series, rooms, open).map(|ahead| ahead.rendering().clone())
    }
}
