//! A bug on purpose, for the tests that have to catch it. Only with the feature `planted-bugs`, which only builds of tests
//! have, and only if the environment asks for it.

/// Whether a chunk is pushed without a look at its marker.
#[cfg(feature = "planted-bugs")]
pub(crate) fn pushes_without_fence() -> bool {
    std::env::var("BATES_PLANTED_BUG").is_ok_and(|bug| bug == "push-without-fence")
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn pushes_without_fence() -> bool {
    false
}
