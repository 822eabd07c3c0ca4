//! What the embedded store promises, on a real folder.
#![allow(clippy::unwrap_used)]

mod change;
mod closing;
mod conformance;
mod damage;
mod documents;
mod folder;
mod granting;
mod syncing;
