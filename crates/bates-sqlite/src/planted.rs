//! Deliberate bugs that tests have to catch. They exist only with the feature `planted-bugs`, in test builds, and only if
//! the environment asks for one.

use std::sync::mpsc::Receiver;

use bates_core::AuditRecord;
use parking_lot::Mutex;
use rusqlite::{Connection, TransactionBehavior};

use crate::batch::{Batch, Job};
use crate::new_scopes::NewScopes;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    SkipSync,
    AnswerBeforeCommit,
    /// A released range returns wherever the cursor stands.
    ReleaseWithoutCompare,
    /// Numbers are answered before the audit records their caller.
    AnswerBeforeRecord,
    OpenBelowAnswered,
    /// New scopes are kept in memory, and in no row.
    LoseNewScopes,
}

#[cfg(feature = "planted-bugs")]
pub(crate) fn is_planted(bug: Bug) -> bool {
    use std::sync::LazyLock;

    static PLANTED: LazyLock<Option<Bug>> =
        LazyLock::new(|| match std::env::var("BATES_PLANTED_BUG").ok()?.as_str() {
            "skip-sync" => Some(Bug::SkipSync),
            "answer-before-commit" => Some(Bug::AnswerBeforeCommit),
            "release-without-compare" => Some(Bug::ReleaseWithoutCompare),
            "answer-before-record" => Some(Bug::AnswerBeforeRecord),
            "open-below-answered" => Some(Bug::OpenBelowAnswered),
            "lose-new-scopes" => Some(Bug::LoseNewScopes),
            "numbers-leave-late" | "push-without-fence" => None,
            other => panic!("unknown bug BATES_PLANTED_BUG={other}"),
        });
    *PLANTED == Some(bug)
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}

/// More records than the callers of a test wait for, so that some of the missing ones were answered.
const HELD_BACK_MAX: usize = 32;

pub(crate) fn hold_back(records: Vec<AuditRecord>) -> Vec<AuditRecord> {
    static HELD: Mutex<Vec<AuditRecord>> = Mutex::new(Vec::new());
    let mut held = HELD.lock();
    held.extend(records);
    let over = held.len().saturating_sub(HELD_BACK_MAX);
    held.drain(..over).collect()
}

/// Writes as the writer does, but answers first and commits when the next write comes.
pub(crate) fn run_answering_early(
    connection: &mut Connection,
    run: i64,
    new_scopes: &mut NewScopes,
    jobs: &Receiver<Job>,
) {
    let mut next = jobs.recv().ok();
    while let Some(job) = next.take() {
        let transaction = connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .expect("a planted bug meets no other fault");
        let mut batch = Batch::default();
        batch.push(job);
        let change = batch.apply(&transaction, run, new_scopes);
        new_scopes.committed(change.expect("a planted bug meets no other fault"));
        batch.answer(&Ok(()));
        next = jobs.recv().ok();
        transaction.commit().expect("a planted bug meets no other fault");
    }
}
