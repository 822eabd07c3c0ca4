//! Bugs that tests must find, planted by a variable of the environment. No build that ships has them.

/// A bug.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A chunk is pushed whatever the marker says.
    PushWithoutFence,
    /// A server that restarted is taken for the same.
    IgnoreRestart,
}

/// Whether a bug is planted.
#[cfg(feature = "planted-bugs")]
pub(crate) fn is_planted(bug: Bug) -> bool {
    use std::sync::LazyLock;

    static PLANTED: LazyLock<Option<Bug>> =
        LazyLock::new(|| match std::env::var("BATES_PLANTED_BUG").ok()?.as_str() {
            "push-without-fence" => Some(Bug::PushWithoutFence),
            "ignore-restart" => Some(Bug::IgnoreRestart),
            _ => None,
        });
    *PLANTED == Some(bug)
}

/// No build that ships has one.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}
