//! Errors of templates, scopes and positions.

use crate::check::Check;
use crate::period::Reset;
use crate::position::Position;

/// A pattern that was refused: where in the template, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct PatternError {
    /// The column in characters from 1; one past the end for what is missing.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

impl PatternError {
    pub(crate) fn at(column: usize, problem: Problem) -> Self {
        Self { column, problem }
    }
}

/// What is wrong with a template, or with what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The grammar wants something else here.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What could stand here.
        expected: Box<str>,
        /// What stands here.
        found: Box<str>,
    },
    /// The template is longer than any identifier should be.
    #[error("the template has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// The longest allowed.
        limit: usize,
    },
    /// More parameters than a scope may have.
    #[error("more than {0} parameters")]
    TooManyParameters(usize),
    /// A width or a length outside its bounds.
    #[error("a {what} is {min} to {max}, not {found}")]
    OutOfRange {
        /// `width` or `length`.
        what: &'static str,
        /// The smallest allowed.
        min: usize,
        /// The largest allowed.
        max: usize,
        /// What was written.
        found: Box<str>,
    },
    /// A character that no identifier may hold.
    #[error("character U+{0:04X} may not be part of an identifier: it is invisible or turns the text around")]
    Invisible(u32),
    /// An alphabet that lists a character twice.
    #[error("the alphabet lists {0:?} twice, so two positions would read the same")]
    Twice(char),
    /// Something that may stand only once.
    #[error("a second {0}: there is room for one")]
    Second(Box<str>),
    /// Nothing counts.
    #[error("there is no {{seq}}: every position would read the same")]
    NoSeq,
    /// A check character before the number.
    #[error("{{check}} covers what comes before it, so it must come after {{seq}}")]
    CheckBeforeSeq,
    /// A check algorithm that has no values for the digits of `{seq}`.
    #[error("{{check:{}}} covers {covers} only, and {{seq}} counts in {alphabet}", check.name())]
    CheckCannotCover {
        /// The algorithm.
        check: Check,
        /// What it has values for.
        covers: &'static str,
        /// The alphabet of `{seq}`.
        alphabet: Box<str>,
    },
    /// A check algorithm that cannot tell the two cases of a letter apart.
    #[error(
        "{{check:{}}} takes a letter of either case for the same, and {{seq}} counts in {alphabet}, which has both",
        check.name()
    )]
    CheckIgnoresCase {
        /// The algorithm.
        check: Check,
        /// The alphabet of `{seq}`.
        alphabet: Box<str>,
    },
    /// Two parameters with nothing between them.
    #[error(
        "parameters {{{first}}} and {{{second}}} are adjacent and both may hold {shared:?}, so where one ends and \
         the other begins cannot be read back: put a separator between them, or give them rules that keep them apart"
    )]
    AdjacentParameters {
        /// The first one.
        first: Box<str>,
        /// The one that follows it.
        second: Box<str>,
        /// A character that both admit.
        shared: char,
    },
    /// A parameter that could swallow the separator after it.
    #[error(
        "the rule of {{{parameter}}} admits {separator:?}, the separator that follows it, so different scopes \
         could read the same"
    )]
    AdmitsSeparator {
        /// The parameter.
        parameter: Box<str>,
        /// The character that follows it.
        separator: char,
    },
    /// Two parts of varying length that cannot be told apart.
    #[error(
        "{first} has no fixed length and may hold {shared:?}, with which {second} may begin, so the two cannot be \
         read back: give one a width, or put a separator between them"
    )]
    RunsTogether {
        /// The part of varying length.
        first: Box<str>,
        /// What follows it.
        second: Box<str>,
        /// A character that both admit.
        shared: char,
    },
    /// A reset whose periods would read the same.
    #[error(
        "with reset {reset}, numbers of different periods could read the same: what the pattern shows does not \
         determine the period; show {{period}} or {needs}"
    )]
    PeriodNotShown {
        /// The reset.
        reset: Reset,
        /// What would do.
        needs: &'static str,
    },
    /// `{period}` in a series that never starts again.
    #[error("{{period}} needs a reset (yearly, monthly, daily or fiscal-MM-DD)")]
    PeriodWithoutReset,
    /// A shuffled order over an endless count.
    #[error("a shuffled order needs a {{seq}} of fixed width, such as {{seq:6}}")]
    ShuffleNeedsWidth,
    /// A space too small or too large to shuffle.
    #[error("a shuffled order needs a space of 2 to 10^31 values, and {{seq}} has more")]
    ShuffleTooLarge,
    /// Rules about digits for a number that is none.
    #[error(
        "the rule set {rules} is about digits, and needs a decimal {{seq}} of fixed width, such as {{seq:11}}"
    )]
    RejectNeedsDigits {
        /// The rule set.
        rules: &'static str,
    },
}

/// A scope that a pattern refuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// A parameter of the pattern has no value.
    #[error("parameter {{{name}}} has no value; its rule is {rule}")]
    Missing {
        /// The parameter.
        name: Box<str>,
        /// What it may hold.
        rule: Box<str>,
    },
    /// A value for a parameter that the pattern does not have.
    #[error("the pattern has no parameter {{{name}}}; it has {known}")]
    Unknown {
        /// The name given.
        name: Box<str>,
        /// The names there are.
        known: Box<str>,
    },
    /// Two values for one parameter.
    #[error("parameter {{{0}}} has two values")]
    Twice(Box<str>),
    /// A value against the parameter's rule.
    #[error("{value:?} is no value for {{{name}}}: its rule is {rule}")]
    Refused {
        /// The parameter.
        name: Box<str>,
        /// The value, shortened if it is long.
        value: Box<str>,
        /// What it may hold.
        rule: Box<str>,
    },
    /// The pattern shows a date, or starts again by date, and none was given.
    #[error("the pattern needs a date")]
    NoDate,
    /// A year that the pattern cannot show.
    #[error("the year {year} is outside {first} to {last}, the years that the pattern tells apart")]
    Year {
        /// The year of the date given.
        year: i16,
        /// The first year shown.
        first: i16,
        /// The last year shown.
        last: i16,
    },
}

/// A position without a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The space ends before it.
    #[error("position {position} is beyond the last one, {last}")]
    Exhausted {
        /// The position asked for.
        position: Position,
        /// The last position of the space.
        last: Position,
    },
    /// The pattern's rules skip it. It is no gap.
    #[error("position {position} is rejected by the pattern's rules")]
    Rejected {
        /// The position asked for.
        position: Position,
    },
}
