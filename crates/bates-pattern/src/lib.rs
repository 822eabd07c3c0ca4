//! Positions into identifiers and back: `1001` ↔ `PROJ-9012-1001`.
//!
//! A [`Pattern`] compiled from a template renders positions, parses and validates texts, and knows its [`Capacity`].
//! This crate does no I/O, reads no clock and keeps no state.
//!
//! ```
//! use bates_pattern::{Options, Pattern, Position};
//!
//! let pattern = Pattern::compile("{project}-{type}-{seq}", Options::default())?;
//! let scope = pattern.scope([("project", "PROJ"), ("type", "9012")], None)?;
//!
//! let mut text = Vec::new();
//! scope.render(Position::new(1001).unwrap(), &mut text)?;
//! assert_eq!(text, b"PROJ-9012-1001");
//!
//! let parsed = pattern.parse("PROJ-9012-1001")?;
//! assert_eq!(parsed.position().value(), 1001);
//! assert_eq!(parsed.parameter("project"), Some("PROJ"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The mapping from position to text never changes, or old identifiers would be issued again. [`Construction`] names its
//! version, and golden vectors freeze each.
#![warn(missing_docs)]

mod accepted;
mod alphabet;
mod capacity;
mod charset;
mod check;
mod date;
mod error;
mod parse;
mod pattern;
mod period;
mod position;
mod reject;
mod rule;
mod scope;
mod shuffle;
mod template;
mod verdict;

pub use accepted::Accepted;
pub use capacity::{Capacity, ScopeNeeded};
pub use check::Check;
pub use error::{PatternError, Problem, RenderError, ScopeError};
pub use jiff::civil::Date;
pub use parse::Parsed;
pub use pattern::{Construction, Options, Order, Pattern};
pub use period::{Period, Reset, ResetError, YearStart};
pub use position::Position;
pub use reject::{DigitRule, DigitRules, Limits, LimitsError, Reading, Reject, RestrictedError};
pub use scope::Scope;
pub use shuffle::{BATCH, Key, KeyError, SIZE_MAX, Shuffle, SizeError, Tweak};
pub use verdict::{ParseError, Reason, Verdict};
