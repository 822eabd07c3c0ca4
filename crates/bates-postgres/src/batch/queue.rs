//! The queue of waiting calls, by scope, and the lines on which batches run: as many as there are connections, each with
//! one batch at a time. Pure: knows no database and no task.
//!
//! Invariant: a scope is in one batch at a time. Later calls join it once its locks are held, or wait for the next one.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use bates_core::ScopeId;

/// Max scopes in one batch. More would hold locks longer without making a commit much cheaper.
const SCOPES_MAX: usize = 1_000;

/// A further batch begins beside those under way only for this many calls for each of them: several small batches cost the
/// database a multiple of one that is larger.
const WAITING_MIN: usize = 32;

/// Max bytes of documents in one batch, which PostgreSQL keeps in memory. The last document may exceed it.
const BYTES_MAX: usize = 8 << 20;

pub(crate) trait QueueItem {
    fn bytes(&self) -> usize;

    /// Whether the call may join a batch that already holds its locks.
    fn may_join_late(&self) -> bool;
}

pub(crate) struct Queue<J> {
    /// Scopes with waiting calls and without a batch, in the order in which the calls came.
    ready: VecDeque<ScopeId>,
    /// Every scope with waiting calls or a batch under way.
    scopes: HashMap<ScopeId, ScopeQueue<J>>,
    free_lines: Vec<i32>,
    lines: i32,
    /// How many calls the ready scopes have.
    waiting: usize,
    under_way: usize,
    /// How many batches have ended.
    ended: u64,
    /// The value of `ended` when the calls that wait now were first left waiting.
    stalled_at: Option<u64>,
}

struct ScopeQueue<J> {
    jobs: VecDeque<J>,
    is_under_way: bool,
}

pub(crate) struct Group<J> {
    pub(crate) scope_id: ScopeId,
    pub(crate) jobs: Vec<J>,
}

pub(crate) struct Batch<J> {
    pub(crate) line: i32,
    /// Ordered by scope id: all nodes take their locks in this order, which prevents deadlocks.
    pub(crate) groups: Vec<Group<J>>,
}

impl<J: QueueItem> Queue<J> {
    pub(crate) fn new(lines: usize) -> Self {
        let lines = i32::try_from(lines.max(1)).unwrap_or(i32::MAX);
        Self {
            ready: VecDeque::new(),
            scopes: HashMap::new(),
            free_lines: (0..lines).rev().collect(),
            lines,
            waiting: 0,
            under_way: 0,
            ended: 0,
            stalled_at: None,
        }
    }

    /// Returns a batch to run if a line is free, unless few calls wait and a batch is under way.
    pub(crate) fn push(&mut self, scope_id: ScopeId, job: J) -> Option<Batch<J>> {
        let idle = ScopeQueue { jobs: VecDeque::new(), is_under_way: false };
        let waiting = self.scopes.entry(scope_id.clone()).or_insert(idle);
        if waiting.jobs.is_empty() && !waiting.is_under_way {
            self.ready.push_back(scope_id);
        }
        if !waiting.is_under_way {
            self.waiting += 1;
        }
        waiting.jobs.push_back(job);
        self.next_if_worthwhile()
    }

    /// Few calls wait for the end of a batch that is under way.
    fn next_if_worthwhile(&mut self) -> Option<Batch<J>> {
        if self.under_way > 0 && self.waiting < WAITING_MIN * self.under_way { None } else { self.next() }
    }

    /// Whether calls begin to wait although a line is free: the caller must then call [`Queue::relieve`] after a while. To be
    /// asked after each call and each batch.
    pub(crate) fn begins_to_wait(&mut self) -> bool {
        let waits = !self.ready.is_empty() && !self.free_lines.is_empty();
        if !waits || self.stalled_at.is_some() {
            return false;
        }
        self.stalled_at = Some(self.ended);
        true
    }

    /// Returns a batch to run if no batch has ended meanwhile: the one under way may wait for locks of a stalled node. Then,
    /// or if no call waits any more, the caller stops.
    pub(crate) fn relieve(&mut self) -> ControlFlow<Option<Batch<J>>> {
        let stalled_at = self.stalled_at.replace(self.ended);
        if self.ready.is_empty() || self.free_lines.is_empty() || stalled_at == Some(self.ended) {
            self.stalled_at = None;
            return ControlFlow::Break(self.next());
        }
        ControlFlow::Continue(())
    }

    /// Adds calls that came after the batch was formed.
    pub(crate) fn add_late(&mut self, groups: &mut [Group<J>]) {
        let bytes: usize = groups.iter().flat_map(|group| &group.jobs).map(QueueItem::bytes).sum();
        let mut room = BYTES_MAX.saturating_sub(bytes);
        for group in groups {
            let Some(waiting) = self.scopes.get_mut(&group.scope_id) else { continue };
            for job in std::mem::take(&mut waiting.jobs) {
                if room > 0 && job.may_join_late() {
                    room = room.saturating_sub(job.bytes());
                    group.jobs.push(job);
                } else {
                    waiting.jobs.push_back(job);
                }
            }
        }
    }

    /// Ends the batch of these scopes on a line. Returns the next batch to run.
    pub(crate) fn ended(&mut self, line: i32, scope_ids: &[ScopeId]) -> Option<Batch<J>> {
        for scope_id in scope_ids {
            match self.scopes.get_mut(scope_id) {
                Some(waiting) if !waiting.jobs.is_empty() => {
                    waiting.is_under_way = false;
                    self.waiting += waiting.jobs.len();
                    self.ready.push_back(scope_id.clone());
                }
                _ => drop(self.scopes.remove(scope_id)),
            }
        }
        self.free_lines.push(line);
        (self.under_way, self.ended) = (self.under_way - 1, self.ended + 1);
        self.next_if_worthwhile()
    }

    /// A line that was never used, to replace one whose last commit is unknown.
    pub(crate) fn fresh_line(&mut self) -> i32 {
        self.lines += 1;
        self.lines - 1
    }

    fn next(&mut self) -> Option<Batch<J>> {
        if self.ready.is_empty() {
            return None;
        }
        let line = self.free_lines.pop()?;
        self.under_way += 1;
        let (mut groups, mut room) = (Vec::new(), BYTES_MAX);
        while groups.len() < SCOPES_MAX
            && room > 0
            && let Some(scope_id) = self.ready.pop_front()
        {
            if let Some(waiting) = self.scopes.get_mut(&scope_id) {
                waiting.is_under_way = true;
                self.waiting -= waiting.jobs.len();
                groups.push(Group { scope_id, jobs: waiting.take(&mut room) });
            }
        }
        groups.sort_unstable_by(|one, other| one.scope_id.cmp(&other.scope_id));
        Some(Batch { line, groups })
    }
}

impl<J: QueueItem> ScopeQueue<J> {
    fn take(&mut self, room: &mut usize) -> Vec<J> {
        let fits = |job: &&J| {
            let fits = *room > 0;
            *room = room.saturating_sub(job.bytes());
            fits
        };
        let count = self.jobs.iter().take_while(fits).count();
        self.jobs.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use bates_core::ScopeKey;

    use super::*;

    /// A number above 1,000 counts as that many bytes, and may not join late.
    impl QueueItem for u32 {
        fn bytes(&self) -> usize {
            if *self > 1_000 { *self as usize } else { 0 }
        }

        fn may_join_late(&self) -> bool {
            *self <= 1_000
        }
    }

    fn scope_id(scope: &str) -> ScopeId {
        let scope = ScopeKey::new([("scope", scope)], None).unwrap();
        ScopeId { series: "counter".parse().unwrap(), scope }
    }

    fn shown(batch: Option<&Batch<u32>>) -> Vec<(String, Vec<u32>)> {
        let groups = batch.into_iter().flat_map(|batch| &batch.groups);
        groups.map(|group| (group.scope_id.scope.to_string(), group.jobs.clone())).collect()
    }

    #[test]
    fn calls_for_a_scope_under_way_form_one_group_of_the_next_batch() {
        let mut queue = Queue::new(2);
        let first = queue.push(scope_id("a"), 1).unwrap();
        assert!(queue.push(scope_id("a"), 2).is_none() && queue.push(scope_id("a"), 3).is_none());
        assert!(queue.push(scope_id("d"), 5).is_none() && queue.push(scope_id("c"), 6).is_none());
        let second = queue.ended(first.line, &[scope_id("a")]);
        let expected = [("a", vec![2, 3]), ("c", vec![6]), ("d", vec![5])];
        assert_eq!(shown(second.as_ref()), expected.map(|(scope, jobs)| (format!("scope={scope}"), jobs)));
    }

    #[test]
    fn a_further_batch_begins_for_many_calls_or_beside_one_that_does_not_end() {
        let mut queue = Queue::new(8);
        let first = queue.push(scope_id("a"), 0).unwrap();
        let calls = u32::try_from(WAITING_MIN).unwrap();
        let of = |call| scope_id(&format!("b{call:02}"));
        // Later calls of the scope under way do not count: they join its batch.
        assert!((0..calls).all(|call| queue.push(scope_id("a"), call).is_none()));
        assert!((1..calls).all(|call| queue.push(of(call), call).is_none()), "few calls wait");
        assert!(queue.begins_to_wait() && !queue.begins_to_wait(), "one caller relieves them");
        let second = queue.push(of(0), 0).unwrap();
        assert_eq!(second.groups.len(), WAITING_MIN, "enough calls");
        assert!(
            (1..2 * calls).all(|call| queue.push(of(call + 100), call).is_none()),
            "fewer for each batch"
        );
        let third = queue.push(of(100), 0).unwrap();
        assert!(queue.push(scope_id("d"), 1).is_none());
        assert!(queue.ended(second.line, &[]).is_none(), "few wait, and two batches are under way");
        assert!(queue.relieve().is_continue(), "a batch has ended");
        let relieved = queue.relieve().break_value().flatten();
        assert_eq!(shown(relieved.as_ref()), [("scope=d".to_owned(), vec![1])], "no batch ended meanwhile");
        assert!(queue.relieve().break_value().flatten().is_none(), "no call waits");
        assert!(queue.push(scope_id("e"), 1).is_none() && queue.begins_to_wait());
        // With the calls that came for its own scope meanwhile, 33 wait.
        assert!(queue.ended(first.line, &[scope_id("a")]).is_none(), "two batches are under way");
        let last = queue.ended(third.line, &[]).unwrap();
        assert_eq!(last.groups.len(), 2, "all that wait, beside the one that is under way");
    }

    #[test]
    fn the_last_batch_to_end_takes_all_that_wait() {
        let mut queue = Queue::new(2);
        let first = queue.push(scope_id("a"), 0).unwrap();
        assert!(queue.push(scope_id("b"), 1).is_none() && queue.begins_to_wait());
        let relieved = queue.relieve().break_value().flatten().unwrap();
        assert!(queue.push(scope_id("c"), 2).is_none());
        assert!(queue.ended(relieved.line, &[scope_id("b")]).is_none() && queue.begins_to_wait());
        let last = queue.ended(first.line, &[scope_id("a")]);
        assert_eq!(shown(last.as_ref()), [("scope=c".to_owned(), vec![2])]);
    }

    #[test]
    fn a_call_that_joins_a_running_batch_is_in_no_other_batch() {
        let mut queue = Queue::new(1);
        let mut batch = queue.push(scope_id("a"), 1).unwrap();
        assert!(queue.push(scope_id("b"), 2).is_none() && queue.push(scope_id("a"), 3).is_none());
        queue.add_late(&mut batch.groups);
        assert_eq!(shown(Some(&batch)), [("scope=a".to_owned(), vec![1, 3])]);
        assert!(queue.push(scope_id("a"), 4).is_none(), "too late for the running batch");
        let next = queue.ended(batch.line, &[scope_id("a")]);
        assert_eq!(
            shown(next.as_ref()),
            ["a", "b"].map(|scope| (format!("scope={scope}"), vec![if scope == "a" { 4 } else { 2 }]))
        );
    }

    #[test]
    fn a_call_that_may_not_join_late_keeps_its_turn_in_the_next_batch() {
        let mut queue = Queue::new(1);
        let mut batch = queue.push(scope_id("a"), 1).unwrap();
        for job in [2_000, 2, 3_000] {
            assert!(queue.push(scope_id("a"), job).is_none());
        }
        queue.add_late(&mut batch.groups);
        assert_eq!(shown(Some(&batch)), [("scope=a".to_owned(), vec![1, 2])]);
        let next = queue.ended(batch.line, &[scope_id("a")]);
        assert_eq!(shown(next.as_ref()), [("scope=a".to_owned(), vec![2_000, 3_000])]);
    }

    #[test]
    fn a_batch_stops_at_its_byte_limit_and_the_rest_follows() {
        let heavy = u32::try_from(BYTES_MAX).unwrap() / 2 + 1;
        let mut queue = Queue::new(1);
        let first = queue.push(scope_id("z"), 1).unwrap();
        for (scope, job) in [("a", heavy), ("a", 4), ("a", heavy), ("a", heavy), ("b", 5)] {
            assert!(queue.push(scope_id(scope), job).is_none());
        }
        let second = queue.ended(first.line, &[scope_id("z")]);
        assert_eq!(shown(second.as_ref()), [("scope=a".to_owned(), vec![heavy, 4, heavy])]);
        let third = queue.ended(0, &[scope_id("a")]);
        let expected = [("scope=a".to_owned(), vec![heavy]), ("scope=b".to_owned(), vec![5])];
        assert_eq!(shown(third.as_ref()), expected);
        assert!(queue.ended(0, &[scope_id("a"), scope_id("b")]).is_none() && queue.scopes.is_empty());
    }

    #[test]
    fn a_served_call_leaves_nothing_in_the_queue() {
        let mut queue = Queue::new(1);
        let batch = queue.push(scope_id("a"), 1).unwrap();
        assert!(queue.ended(batch.line, &[scope_id("a")]).is_none());
        assert!(queue.scopes.is_empty() && queue.ready.is_empty());
        assert_eq!(queue.push(scope_id("a"), 2).unwrap().line, batch.line);
    }

    #[test]
    fn a_line_that_is_given_up_is_replaced_by_a_new_one() {
        let mut queue = Queue::new(3);
        let batch = queue.push(scope_id("a"), 1).unwrap();
        let fresh = queue.fresh_line();
        assert!(queue.ended(fresh, &[scope_id("a")]).is_none());
        let lines = ["a", "b", "c"].map(|scope| {
            let batch = queue.push(scope_id(scope), 1);
            batch.or_else(|| queue.next()).unwrap().line
        });
        assert!(lines.contains(&fresh) && !lines.contains(&batch.line), "{lines:?}");
    }
}
