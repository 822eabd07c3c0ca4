//! Prints a line when a step begins, and its duration when it ends. Must never hide the output of the step.

use std::time::Instant;

use anyhow::Result;

pub(crate) fn step<T>(name: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("==> {name}");
    let started = Instant::now();
    let outcome = work();
    eprintln!("    {:.1} s", started.elapsed().as_secs_f64());
    outcome
}
