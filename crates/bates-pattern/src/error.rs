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
pub enum Problem {
    /// A syntax error.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What the syntax allows here.
        expected: Box<str>,
        /// What the template has here.
        found: Box<str>,
    },
    /// The template is too long.
    #[error("the template has {bytes} bytes; the limit is {limit}")]
    TooLong {
        /// The length of the template.
        bytes: usize,
        /// The maximum length.
        limit: usize,
    },
    /// The template has too many parameters.
    #[error("too many parameters: the limit is {0}")]
    TooManyParameters(usize),
    /// A width or a length outside its bounds.
    #[error("invalid {what} {found}: expected {min} to {max}")]
    OutOfRange {
        /// `width` or `length`.
        what: &'static str,
        /// The minimum.
        min: usize,
        /// The maximum.
        max: usize,
        /// The width or length as written.
        found: Box<str>,
    },
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
    /// The check algorithm does not cover all characters of `{seq}`.
    #[error(
        "{{check:{}}} covers {covers} only, but {{seq}} counts in {alphabet}: choose another check or alphabet",
        check.name()
    )]
    CheckCannotCover {
        /// The algorithm.
        check: Check,
        /// The characters that it covers.
        covers: &'static str,
        /// The alphabet of `{seq}`.
        alphabet: Box<str>,
    },
    /// The check algorithm does not tell upper and lower case apart.
    #[error(
        "{{check:{}}} ignores the case of letters, but {{seq}} counts in {alphabet}, which has both cases: choose \
         another alphabet",
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
        "parameters {{{first}}} and {{{second}}} are adjacent and both may hold {shared:?}, so the end of the \
         first cannot be found: put a separator between them, or give them rules that share no character"
    )]
    AdjacentParameters {
        /// The first parameter.
        first: Box<str>,
        /// The parameter that follows it.
        second: Box<str>,
        /// A character that both admit.
        shared: char,
    },
    /// A parameter whose values may contain the separator after it.
    #[error(
        "the rule of {{{parameter}}} admits {separator:?}, the separator that follows it, so different scopes \
         could read the same: exclude it from the rule"
    )]
    AdmitsSeparator {
        /// The parameter.
        parameter: Box<str>,
        /// The character that follows it.
        separator: char,
    },
    /// A field of varying length whose end cannot be found.
    #[error(
        "{first} has no fixed length and may hold {shared:?}, with which {second} may begin, so its end \
         cannot be found: give one of them a fixed length, or put a separator between them"
    )]
    AmbiguousBoundary {
        /// The field of varying length.
        first: Box<str>,
        /// The field or literal after it.
        second: Box<str>,
        /// A character that both admit.
        shared: char,
    },
    /// The template does not show the period, so periods would share identifiers.
    #[error(
        "the template does not show the period of reset {reset}, so numbers of different periods could read the \
         same: add {{period}}, or {needs}"
    )]
    PeriodNotShown {
        /// The reset.
        reset: Reset,
        /// The parts of the date that determine the period.
        needs: &'static str,
    },
    /// `{period}` in a pattern without a reset.
    #[error("{{period}} needs a reset: set yearly, monthly, daily or fiscal-MM-DD")]
    PeriodWithoutReset,
    /// A format of `{period}` that does not show the periods of the reset.
    #[error("{field} needs reset {needs}, not {reset}: write {replacement}")]
    PeriodFormat {
        /// The field as written, such as `{period:yy-yy}`.
        field: &'static str,
        /// The resets whose periods it shows.
        needs: &'static str,
        /// The reset of the pattern.
        reset: Reset,
        /// The fields to write instead.
        replacement: &'static str,
    },
    /// A shuffled order for a `{seq}` without a width.
    #[error("a shuffled order needs a {{seq}} of fixed width, such as {{seq:6}}")]
    ShuffleNeedsWidth,
    /// A space too large to shuffle.
    #[error("{{seq}} has more than 10^31 values, the limit of a shuffled order: make it shorter")]
    ShuffleTooLarge,
    /// Rules about digits for a `{seq}` that is not decimal or has no width.
    #[error("rule set {rules} needs a decimal {{seq}} of fixed width, such as {{seq:11}}")]
    RejectNeedsDigits {
        /// The rule set.
        rules: &'static str,
    },
}

/// Why a pattern has no scope for these parameters and this date.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScopeError {
    /// A parameter of the pattern has no value.
    #[error("missing parameter {{{name}}}: expected {rule}")]
    MissingParameter {
        /// The parameter.
        name: Box<str>,
        /// The rule of the parameter.
        rule: Box<str>,
    },
    /// A value for a parameter that the pattern does not have.
    #[error("unknown parameter {{{name}}}: the pattern has {known}")]
    UnknownParameter {
        /// The given name.
        name: Box<str>,
        /// The parameters of the pattern.
        known: Box<str>,
    },
    /// Two values for one parameter.
    #[error("parameter {{{0}}} has two values: give one")]
    DuplicateParameter(Box<str>),
    /// A value that the rule of the parameter does not admit.
    #[error("invalid value {value:?} for {{{name}}}: expected {rule}")]
    InvalidValue {
        /// The parameter.
        name: Box<str>,
        /// The value, shortened if it is long.
        value: Box<str>,
        /// The rule of the parameter.
        rule: Box<str>,
    },
    /// The pattern shows a date or has a reset, and no date was given.
    #[error("the pattern needs a business date, and none was given")]
    NoDate,
    /// A year that the pattern cannot show.
    #[error("year {year} is outside {first} to {last}, the years that the pattern can show")]
    Year {
        /// The year of the given date.
        year: i16,
        /// The first year shown.
        first: i16,
        /// The last year shown.
        last: i16,
    },
    /// A fiscal year that two digits cannot show.
    #[error("fiscal year {year} is outside {first} to {last}, the years that two digits can show")]
    FiscalYear {
        /// The fiscal year of the given date.
        year: Period,
        /// The first fiscal year shown.
        first: Period,
        /// The last fiscal year shown.
        last: Period,
    },
}

/// Why a position has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The position is beyond the space.
    #[error("position {position} is beyond the last position, {last}")]
    Exhausted {
        /// The requested position.
        position: Position,
        /// The last position of the space.
        last: Position,
    },
    /// The rules of the pattern reject the position. It is not a gap.
    #[error("position {position} is rejected by the pattern's rules")]
    Rejected {
        /// The requested position.
        position: Position,
    },
}
