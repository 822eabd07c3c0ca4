//! The memory that connections hold together, and how much this machine has. Must never be touched by every command: a
//! connection changes its share only when a buffer of it grew or shrank.

use std::fs;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

/// Shares are rounded up to this, so that small changes cost nothing.
const STEP: usize = 4 * 1024;

#[derive(Debug)]
pub(super) struct MemoryBudget {
    max: usize,
    /// Below zero for a moment if a share that grows in one thread is released in another.
    used: AtomicIsize,
}

/// The bytes of one connection that count.
#[derive(Debug, Default)]
pub(super) struct Share(AtomicUsize);

impl Share {
    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl MemoryBudget {
    pub(super) fn new(max: usize) -> Self {
        Self { max: max.min(isize::MAX.cast_unsigned()), used: AtomicIsize::new(0) }
    }

    pub(super) fn max(&self) -> usize {
        self.max
    }

    pub(super) fn used(&self) -> usize {
        usize::try_from(self.used.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Sets what a connection holds. Returns whether the budget has room for it; it counts in any case.
    pub(super) fn set(&self, share: &Share, bytes: usize) -> bool {
        let bytes = bytes.next_multiple_of(STEP);
        // Usually nothing changed.
        if share.bytes() == bytes {
            return true;
        }
        // Invariant: the budget changes by what each swap changes, so the sum is right whichever thread sets a share last.
        let before = share.0.swap(bytes, Ordering::Relaxed);
        let change = bytes.cast_signed() - before.cast_signed();
        let used = self.used.fetch_add(change, Ordering::Relaxed) + change;
        change <= 0 || used <= self.max.cast_signed()
    }
}

/// What making an answer with `count` numbers holds: the numbers as they are rendered, in buffers that grow, and their
/// encoding.
pub(crate) fn answer_bytes(count: u64, number_bytes_max: usize) -> usize {
    const OVERHEAD: usize = 64;
    let each = number_bytes_max.saturating_mul(4).saturating_add(OVERHEAD);
    usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(each)
}

/// Answers with fewer numbers are not worth the count.
pub(crate) const COUNTED_ANSWER_MIN: u64 = 1_000;

/// A quarter of the memory of this machine, or of the limit of its control group.
pub(super) fn default_budget() -> usize {
    let read = |file: &str| fs::read_to_string(file).ok();
    let machine = read("/proc/meminfo").and_then(|text| total_memory(&text));
    let group = read("/sys/fs/cgroup/memory.max")
        .or_else(|| read("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
        .and_then(|text| text.trim().parse().ok());
    let own_group = read("/proc/self/cgroup").and_then(|text| {
        let path = text.lines().find_map(|line| line.strip_prefix("0::"))?.to_owned();
        read(&format!("/sys/fs/cgroup{path}/memory.max"))?.trim().parse().ok()
    });
    quarter_of_least([machine, group, own_group])
}

/// Without any figure, that of a small machine.
fn quarter_of_least(limits: [Option<u64>; 3]) -> usize {
    const UNKNOWN: u64 = 1024 * 1024 * 1024;
    let least = limits.into_iter().flatten().min().unwrap_or(UNKNOWN);
    usize::try_from(least / 4).unwrap_or(usize::MAX)
}

fn total_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_the_sum_of_the_shares() {
        let (budget, one, other) = (MemoryBudget::new(10 * STEP), Share::default(), Share::default());
        assert!(budget.set(&one, 1) && budget.used() == STEP);
        assert!(budget.set(&other, 9 * STEP) && budget.used() == 10 * STEP);
        assert!(!budget.set(&one, STEP + 1), "beyond the budget");
        assert_eq!(budget.used(), 11 * STEP, "it is held, and counts until it is released");
        assert!(budget.set(&one, 0) && budget.set(&other, 0));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn threads_that_set_one_share_leave_the_sum_right() {
        let (budget, share) = (MemoryBudget::new(0), Share::default());
        std::thread::scope(|scope| {
            for thread in 1..=4 {
                let (budget, share) = (&budget, &share);
                scope.spawn(move || (0..10_000).for_each(|at| _ = budget.set(share, at % 7 * thread * STEP)));
            }
        });
        assert_eq!(budget.used(), share.bytes());
    }

    #[test]
    fn the_default_is_a_quarter_of_the_least_limit() {
        assert_eq!(quarter_of_least([Some(16 << 30), Some(1 << 30), None]), 256 << 20);
        assert_eq!(quarter_of_least([Some(4 << 30), None, None]), 1 << 30);
        assert_eq!(quarter_of_least([None; 3]), 256 << 20);
        assert_eq!(total_memory("MemTotal:       16384 kB\nMemFree: 1 kB\n"), Some(16 << 20));
        assert!(default_budget() > 1 << 20);
    }
}
