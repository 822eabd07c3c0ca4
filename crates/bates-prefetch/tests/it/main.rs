//! The buffer as a program uses it, on a source in memory that records leased and returned positions.

mod closing;
mod dates;
mod filling;
mod forks;
mod source;
mod threads;
