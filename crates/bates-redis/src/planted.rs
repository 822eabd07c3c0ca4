//! A deliberate bug that tests must catch. Only with the feature `planted-bugs`, which only test builds have, and only if a
//! variable of the environment names it.

/// Whether a chunk is pushed without checking its marker.
#[cfg(feature = "planted-bugs")]
pub(crate) fn pushes_without_fence() -> bool {
    std::env::var("BATES_PLANTED_BUG").is_ok_and(|bug| bug == "push-without-fence")
}

#[cfg(not(feature = "planted-bugs"))]
pub(crate) const fn pushes_without_fence() -> bool {
    false
}
