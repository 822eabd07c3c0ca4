//! Checks a history against its rules. Each rule is one sort and one pass, so that millions of answers take seconds.

use super::{Entry, ExplainedGap, Scope, Violation};

/// Max violations reported: a broken server breaks the rules with every answer.
const VIOLATIONS_MAX: usize = 100;

/// The rules of a history. Uniqueness is always checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether a number must be greater than all numbers answered before it was requested.
    pub is_ordered: bool,
    /// Which numbers may be missing.
    pub gaps: Gaps,
}

/// Which numbers may be missing below the highest number of each scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Any.
    Any,
    /// From `start` on, the explained gaps and at most `skipped_max` more.
    AtMost {
        /// The first number of each scope.
        start: u64,
        /// How many unexplained numbers may be missing in each scope.
        skipped_max: u64,
    },
}

/// The violations of the rules, at most a hundred.
pub fn check(entries: &[Entry], explained: &[ExplainedGap], rules: Rules) -> Vec<Violation> {
    let mut by_number: Vec<&Entry> = entries.iter().collect();
    by_number.sort_unstable_by_key(|entry| (entry.scope, entry.first, entry.last));
    let mut found: Vec<Violation> = repeated(&by_number).take(VIOLATIONS_MAX).collect();
    if rules.is_ordered {
        found.extend(out_of_order(entries).into_iter().take(VIOLATIONS_MAX - found.len()));
    }
    if let Gaps::AtMost { start, skipped_max } = rules.gaps {
        let skipped = skipped(&by_number, explained, start, skipped_max);
        found.extend(skipped.into_iter().take(VIOLATIONS_MAX - found.len()));
    }
    found
}

/// Finds ranges that begin before an earlier range has ended.
fn repeated(by_number: &[&Entry]) -> impl Iterator<Item = Violation> {
    let mut furthest: Option<&Entry> = None;
    by_number.iter().filter_map(move |entry| {
        let earlier = furthest.filter(|earlier| earlier.scope == entry.scope);
        if earlier.is_none_or(|earlier| earlier.last < entry.last) {
            furthest = Some(entry);
        }
        let one = *earlier.filter(|earlier| earlier.last >= entry.first)?;
        Some(Violation::Repeated { one, other: **entry })
    })
}

/// Walks through the requests in order, with the highest number answered before each.
fn out_of_order(entries: &[Entry]) -> Vec<Violation> {
    let mut by_request: Vec<&Entry> = entries.iter().collect();
    by_request.sort_unstable_by_key(|entry| (entry.scope, entry.asked));
    let mut by_answer: Vec<&Entry> = entries.iter().collect();
    by_answer.sort_unstable_by_key(|entry| (entry.scope, entry.answered));
    let mut answers = by_answer.into_iter().peekable();
    let mut highest: Option<&Entry> = None;
    let mut found = Vec::new();
    for later in by_request {
        while let Some(answer) =
            answers.next_if(|answer| (answer.scope, answer.answered) < (later.scope, later.asked))
        {
            if highest.is_none_or(|highest| highest.scope != answer.scope || highest.last < answer.last) {
                highest = Some(answer);
            }
        }
        let earlier = highest.filter(|highest| highest.scope == later.scope && highest.last >= later.first);
        if let Some(earlier) = earlier
            && found.len() < VIOLATIONS_MAX
        {
            found.push(Violation::OutOfOrder { earlier: *earlier, later: *later });
        }
    }
    found
}

/// The holes found so far in one scope.
struct Holes<'e> {
    scope: Scope,
    /// The number after the highest one seen.
    next: u64,
    last: Option<&'e Entry>,
    skipped: u64,
    widest: Option<(u64, Option<&'e Entry>, &'e Entry)>,
}

fn skipped(by_number: &[&Entry], explained: &[ExplainedGap], start: u64, skipped_max: u64) -> Vec<Violation> {
    let explained = merge(explained);
    let mut found = Vec::new();
    for scope in by_number.chunk_by(|one, other| one.scope == other.scope) {
        let id = scope[0].scope;
        let from = explained.partition_point(|gap| gap.scope < id);
        let to = explained.partition_point(|gap| gap.scope <= id);
        let mut holes = Holes { scope: id, next: start, last: None, skipped: 0, widest: None };
        for entry in scope {
            holes.advance(entry, &explained[from..to]);
        }
        found.extend(holes.verdict(skipped_max));
    }
    found
}

impl<'e> Holes<'e> {
    /// Advances to the next answer. `explained` has the gaps of this scope, ascending and disjoint.
    fn advance(&mut self, entry: &'e Entry, explained: &[ExplainedGap]) {
        if entry.first > self.next {
            let hole = entry.first - self.next - count_explained(explained, self.next, entry.first);
            self.skipped += hole;
            if hole > 0 && self.widest.is_none_or(|(widest, ..)| widest < hole) {
                self.widest = Some((hole, self.last, entry));
            }
        }
        if entry.last >= self.next {
            (self.next, self.last) = (entry.last + 1, Some(entry));
        }
    }

    fn verdict(self, allowed: u64) -> Option<Violation> {
        let Self { scope, skipped, .. } = self;
        let (_, before, after) = self.widest.filter(|_| skipped > allowed)?;
        Some(Violation::Skipped { scope, skipped, allowed, before: before.copied(), after: *after })
    }
}

/// Sorts the gaps and joins those that overlap.
fn merge(explained: &[ExplainedGap]) -> Vec<ExplainedGap> {
    let mut sorted = explained.to_vec();
    sorted.sort_unstable_by_key(|gap| (gap.scope, gap.first));
    sorted.dedup_by(|next, gap| {
        let overlaps = next.scope == gap.scope && next.first <= gap.last;
        gap.last = if overlaps { gap.last.max(next.last) } else { gap.last };
        overlaps
    });
    sorted
}

/// How many numbers from `from` to before `to` are explained.
fn count_explained(explained: &[ExplainedGap], from: u64, to: u64) -> u64 {
    let within = &explained[explained.partition_point(|gap| gap.last < from)..];
    let within = within.iter().take_while(|gap| gap.first < to);
    within.map(|gap| (gap.last + 1).min(to) - gap.first.max(from)).sum()
}
