//! Tests of the embedded store, in real folders.
#![allow(clippy::unwrap_used)]

mod change;
mod conformance;
mod damage;
mod documents;
mod folder;
mod granting;
mod killed;
mod syncing;
mod versions;
