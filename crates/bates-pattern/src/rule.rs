//! The rule of a parameter: which values it admits.

use std::fmt;

use crate::charset::CharSet;

pub(crate) const VALUE_BYTES_MAX: usize = 64;

/// The characters of a parameter without a rule, except the one that follows the parameter in the template.
pub(crate) const UNRULED_CHARACTERS: CharSet = CharSet::ALNUM.with(b'-').with(b'_');

/// The named classes, in the order in which messages list them.
pub(crate) const CLASSES: [(&str, CharSet); 6] = [
    ("digits", CharSet::DIGITS),
    ("upper", CharSet::UPPER),
    ("lower", CharSet::LOWER),
    ("letters", CharSet::LETTERS),
    ("alnum", CharSet::ALNUM),
    ("hex", CharSet::DIGITS.union(CharSet::range(b'a', b'f'))),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Class { set: CharSet, min: usize, max: usize },
    Choice(Box<[Box<str>]>),
}

impl Rule {
    pub(crate) fn class(set: CharSet) -> Self {
        Self::Class { set, min: 1, max: VALUE_BYTES_MAX }
    }

    pub(crate) fn admits(&self, value: &str) -> bool {
        match self {
            Self::Class { set, min, max } => {
                (*min..=*max).contains(&value.len()) && value.bytes().all(|byte| set.contains(byte))
            }
            Self::Choice(choices) => choices.iter().any(|choice| **choice == *value),
        }
    }

    pub(crate) fn set(&self) -> CharSet {
        match self {
            Self::Class { set, .. } => *set,
            Self::Choice(choices) => CharSet::of(choices.concat().as_bytes()),
        }
    }

    pub(crate) fn length_bounds(&self) -> (usize, usize) {
        match self {
            Self::Class { min, max, .. } => (*min, *max),
            Self::Choice(choices) => {
                let lengths = || choices.iter().map(|choice| choice.len());
                (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0))
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class { set, min: 1, max: 1 } => write!(f, "1 character of {set}"),
            Self::Class { set, min, max } if min == max => write!(f, "{min} characters of {set}"),
            Self::Class { set, min, max } => write!(f, "{min} to {max} characters of {set}"),
            Self::Choice(choices) => write!(f, "one of {}", choices.join(", ")),
        }
    }
}
