//! Check characters. An algorithm covers the digits, or digits and letters, before `{check}`, and skips all other
//! characters, such as separators. All algorithms are part of construction 1.

mod algorithms;

use crate::charset::CharSet;

/// Zero to two check characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckText {
    bytes: [u8; 2],
    len: u8,
}

impl CheckText {
    fn one(byte: u8) -> Self {
        Self { bytes: [byte, 0], len: 1 }
    }

    fn two(bytes: [u8; 2]) -> Self {
        Self { bytes, len: 2 }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    pub(crate) fn to_lowercase(mut self) -> Self {
        self.bytes.make_ascii_lowercase();
        self
    }
}

/// A check-digit algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Check {
    /// Verhoeff's dihedral scheme: detects every wrong digit and every swap of adjacent digits.
    Verhoeff,
    /// Luhn's mod 10: detects every wrong digit, and every swap of adjacent digits except 09 and 90.
    Luhn,
    /// Damm's quasigroup: detects the same errors as Verhoeff.
    Damm,
    /// ISO 7064 mod 97-10: two digits over digits and letters, as in an IBAN. Detects every wrong or swapped digit.
    Mod97,
    /// ISO 7064 mod 11-2: a digit or `X` over digits, as in an ORCID or an ISNI.
    Mod11_2,
    /// ISO 7064 mod 37,36: a digit or letter over both. Detects every wrong character and nearly every swap.
    Mod37_36,
}

impl Check {
    /// Every algorithm, in the order in which messages list them.
    pub const ALL: [Self; 6] =
        [Self::Verhoeff, Self::Luhn, Self::Damm, Self::Mod97, Self::Mod11_2, Self::Mod37_36];

    /// The name in a template: `{check:verhoeff}`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Verhoeff => "verhoeff",
            Self::Luhn => "luhn",
            Self::Damm => "damm",
            Self::Mod97 => "mod97",
            Self::Mod11_2 => "mod11-2",
            Self::Mod37_36 => "mod37-36",
        }
    }

    /// The algorithm with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|check| check.name() == name)
    }

    /// The number of check characters.
    pub const fn width(self) -> usize {
        if matches!(self, Self::Mod97) { 2 } else { 1 }
    }

    pub(crate) const fn covers_letters(self) -> bool {
        matches!(self, Self::Mod97 | Self::Mod37_36)
    }

    pub(crate) fn characters(self) -> CharSet {
        match self {
            Self::Mod11_2 => CharSet::DIGITS.with(b'X').with(b'x'),
            Self::Mod37_36 => CharSet::ALNUM,
            _ => CharSet::DIGITS,
        }
    }

    pub(crate) fn compute(self, text: &[u8]) -> CheckText {
        match self {
            Self::Verhoeff => CheckText::one(b'0' + algorithms::verhoeff(digits(text))),
            Self::Luhn => CheckText::one(b'0' + algorithms::luhn(digits(text))),
            Self::Damm => CheckText::one(b'0' + algorithms::damm(digits(text))),
            Self::Mod97 => CheckText::two(algorithms::mod_97_10(values(text))),
            Self::Mod11_2 => CheckText::one(algorithms::mod_11_2(digits(text))),
            Self::Mod37_36 => CheckText::one(algorithms::mod_37_36(values(text))),
        }
    }
}

fn digits(text: &[u8]) -> impl DoubleEndedIterator<Item = u8> + Clone + '_ {
    text.iter().map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
}

/// Digits as 0 to 9, letters of either case as 10 to 35.
fn values(text: &[u8]) -> impl Iterator<Item = u8> + '_ {
    text.iter().filter_map(|byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'Z' => Some(byte - b'A' + 10),
        b'a'..=b'z' => Some(byte - b'a' + 10),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
