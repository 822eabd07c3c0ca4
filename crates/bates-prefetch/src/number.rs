//! A number that was taken: a position, which is written out when somebody looks at it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use bates_pattern::{Position, Scope};

use crate::buffer::Held;

/// A number that is yours. Reading it costs nothing until it is written out: `to_string()`, or `{}` in a format.
#[derive(Clone)]
pub struct Number<'p> {
    held: Held,
    scope: &'p OnceLock<Arc<Scope>>,
}

impl<'p> Number<'p> {
    #[inline]
    pub(crate) fn new(held: Held, scope: &'p OnceLock<Arc<Scope>>) -> Self {
        Self { held, scope }
    }

    /// Its position in the scope.
    #[inline]
    pub fn position(&self) -> u64 {
        match &self.held {
            Held::Position(position) => *position,
            Held::Written(written) => written.position(),
        }
    }

    /// Writes it behind what is in a buffer.
    pub fn render(&self, out: &mut Vec<u8>) {
        match &self.held {
            Held::Written(written) => out.extend_from_slice(written.text.as_bytes()),
            Held::Position(position) => {
                let scope = self.scope.get().expect("the scope came with the first positions");
                let position = Position::new(*position).expect("a source gives positions of the pattern");
                scope.render(position, out).expect("a source gives positions of the pattern");
            }
        }
    }
}

impl fmt::Display for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.held {
            Held::Written(written) => f.pad(&written.text),
            Held::Position(_) => {
                let mut text = Vec::with_capacity(32);
                self.render(&mut text);
                f.pad(std::str::from_utf8(&text).expect("a pattern renders UTF-8"))
            }
        }
    }
}

impl fmt::Debug for Number<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Number").field("position", &self.position()).field("text", &self.to_string()).finish()
    }
}

impl From<Number<'_>> for String {
    fn from(number: Number<'_>) -> Self {
        match number.held {
            Held::Written(written) => written.text.into(),
            Held::Position(_) => number.to_string(),
        }
    }
}
