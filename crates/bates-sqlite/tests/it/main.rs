//! What the embedded store promises, on a real folder.
#![allow(clippy::unwrap_used)]

mod change;
mod conformance;
mod documents;
mod folder;
mod relay;
