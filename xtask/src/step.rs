//! Progress: a line when a step begins, a line with its duration when it ends. Must never hide what the
//! step itself prints.

use std::time::Instant;

use anyhow::Result;

/// Runs one step under its name.
pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("==> {name}");
    let begun = Instant::now();
    let outcome = work();
    eprintln!("    {:.1} s", begun.elapsed().as_secs_f64());
    outcome
}
