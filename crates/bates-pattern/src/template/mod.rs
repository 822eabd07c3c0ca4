//! Parses a template such as `{project}-{type}-{seq}` into segments. Owns the language and its limits.

mod field;
mod readback;
mod reader;

use crate::alphabet::Alphabet;
use crate::charset::CharSet;
use crate::check::{Check, CheckText};
use crate::date::{DateField, ShownParts};
use crate::error::{PatternError, Problem};
use crate::period::Reset;
use crate::period_format::PeriodFormat;
use crate::rule::{Rule, UNRULED_CHARACTERS};

use reader::Reader;

const TEMPLATE_BYTES_MAX: usize = 512;
const PARAMETERS_MAX: usize = 16;

#[derive(Clone, Debug)]
pub(crate) struct Template {
    pub(crate) source: Box<str>,
    pub(crate) segments: Vec<Segment>,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) seq: Seq,
    pub(crate) check: Option<Check>,
    check_is_lowercase: bool,
    pub(crate) shown: ShownParts,
    pub(crate) shows_short_year: bool,
    pub(crate) shows_short_period: bool,
}

/// One part of a template. The details of `{seq}` and `{check}`, which occur at most once, are in [`Template`].
#[derive(Clone, Debug)]
pub(crate) enum Segment {
    Literal(Box<str>),
    Parameter(usize),
    Seq,
    Date(DateField),
    Period(PeriodFormat),
    Check,
}

#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub(crate) name: Box<str>,
    pub(crate) rule: Rule,
    column: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Seq {
    pub(crate) alphabet: Alphabet,
    pub(crate) width: Option<usize>,
    pub(crate) column: usize,
}

impl Seq {
    pub(crate) fn numerals(&self) -> Option<u32> {
        self.width.map(|width| u32::try_from(width).expect("a width is at most 64"))
    }

    /// How many values the field has; `None` without a width.
    pub(crate) fn space(&self) -> Option<u128> {
        self.width.map(|width| self.alphabet.space(width))
    }
}

enum Field {
    Seq(Box<Seq>),
    Parameter { name: Box<str>, rule: Option<Rule> },
    Date(Vec<Segment>),
    Period(PeriodFormat),
    Check(Check),
}

impl Template {
    pub(crate) fn parse(source: &str, reset: Reset) -> Result<Self, PatternError> {
        if source.len() > TEMPLATE_BYTES_MAX {
            let problem = Problem::TooLong { bytes: source.len(), limit: TEMPLATE_BYTES_MAX };
            let fitting = source.floor_char_boundary(TEMPLATE_BYTES_MAX);
            return Err(PatternError::at(source[..fitting].chars().count() + 1, problem));
        }
        let mut draft = Draft::default();
        let mut reader = Reader::new(source);
        while let Some(next) = reader.peek() {
            let column = reader.column;
            match next {
                '{' if reader.peek_second() != Some('{') => {
                    draft.add_field(column, field::read(&mut reader)?)?;
                }
                '}' if reader.peek_second() != Some('}') => {
                    return Err(reader.expected("`}}` for a brace, or a `{` before it"));
                }
                brace @ ('{' | '}') => {
                    reader.skip(2);
                    draft.add_literal(brace.encode_utf8(&mut [0; 4]));
                }
                _ => draft.add_literal(reader.next_visible()?.encode_utf8(&mut [0; 4])),
            }
        }
        draft.finish(source, reset)
    }

    pub(crate) fn check_text(&self, covered: &[u8]) -> CheckText {
        let text = self.check.map(|check| check.compute(covered)).unwrap_or_default();
        if self.check_is_lowercase { text.to_lowercase() } else { text }
    }

    pub(crate) fn shows_date(&self) -> bool {
        self.shown.period || self.shown.parts.contains(&true)
    }
}

#[derive(Default)]
struct Draft {
    segments: Vec<Segment>,
    columns: Vec<usize>,
    parameters: Vec<Parameter>,
    ends_with_unruled: bool,
    seq: Option<Seq>,
    check: Option<(Check, usize)>,
    shown: ShownParts,
    shows_short_year: bool,
    shows_short_period: bool,
}

impl Draft {
    /// Joins adjacent literals. Excludes the first character from the values of a preceding parameter without a rule.
    fn add_literal(&mut self, text: &str) {
        if let Some(Segment::Literal(before)) = self.segments.last_mut() {
            *before = format!("{before}{text}").into();
            return;
        }
        if self.ends_with_unruled
            && let Some(parameter) = self.parameters.last_mut()
        {
            parameter.rule = Rule::class(UNRULED_CHARACTERS.without(text.as_bytes()[0]));
        }
        self.push(0, Segment::Literal(text.into()));
    }

    fn push(&mut self, column: usize, segment: Segment) {
        self.segments.push(segment);
        self.columns.push(column);
        self.ends_with_unruled = false;
    }

    fn add_field(&mut self, column: usize, field: Field) -> Result<(), PatternError> {
        let second = |what: &str| PatternError::at(column, Problem::DuplicateField(what.into()));
        match field {
            Field::Seq(_) if self.seq.is_some() => return Err(second("{seq}")),
            Field::Seq(seq) => {
                self.seq = Some(*seq);
                self.push(column, Segment::Seq);
            }
            Field::Check(_) if self.check.is_some() => return Err(second("{check}")),
            Field::Check(_) if self.seq.is_none() => {
                return Err(PatternError::at(column, Problem::CheckBeforeSeq));
            }
            Field::Check(check) => {
                self.check = Some((check, column));
                self.push(column, Segment::Check);
            }
            Field::Parameter { name, .. } if self.parameters.iter().any(|known| known.name == name) => {
                return Err(second(&format!("{{{name}}}")));
            }
            Field::Parameter { .. } if self.parameters.len() == PARAMETERS_MAX => {
                return Err(PatternError::at(column, Problem::TooManyParameters(PARAMETERS_MAX)));
            }
            Field::Parameter { name, rule } => {
                self.push(column, Segment::Parameter(self.parameters.len()));
                self.ends_with_unruled = rule.is_none();
                let rule = rule.unwrap_or(Rule::class(UNRULED_CHARACTERS));
                self.parameters.push(Parameter { name, rule, column });
            }
            Field::Period(format) => {
                self.shown.period = true;
                self.shows_short_period |= format.is_short();
                self.push(column, Segment::Period(format));
            }
            Field::Date(parts) => parts.into_iter().for_each(|part| self.add_date_part(column, part)),
        }
        Ok(())
    }

    fn add_date_part(&mut self, column: usize, part: Segment) {
        match part {
            Segment::Literal(text) => self.add_literal(&text),
            Segment::Date(field) => {
                self.shown.parts[field.part] = true;
                self.shows_short_year |= field.is_short_year();
                self.push(column, Segment::Date(field));
            }
            _ => unreachable!("a date is made of literals and conversions"),
        }
    }

    fn finish(mut self, source: &str, reset: Reset) -> Result<Template, PatternError> {
        let end = source.chars().count() + 1;
        let seq = self.seq.take().ok_or_else(|| PatternError::at(end, Problem::NoSeq))?;
        if let Some((check, column)) = self.check {
            check_covers(check, &seq.alphabet).map_err(|problem| PatternError::at(column, problem))?;
        }
        self.check_period(reset, end)?;
        let template = Template {
            source: source.into(),
            parameters: self.parameters,
            segments: self.segments,
            check_is_lowercase: is_lowercase(&seq.alphabet),
            seq,
            check: self.check.map(|(check, _)| check),
            shown: self.shown,
            shows_short_year: self.shows_short_year,
            shows_short_period: self.shows_short_period,
        };
        readback::check(&template, reset)?;
        Ok(template)
    }

    fn check_period(&self, reset: Reset, end: usize) -> Result<(), PatternError> {
        self.check_period_formats(reset)?;
        if reset.is_determined_by(self.shown) {
            return Ok(());
        }
        let needs = match reset {
            Reset::Never | Reset::Yearly => "the year",
            Reset::Monthly => "the year and month",
            Reset::Daily => "the year, month and day",
            Reset::Fiscal(start) if start.is_first_of_month() => {
                "the year and month, since a fiscal year spans two years"
            }
            Reset::Fiscal(_) => "the year, month and day, since the fiscal year begins within a month",
        };
        let dated = self.segments.iter().position(|segment| matches!(segment, Segment::Date(_)));
        let column = dated.map_or(end, |at| self.columns[at]);
        Err(PatternError::at(column, Problem::PeriodNotShown { reset, needs }))
    }

    fn check_period_formats(&self, reset: Reset) -> Result<(), PatternError> {
        for (segment, column) in self.segments.iter().zip(&self.columns) {
            let Segment::Period(format) = segment else { continue };
            if reset == Reset::Never {
                return Err(PatternError::at(*column, Problem::PeriodWithoutReset));
            }
            if let Some(replacement) = format.replacement(reset) {
                let (field, needs) = (format.field(), format.resets());
                let problem = Problem::PeriodFormat { field, needs, reset, replacement };
                return Err(PatternError::at(*column, problem));
            }
        }
        Ok(())
    }
}

fn check_covers(check: Check, alphabet: &Alphabet) -> Result<(), Problem> {
    let written = alphabet.characters();
    let covered = if check.covers_letters() { CharSet::ALNUM } else { CharSet::DIGITS };
    if !written.is_subset(covered) {
        let covers = if check.covers_letters() { "digits and letters" } else { "digits" };
        return Err(Problem::CheckCannotCover { check, covers, alphabet: alphabet.name.clone() });
    }
    let has_both = |letter: u8| written.contains(letter) && written.contains(letter.to_ascii_uppercase());
    if (b'a'..=b'z').any(has_both) {
        return Err(Problem::CheckIgnoresCase { check, alphabet: alphabet.name.clone() });
    }
    Ok(())
}

fn is_lowercase(alphabet: &Alphabet) -> bool {
    let written = alphabet.characters();
    written.first_common(CharSet::LOWER).is_some() && written.first_common(CharSet::UPPER).is_none()
}
