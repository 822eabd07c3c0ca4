//! What the embedded store promises, on a real folder.
#![allow(clippy::unwrap_used)]

mod conformance;
mod documents;
mod folder;
mod relay;
