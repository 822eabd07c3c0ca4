//! The verdict on a history. Each rule is one sort and one pass, so that millions of answers take seconds.

use super::{Entry, Explained, Scope, Violation};

/// A broken server breaks the rules with every answer; so many are enough to see how.
const VIOLATIONS_MAX: usize = 100;

/// What a history has to keep to. Uniqueness is no choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether a number answered before another was asked for has to be smaller.
    pub is_ordered: bool,
    /// What may be missing.
    pub gaps: Gaps,
}

/// What may be missing below the highest number of each scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Whatever is.
    Any,
    /// Of the numbers from `start` on, no more than `skipped_max` besides those that are explained.
    AtMost {
        /// The first number of each scope.
        start: u64,
        /// How many may be missing in each scope.
        skipped_max: u64,
    },
}

/// What contradicts the rules; the first hundred contradictions at most.
pub fn check(entries: &[Entry], explained: &[Explained], rules: Rules) -> Vec<Violation> {
    let mut by_number: Vec<&Entry> = entries.iter().collect();
    by_number.sort_unstable_by_key(|entry| (entry.scope, entry.first, entry.last));
    let mut found: Vec<Violation> = twice(&by_number).take(VIOLATIONS_MAX).collect();
    if rules.is_ordered {
        found.extend(fallen(entries).into_iter().take(VIOLATIONS_MAX - found.len()));
    }
    if let Gaps::AtMost { start, skipped_max } = rules.gaps {
        let skipped = skipped(&by_number, explained, start, skipped_max);
        found.extend(skipped.into_iter().take(VIOLATIONS_MAX - found.len()));
    }
    found
}

/// Where a range begins before all ranges ahead of it are over.
fn twice(by_number: &[&Entry]) -> impl Iterator<Item = Violation> {
    let mut furthest: Option<&Entry> = None;
    by_number.iter().filter_map(move |entry| {
        let ahead = furthest.filter(|ahead| ahead.scope == entry.scope);
        if ahead.is_none_or(|ahead| ahead.last < entry.last) {
            furthest = Some(entry);
        }
        let one = *ahead.filter(|ahead| ahead.last >= entry.first)?;
        Some(Violation::Twice { one, other: **entry })
    })
}

/// Questions in their order, and beside them the highest number that had been answered when each was asked.
fn fallen(entries: &[Entry]) -> Vec<Violation> {
    let mut by_question: Vec<&Entry> = entries.iter().collect();
    by_question.sort_unstable_by_key(|entry| (entry.scope, entry.asked));
    let mut by_answer: Vec<&Entry> = entries.iter().collect();
    by_answer.sort_unstable_by_key(|entry| (entry.scope, entry.answered));
    let mut answers = by_answer.into_iter().peekable();
    let mut highest: Option<&Entry> = None;
    let mut found = Vec::new();
    for later in by_question {
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
            found.push(Violation::Fell { earlier: *earlier, later: *later });
        }
    }
    found
}

/// The holes of one scope, as they are found.
struct Holes<'e> {
    scope: Scope,
    /// The first number that is neither answered nor skipped yet.
    next: u64,
    last: Option<&'e Entry>,
    skipped: u64,
    widest: Option<(u64, Option<&'e Entry>, &'e Entry)>,
}

fn skipped(by_number: &[&Entry], explained: &[Explained], start: u64, skipped_max: u64) -> Vec<Violation> {
    let explained = apart(explained);
    let mut found = Vec::new();
    for scope in by_number.chunk_by(|one, other| one.scope == other.scope) {
        let id = scope[0].scope;
        let from = explained.partition_point(|gap| gap.scope < id);
        let to = explained.partition_point(|gap| gap.scope <= id);
        let mut holes = Holes { scope: id, next: start, last: None, skipped: 0, widest: None };
        for entry in scope {
            holes.reach(entry, &explained[from..to]);
        }
        found.extend(holes.verdict(skipped_max));
    }
    found
}

impl<'e> Holes<'e> {
    /// Goes on to an answer. The gaps are those of the scope, ascending and apart.
    fn reach(&mut self, entry: &'e Entry, explained: &[Explained]) {
        if entry.first > self.next {
            let hole = entry.first - self.next - known(explained, self.next, entry.first);
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
        let (_, before, behind) = self.widest.filter(|_| skipped > allowed)?;
        Some(Violation::Skipped { scope, skipped, allowed, before: before.copied(), behind: *behind })
    }
}

/// Ascending, and those that meet joined.
fn apart(explained: &[Explained]) -> Vec<Explained> {
    let mut sorted = explained.to_vec();
    sorted.sort_unstable_by_key(|gap| (gap.scope, gap.first));
    sorted.dedup_by(|next, gap| {
        let meet = next.scope == gap.scope && next.first <= gap.last;
        gap.last = if meet { gap.last.max(next.last) } else { gap.last };
        meet
    });
    sorted
}

/// How many numbers from `from` to before `to` are explained.
fn known(explained: &[Explained], from: u64, to: u64) -> u64 {
    let within = &explained[explained.partition_point(|gap| gap.last < from)..];
    let within = within.iter().take_while(|gap| gap.first < to);
    within.map(|gap| (gap.last + 1).min(to) - gap.first.max(from)).sum()
}
