//! A compiled pattern: a template with its order, reset, reject rules and construction.

use std::sync::Arc;

use crate::check::Check;
use crate::error::{PatternError, Problem};
use crate::period::Reset;
use crate::position::Position;
use crate::reject::Reject;
use crate::shuffle::{Key, Shuffle, Tweak};
use crate::template::{Segment, Template};

/// Which value of `{seq}` each position gets.
#[derive(Clone, Debug, Default)]
pub enum Order {
    /// The value is the position: position 1001 is number 1001.
    #[default]
    Counting,
    /// A keyed permutation of the values: without the key, the next number cannot be guessed.
    Shuffled(Key),
}

/// The version of the mapping from positions to texts. A series is pinned to one.
///
/// Invariant: a version never changes, or it would issue old identifiers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Construction {
    /// Frozen by `tests/golden/v1.tsv`.
    #[default]
    V1,
}

impl Construction {
    /// The version as a number, for stores.
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
        }
    }

    /// The version with this number.
    pub const fn from_number(number: u16) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            _ => None,
        }
    }
}

/// The settings of a pattern besides its template.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The order of positions.
    pub order: Order,
    /// When the numbering restarts.
    pub reset: Reset,
    /// The rules that skip positions.
    pub reject: Reject,
    /// The version of the mapping.
    pub construction: Construction,
}

/// A compiled pattern. Clones share their data, so a clone is cheap.
#[derive(Clone, Debug)]
pub struct Pattern {
    compiled: Arc<Compiled>,
}

#[derive(Debug)]
struct Compiled {
    template: Template,
    reset: Reset,
    reject: Reject,
    construction: Construction,
    shuffle: Option<Shuffle>,
    /// How many values `{seq}` has. A wide field has more values than there are positions.
    space: u128,
}

impl Pattern {
    /// Compiles a template. Refuses it if two scopes could share an identifier, or one could not be read back.
    pub fn compile(template: &str, options: Options) -> Result<Self, PatternError> {
        let Options { order, reset, reject, construction } = options;
        let template = Template::parse(template, reset)?;
        let at_seq = |problem| PatternError::at(template.seq.column, problem);
        let shuffle = match (order, template.seq.numerals()) {
            (Order::Counting, _) => None,
            (Order::Shuffled(_), None) => return Err(at_seq(Problem::ShuffleNeedsWidth)),
            (Order::Shuffled(key), Some(width)) => {
                let shuffle = Shuffle::of_field(&key, template.seq.alphabet.radix, width);
                Some(shuffle.map_err(|_| at_seq(Problem::ShuffleTooLarge))?)
            }
        };
        if let Some(rules) = reject.digit_rules()
            && (!template.seq.alphabet.is_decimal() || template.seq.width.is_none())
        {
            return Err(at_seq(Problem::RejectNeedsDigits { rules: rules.rule_set().name() }));
        }
        let space = template.seq.space().unwrap_or(u128::from(Position::COUNT));
        Ok(Self { compiled: Arc::new(Compiled { template, reset, reject, construction, shuffle, space }) })
    }

    /// The template as it was written.
    pub fn template(&self) -> &str {
        &self.compiled.template.source
    }

    /// The names of the parameters, in the order of the template.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.compiled.template.parameters.iter().map(|parameter| &*parameter.name)
    }

    /// Whether a scope needs a business date: the template shows a date or a period.
    pub fn needs_date(&self) -> bool {
        self.compiled.template.shows_date()
    }

    /// When the numbering restarts.
    pub fn reset(&self) -> Reset {
        self.compiled.reset
    }

    /// Whether the order is [`Order::Shuffled`].
    pub fn is_shuffled(&self) -> bool {
        self.compiled.shuffle.is_some()
    }

    /// Whether `{seq}` counts in decimal digits.
    pub fn counts_in_decimal(&self) -> bool {
        self.compiled.template.seq.alphabet.is_decimal()
    }

    /// Whether a number is its position in decimal and nothing else.
    pub fn numbers_are_positions(&self) -> bool {
        let template = &self.compiled.template;
        self.counts_in_decimal()
            && template.seq.width.is_none()
            && template.segments.len() == 1
            && self.compiled.reject.is_empty()
    }

    /// The length and the check algorithm, if the template is a decimal `{seq}` of fixed width and then `{check}`.
    pub fn plain_digits(&self) -> Option<(usize, Check)> {
        let template = &self.compiled.template;
        let [Segment::Seq, Segment::Check] = &*template.segments else { return None };
        let (width, check) = (template.seq.width?, template.check?);
        self.counts_in_decimal().then_some((width + check.width(), check))
    }

    /// The rules that skip positions.
    pub fn reject(&self) -> &Reject {
        &self.compiled.reject
    }

    /// The version of the mapping.
    pub fn construction(&self) -> Construction {
        self.compiled.construction
    }

    /// The last position of a scope, even if the rules reject it.
    pub fn last(&self) -> Position {
        let space = u64::try_from(self.space()).unwrap_or(u64::MAX);
        Position::new(space - 1).unwrap_or(Position::MAX)
    }

    pub(crate) fn compiled_template(&self) -> &Template {
        &self.compiled.template
    }

    pub(crate) fn space(&self) -> u128 {
        self.compiled.space
    }

    pub(crate) fn shuffle(&self) -> Option<&Shuffle> {
        self.compiled.shuffle.as_ref()
    }

    /// Derives the tweak from parameters and period, so that each scope has its own order.
    pub(crate) fn tweak<V: AsRef<str>>(&self, values: &[V], period: Option<&str>) -> Option<Tweak> {
        let shuffle = self.shuffle()?;
        let mut tweak = Vec::new();
        for value in values.iter().map(AsRef::as_ref).chain(period) {
            // The length before each value makes ("ab", "c") and ("a", "bc") differ.
            tweak.push(u8::try_from(value.len()).expect("a value is at most 64 bytes long"));
            tweak.extend_from_slice(value.as_bytes());
        }
        Some(shuffle.tweak(&tweak))
    }
}
