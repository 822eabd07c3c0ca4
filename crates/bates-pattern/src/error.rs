//! Errors of templates, scopes and positions. A template error names the column.

use crate::check::Check;
use crate::period::{Period, Reset};
use crate::position::Position;

/// Why a pattern does not compile, and where in the template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct PatternError {
    /// The column, counted in characters from 1; one past the end if something is missing.
    pub column: usize,
    /// The problem there.
    pub problem: Problem,
}

impl PatternError {
    pub(crate) fn at(column: usize, problem: Problem) -> Self {
        Self { column, problem }
    }
}

/// A problem of a template, or of the options it is compiled with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum Problem {
    /// A syntax error.
    #[error("expected {expected}, found {found}")]
    Expected { expected: Box<str>, found: Box<str> },
    /// The template is too long.
    #[error("the template has {bytes} bytes; the limit is {limit}")]
    TooLong { bytes: usize, limit: usize },
    /// The template has too many parameters.
    #[error("too many parameters: the limit is {0}")]
    TooManyParameters(usize),
    /// A `width` or a `length` outside its bounds.
    #[error("invalid {what} {found}: expected {min} to {max}")]
    OutOfRange { what: &'static str, min: usize, max: usize, found: Box<str> },
    /// A character that an identifier must not contain.
    #[error("character U+{0:04X} is invisible or changes the direction of text: remove it")]
    InvisibleCharacter(u32),
    /// An alphabet that lists a character twice.
    #[error("the alphabet lists {0:?} twice, so two positions would read the same: list it once")]
    DuplicateCharacter(char),
    /// A field that a template may have only once.
    #[error("duplicate {0}: a template has at most one")]
    DuplicateField(Box<str>),
    /// The template has no `{seq}`.
    #[error("the template has no {{seq}}, so all positions would read the same: add one")]
    NoSeq,
    /// `{check}` stands before `{seq}`.
    #[error("{{check}} covers only the text before it: move it after {{seq}}")]
    CheckBeforeSeq,
    /// The check algorithm covers only some characters of the alphabet of `{seq}`.
    #[error(
        "{{check:{}}} covers {covers} only, but {{seq}} counts in {alphabet}: choose another check or alphabet",
        check.name()
    )]
    CheckCannotCover { check: Check, covers: &'static str, alphabet: Box<str> },
    /// The check algorithm does not tell upper and lower case apart.
    #[error(
        "{{check:{}}} ignores the case of letters, but {{seq}} counts in {alphabet}, which has both cases: choose \
         another alphabet",
        check.name()
    )]
    CheckIgnoresCase { check: Check, alphabet: Box<str> },
    /// Two parameters with nothing between them.
    #[error(
        "parameters {{{first}}} and {{{second}}} are adjacent and both may hold {shared:?}, so the end of the \
         first cannot be found: put a separator between them, or give them rules that share no character"
    )]
    AdjacentParameters { first: Box<str>, second: Box<str>, shared: char },
    /// A parameter whose values may contain the separator after it.
    #[error(
        "the rule of {{{parameter}}} admits {separator:?}, the separator that follows it, so different scopes \
         could read the same: exclude it from the rule"
    )]
    AdmitsSeparator { parameter: Box<str>, separator: char },
    /// A field of varying length whose end cannot be found.
    #[error(
        "{first} has no fixed length and may hold {shared:?}, with which {second} may begin, so its end \
         cannot be found: give one of them a fixed length, or put a separator between them"
    )]
    AmbiguousBoundary { first: Box<str>, second: Box<str>, shared: char },
    /// The template does not show the period, so periods would share identifiers. It needs these parts of the date.
    #[error(
        "the template does not show the period of reset {reset}, so numbers of different periods could read the \
         same: add {{period}}, or {needs}"
    )]
    PeriodNotShown { reset: Reset, needs: &'static str },
    /// `{period}` in a pattern without a reset.
    #[error("{{period}} needs a reset: set yearly, monthly, daily or fiscal-MM-DD")]
    PeriodWithoutReset,
    /// A format of `{period}`, such as `{period:yy-yy}`, that needs another reset.
    #[error("{field} needs reset {needs}, not {reset}: write {replacement}")]
    PeriodFormat { field: &'static str, needs: &'static str, reset: Reset, replacement: &'static str },
    /// A shuffled order for a `{seq}` without a width.
    #[error("a shuffled order needs a {{seq}} of fixed width, such as {{seq:6}}")]
    ShuffleNeedsWidth,
    /// A space too large to shuffle.
    #[error("{{seq}} has more than 10^31 values, the limit of a shuffled order: make it shorter")]
    ShuffleTooLarge,
    /// Rules about digits for a `{seq}` that is not decimal or has no width.
    #[error("rule set {rules} needs a decimal {{seq}} of fixed width, such as {{seq:11}}")]
    RejectNeedsDigits { rules: &'static str },
}

/// Why a pattern has no scope for these parameters and this date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum ScopeError {
    /// A parameter of the pattern has no value.
    #[error("missing parameter {{{name}}}: expected {rule}")]
    MissingParameter { name: Box<str>, rule: Box<str> },
    /// A value for a parameter that the pattern does not have.
    #[error("unknown parameter {{{name}}}: the pattern has {known}")]
    UnknownParameter { name: Box<str>, known: Box<str> },
    /// Two values for one parameter.
    #[error("parameter {{{0}}} has two values: give one")]
    DuplicateParameter(Box<str>),
    /// A value that the rule of the parameter does not admit; a long value is cut.
    #[error("invalid value {value:?} for {{{name}}}: expected {rule}")]
    InvalidValue { name: Box<str>, value: Box<str>, rule: Box<str> },
    /// The pattern shows a date or has a reset, and no date was given.
    #[error("the pattern needs a business date, and none was given")]
    NoDate,
    /// A year that the pattern cannot show.
    #[error("year {year} is outside {first} to {last}, the years that the pattern can show")]
    Year { year: i16, first: i16, last: i16 },
    /// A fiscal year that two digits cannot show.
    #[error("fiscal year {year} is outside {first} to {last}, the years that two digits can show")]
    FiscalYear { year: Period, first: Period, last: Period },
}

/// Why a position has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of a variant shows its fields")]
pub enum RenderError {
    /// The position is beyond the space.
    #[error("position {position} is beyond the last position, {last}")]
    Exhausted { position: Position, last: Position },
    /// The rules of the pattern reject the position. It is not a gap.
    #[error("position {position} is rejected by the pattern's rules")]
    Rejected { position: Position },
}
