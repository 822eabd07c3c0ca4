//! The secret of a shuffled series.
//!
//! Invariant: a key is never printed, and its memory is wiped when it is dropped.

use std::fmt;
use std::str::FromStr;

use zeroize::Zeroizing;

/// An AES key of 128, 192 or 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Zeroizing<Vec<u8>>);

/// A text or slice that is not a key. Shows its length, never its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not 16, 24 or 32 bytes.
    #[error("the key has {0} bytes: expected 16, 24 or 32 (32, 48 or 64 hexadecimal digits)")]
    Length(usize),
    /// Not a hexadecimal digit at this column, or half a byte at the end.
    #[error("column {0} of the key is not a hexadecimal digit: expected 32, 48 or 64 of them")]
    NotHex(usize),
}

impl Key {
    /// The key with these bytes.
    pub fn new(secret: &[u8]) -> Result<Self, KeyError> {
        if !matches!(secret.len(), 16 | 24 | 32) {
            return Err(KeyError::Length(secret.len()));
        }
        Ok(Self(Zeroizing::new(secret.to_vec())))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Reads hexadecimal digits of either case.
impl FromStr for Key {
    type Err = KeyError;

    fn from_str(hex: &str) -> Result<Self, KeyError> {
        let not_hex = |at: usize| KeyError::NotHex(hex[..at].chars().count() + 1);
        if let Some((at, _)) = hex.char_indices().find(|(_, digit)| !digit.is_ascii_hexdigit()) {
            return Err(not_hex(at));
        }
        if hex.len() % 2 == 1 {
            return Err(not_hex(hex.len()));
        }
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("two hexadecimal digits");
        let secret: Zeroizing<Vec<u8>> = Zeroizing::new((0..hex.len()).step_by(2).map(byte).collect());
        Self::new(&secret)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({} bits)", self.0.len() * 8)
    }
}
