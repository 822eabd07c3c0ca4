//! A bug on purpose, for the tests that have to catch it. Only with the feature `planted-bugs`, which no build but that
//! of tests has, and only where the environment asks for it.

/// Whether a chunk is pushed whatever its marker says.
#[cfg(feature = "planted-bugs")]
pub(crate) fn pushes_without_fence() -> bool {
    std::env::var("BATES_PLANTED_BUG").is_ok_and(|bug| bug == "push-without-fence")
}

/// No build that ships does.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn pushes_without_fence() -> bool {
    false
}
