//! A scope that is ready to render: its parameters are checked, and the text around the number is prepared.

use crate::Date;
use crate::accepted::AcceptedPositions;
use crate::date::{DateParts, SHORT_YEARS, YEARS};
use crate::error::{RenderError, ScopeError};
use crate::pattern::Pattern;
use crate::period::Period;
use crate::position::Position;
use crate::shuffle::Tweak;
use crate::template::Segment;

/// The longest number part: a `{seq}` of 64 characters and two check characters.
pub(crate) const NUMBER_PART_BYTES_MAX: usize = crate::alphabet::WIDTH_MAX + 2;

pub(crate) type NumberPart = [u8; NUMBER_PART_BYTES_MAX];

/// Error messages cut longer values.
const VALUE_CHARS_MAX: usize = 80;

/// The values of the parameters, in the order of the template.
type Values = Box<[Box<str>]>;

/// The parameters of a pattern and its period, ready to render positions.
#[derive(Clone, Debug)]
pub struct Scope {
    pattern: Pattern,
    values: Values,
    period: Option<Period>,
    /// The text before `{seq}`, between `{seq}` and `{check}`, and after both.
    head: Box<str>,
    between: Box<str>,
    tail: Box<str>,
    pub(crate) tweak: Option<Tweak>,
}

impl Pattern {
    /// The scope with these parameter values, and with this business date if the pattern needs one.
    pub fn scope<N: AsRef<str>, V: AsRef<str>>(
        &self,
        parameters: impl IntoIterator<Item = (N, V)>,
        date: Option<Date>,
    ) -> Result<Scope, ScopeError> {
        let values = self.check_values(parameters)?;
        let date = match date {
            _ if !self.needs_date() => None,
            None => return Err(ScopeError::NoDate),
            Some(date) => Some(self.check_date(date)?),
        };
        let period = date.and_then(|date| self.reset().period(date));
        Ok(Scope::new(self.clone(), values, date.map(DateParts::of).unwrap_or_default(), period))
    }

    /// The scope of the period with this name. `None` if there is no such period, or if its numbers show the day.
    pub fn scope_in_period<N: AsRef<str>, V: AsRef<str>>(
        &self,
        parameters: impl IntoIterator<Item = (N, V)>,
        period: Option<&str>,
    ) -> Option<Scope> {
        if !self.needs_date() {
            return self.scope(parameters, None).ok();
        }
        if !self.reset().is_constant_in_period(self.compiled_template().shown) {
            return None;
        }
        let first_day = self.reset().period_named(period?)?.days().next()?;
        self.scope(parameters, Some(first_day)).ok()
    }

    fn check_values<N: AsRef<str>, V: AsRef<str>>(
        &self,
        parameters: impl IntoIterator<Item = (N, V)>,
    ) -> Result<Values, ScopeError> {
        let known = &self.compiled_template().parameters;
        let mut values: Vec<Option<Box<str>>> = vec![None; known.len()];
        for (name, value) in parameters {
            let (name, value) = (name.as_ref(), value.as_ref());
            let index = known.iter().position(|parameter| *parameter.name == *name);
            let index = index.ok_or_else(|| self.unknown_parameter(name))?;
            let rule = &known[index].rule;
            if !rule.admits(value) {
                let (value, rule) = (shortened(value), rule.to_string().into());
                return Err(ScopeError::InvalidValue { name: name.into(), value, rule });
            }
            if values[index].replace(value.into()).is_some() {
                return Err(ScopeError::DuplicateParameter(name.into()));
            }
        }
        let missing = |index: usize| ScopeError::MissingParameter {
            name: known[index].name.clone(),
            rule: known[index].rule.to_string().into(),
        };
        values.into_iter().enumerate().map(|(index, value)| value.ok_or_else(|| missing(index))).collect()
    }

    fn unknown_parameter(&self, name: &str) -> ScopeError {
        let known = self.parameters().map(|name| format!("{{{name}}}")).collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none".to_owned() } else { known };
        ScopeError::UnknownParameter { name: shortened(name), known: known.into() }
    }

    fn check_date(&self, date: Date) -> Result<Date, ScopeError> {
        let years = if self.compiled_template().shows_short_year { SHORT_YEARS } else { YEARS };
        let (year, (first, last)) = (date.year(), years.into_inner());
        if !(first..=last).contains(&year) {
            return Err(ScopeError::Year { year, first, last });
        }
        self.check_short_period(date)?;
        Ok(date)
    }

    /// Two digits cannot tell 1999-00 and 2099-00 apart, and the first days of 2000 may be in 1999-00.
    fn check_short_period(&self, date: Date) -> Result<(), ScopeError> {
        if self.compiled_template().shows_short_period
            && let Some(period) = self.reset().period(date)
            && !SHORT_YEARS.contains(&period.first_year())
            && let Some(first) = self.reset().period_starting_in(*SHORT_YEARS.start())
            && let Some(last) = self.reset().period_starting_in(*SHORT_YEARS.end())
        {
            return Err(ScopeError::FiscalYear { year: period, first, last });
        }
        Ok(())
    }
}

impl Scope {
    /// The caller has checked the values, and `date` has all parts that the template shows.
    pub(crate) fn new(pattern: Pattern, values: Values, date: DateParts, period: Option<Period>) -> Self {
        let period_name = period.map(|period| period.to_string());
        let tweak = pattern.tweak(&values, period_name.as_deref());
        let mut texts = [const { String::new() }; 3];
        let mut at = 0;
        for segment in &pattern.compiled_template().segments {
            match segment {
                Segment::Literal(text) => texts[at].push_str(text),
                Segment::Parameter(index) => texts[at].push_str(&values[*index]),
                Segment::Date(field) => date.write(*field, &mut texts[at]),
                Segment::Period(format) => {
                    if let Some(period) = period {
                        format.write(period, &mut texts[at]);
                    }
                }
                Segment::Seq => at = 1,
                Segment::Check => at = 2,
            }
        }
        let [head, mut between, mut tail] = texts.map(String::into_boxed_str);
        if pattern.compiled_template().check.is_none() {
            std::mem::swap(&mut between, &mut tail);
        }
        Self { pattern, values, period, head, between, tail, tweak }
    }

    /// The pattern of the scope.
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The parameters, in the order of the template.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pattern.parameters().zip(self.values.iter().map(|value| &**value))
    }

    /// Whether another scope of the same pattern renders every position to the same text.
    pub fn renders_like(&self, other: &Self) -> bool {
        (&self.head, &self.between, &self.tail, self.tweak)
            == (&other.head, &other.between, &other.tail, other.tweak)
    }

    /// The period, if the pattern has a reset.
    pub fn period(&self) -> Option<Period> {
        self.period
    }

    /// No number of this scope is longer.
    pub fn number_bytes_max(&self) -> usize {
        let template = self.pattern.compiled_template();
        let seq = template.seq.width.unwrap_or(crate::alphabet::WIDTH_MAX);
        let check = template.check.map_or(0, crate::check::Check::width);
        self.head.len() + self.between.len() + self.tail.len() + seq + check
    }

    /// Whether numbers of this scope differ in nothing but `{seq}`, which is equally long in all, and no rule rejects any.
    pub fn are_numbers_alike(&self) -> bool {
        let template = self.pattern.compiled_template();
        template.seq.width.is_some() && template.check.is_none() && self.pattern.reject().is_empty()
    }

    /// The bytes of `{seq}` in a number of this scope that is `length` bytes long.
    pub fn seq_range(&self, length: usize) -> std::ops::Range<usize> {
        let check = self.pattern.compiled_template().check.map_or(0, crate::check::Check::width);
        self.head.len()..length - self.between.len() - check - self.tail.len()
    }

    /// Appends the number at `position` as UTF-8. An error leaves `out` unchanged. Allocates only if `out` must grow.
    pub fn render(&self, position: Position, out: &mut Vec<u8>) -> Result<(), RenderError> {
        let last = self.pattern.last();
        if position > last {
            return Err(RenderError::Exhausted { position, last });
        }
        let accepted = self.write_accepted(self.value(position), out);
        if accepted { Ok(()) } else { Err(RenderError::Rejected { position }) }
    }

    /// The number at `position` as a `String`.
    pub fn number(&self, position: Position) -> Result<String, RenderError> {
        let mut out = Vec::new();
        self.render(position, &mut out)?;
        Ok(String::from_utf8(out).expect("literals, values and digits are UTF-8"))
    }

    /// The positions from `first` to `last`, both included, that the rules of the pattern accept.
    pub fn accepted(&self, first: Position, last: Position) -> AcceptedPositions<'_> {
        AcceptedPositions::new(self, first, last)
    }

    fn value(&self, position: Position) -> u128 {
        let index = u128::from(position.value());
        match (self.pattern.shuffle(), self.tweak) {
            (Some(shuffle), Some(tweak)) => shuffle.permute(tweak, index),
            _ => index,
        }
    }

    /// Appends the identifier in which `{seq}` shows `value`, unless the rules reject it.
    pub(crate) fn write_accepted(&self, value: u128, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        let accepted = self.write(value, out);
        if !accepted {
            out.truncate(start);
        }
        accepted
    }

    /// The first value after the rejected `value` that does not share its rejected prefix. `out` is scratch space.
    pub(crate) fn value_after_rejected(&self, value: u128, out: &mut Vec<u8>) -> u128 {
        let seq = &self.pattern.compiled_template().seq;
        let start = out.len();
        seq.alphabet.write(value, seq.width.unwrap_or(0), out);
        let end = out.len();
        let rejected = (start + 1..end).find(|at| self.pattern.reject().rejects_prefix(&out[start..*at]));
        out.truncate(start);
        let values_with_prefix = rejected.map_or(1, |at| seq.alphabet.space(end - at));
        (value / values_with_prefix + 1).saturating_mul(values_with_prefix)
    }

    fn write(&self, value: u128, out: &mut Vec<u8>) -> bool {
        let template = self.pattern.compiled_template();
        let reject = self.pattern.reject();
        let start = out.len();
        append(out, self.head.as_bytes());
        let seq_start = out.len();
        template.seq.alphabet.write(value, template.seq.width.unwrap_or(0), out);
        let seq_end = out.len();
        // Most candidates are rejected here, before the check characters are computed.
        if template.check.is_some() && reject.rejects_prefix(&out[seq_start..]) {
            return false;
        }
        append(out, self.between.as_bytes());
        let check = template.check_text(&out[start..]);
        append(out, check.as_bytes());
        append(out, self.tail.as_bytes());
        reject.is_empty() || {
            let mut body = [0; NUMBER_PART_BYTES_MAX];
            reject.accepts(join_number_part(&mut body, &out[seq_start..seq_end], check.as_bytes()))
        }
    }
}

/// Most parts of most patterns are empty, and a copy of nothing costs a call.
#[inline]
fn append(out: &mut Vec<u8>, text: &[u8]) {
    if !text.is_empty() {
        out.extend_from_slice(text);
    }
}

fn shortened(text: &str) -> Box<str> {
    text.chars().take(VALUE_CHARS_MAX).collect::<String>().into()
}

/// Joins `{seq}` and `{check}`, the part of an identifier that the reject rules look at.
pub(crate) fn join_number_part<'b>(body: &'b mut NumberPart, seq: &[u8], check: &[u8]) -> &'b [u8] {
    let len = seq.len() + check.len();
    body[..seq.len()].copy_from_slice(seq);
    body[seq.len()..len].copy_from_slice(check);
    &body[..len]
}
