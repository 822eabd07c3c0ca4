//! Turns positions into identifiers and back: `1001` ↔ `PROJ-9012-1001`.
//!
//! A [`Pattern`] is compiled from a template. It renders positions, parses and validates texts, and computes its
//! [`Capacity`].
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
//! Invariant: the mapping from position to text never changes, or old identifiers would be issued again.
//! [`Construction`] is its version, and golden vectors freeze each version.
#![warn(missing_docs)]

mod accepted;
mod alphabet;
mod capacity;
mod charset;
mod check;
mod date;
mod error;
mod nearest;
mod number;
mod parse;
mod pattern;
mod period;
mod period_format;
mod position;
mod reject;
mod rule;
mod scope;
mod shuffle;
mod template;
mod verdict;

pub use accepted::AcceptedPositions;
pub use capacity::{Capacity, CapacityError};
pub use check::Check;
pub use error::{PatternError, Problem, RenderError, ScopeError};
pub use jiff::civil::Date;
pub use nearest::nearest;
pub use number::Number;
pub use parse::ParsedIdentifier;
pub use pattern::{Construction, Options, Order, Pattern};
pub use period::{Period, Reset, ResetError, YearStart};
pub use position::Position;
pub use reject::{DigitRule, DigitRules, Limits, LimitsError, Reject, RestrictedError, RuleSet};
pub use scope::Scope;
pub use shuffle::{Key, KeyError, SHUFFLE_BATCH_LEN, SHUFFLE_SIZE_MAX, Shuffle, ShuffleSizeError, Tweak};
pub use verdict::{ParseError, Reason, Verdict};
