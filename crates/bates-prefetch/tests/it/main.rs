//! The buffer as a program uses it, on a source in memory that counts what it gave and what came back.

mod closing;
mod dates;
mod filling;
mod forks;
mod source;
mod threads;
