//! The front ends of Bates. Owns what a client's bytes mean and how an answer is written.
//!
//! Must never contain a numbering rule, and never see a store: that is for the core and its adapters.

pub mod resp;
