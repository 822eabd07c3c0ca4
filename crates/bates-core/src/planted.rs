//! A deliberate bug that tests must catch. Only with the feature `planted-bugs`, which only test builds have, and only if a
//! variable of the environment names it.

/// Whether numbers that were rendered ahead leave together, when the last of them is answered.
#[cfg(feature = "planted-bugs")]
pub(crate) fn numbers_leave_late() -> bool {
    use std::sync::LazyLock;

    static PLANTED: LazyLock<bool> =
        LazyLock::new(|| std::env::var("BATES_PLANTED_BUG").is_ok_and(|bug| bug == "numbers-leave-late"));
    *PLANTED
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn numbers_leave_late() -> bool {
    false
}
