//! Positions into identifiers and back.
