//! Prints a line when a step begins, and its duration when it ends. Must never hide what the step prints.

use std::time::Instant;

use anyhow::Result;

pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("==> {name}");
    let begun = Instant::now();
    let outcome = work();
    eprintln!("    {:.1} s", begun.elapsed().as_secs_f64());
    outcome
}
