//! Reads a text back into its scope and position, or gives the reasons why it is not an identifier of the pattern.
//! Parsing ignores the reject rules: an identifier issued before a rule was added keeps its position.

use std::ops::Range;

use crate::charset::CharSet;
use crate::date::DateParts;
use crate::pattern::Pattern;
use crate::period::Period;
use crate::position::Position;
use crate::rule::Rule;
use crate::scope::{NUMBER_PART_BYTES_MAX, Scope, join_number_part};
use crate::template::Segment;
use crate::verdict::{ParseError, Reason, Verdict};

/// An identifier that was read back: its scope and its position.
#[derive(Clone, Debug)]
pub struct ParsedIdentifier<'p, 't> {
    pattern: &'p Pattern,
    values: Vec<&'t str>,
    date: DateParts,
    period: Option<Period>,
    position: Position,
}

impl<'t> ParsedIdentifier<'_, 't> {
    /// The position of the identifier.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The value of one parameter.
    pub fn parameter(&self, name: &str) -> Option<&'t str> {
        self.parameters().find(|(parameter, _)| *parameter == name).map(|(_, value)| value)
    }

    /// All parameters, in the order of the template.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &'t str)> {
        self.pattern.parameters().zip(self.values.iter().copied())
    }

    /// The period, if the pattern has a reset.
    pub fn period(&self) -> Option<Period> {
        self.period
    }

    /// The parts of the date that `{date:…}` shows: some of `year`, `month`, `day` and `day_of_year`.
    pub fn date(&self) -> impl Iterator<Item = (&'static str, i16)> {
        self.date.known()
    }

    /// The scope, ready to render. It renders the position as the canonical form of the identifier.
    pub fn scope(&self) -> Scope {
        let values = self.values.iter().map(|value| (*value).into()).collect();
        Scope::new(self.pattern.clone(), values, self.date, self.period)
    }
}

/// A text split along the template. Check characters, rules and position are not verified yet.
#[derive(Default)]
struct TextFields<'t> {
    values: Vec<&'t str>,
    date: DateParts,
    period: Option<Period>,
    value: u128,
    seq: Range<usize>,
    check: &'t str,
    check_fits: bool,
}

impl Pattern {
    /// Reads an identifier back. Verifies its check characters, and ignores the reject rules.
    pub fn parse<'p, 't>(&'p self, text: &'t str) -> Result<ParsedIdentifier<'p, 't>, ParseError> {
        let fail = |reason| ParseError { reason };
        let fields = self.split(text).map_err(fail)?;
        if let (Some(check), false) = (self.compiled_template().check, fields.check_fits) {
            return Err(fail(Reason::Checksum { check }));
        }
        let index = match self.shuffle() {
            Some(shuffle) => {
                let period = fields.period.map(|period| period.to_string());
                let tweak = self.tweak(&fields.values, period.as_deref());
                shuffle.invert(tweak.expect("a shuffled pattern has a tweak"), fields.value)
            }
            None => fields.value,
        };
        let position = u64::try_from(index).ok().and_then(Position::new);
        let position = position.ok_or_else(|| fail(Reason::Unreachable))?;
        let TextFields { values, date, period, .. } = fields;
        Ok(ParsedIdentifier { pattern: self, values, date, period, position })
    }

    /// Whether a text could be an identifier of this pattern, and if not, every reason.
    pub fn validate(&self, text: &str) -> Verdict {
        let template = self.compiled_template();
        let mut reasons = Vec::new();
        match self.split(text) {
            Err(reason) => {
                let explains_digits = matches!(reason, Reason::Length { .. }) && self.is_digits_only();
                reasons.push(reason);
                // Bounds the time that the rules take.
                let is_short = text.len() <= NUMBER_PART_BYTES_MAX;
                if explains_digits && is_short && text.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.explain_digits(text, &mut reasons);
                }
            }
            Ok(fields) => {
                if let (Some(check), false) = (template.check, fields.check_fits) {
                    reasons.push(Reason::Checksum { check });
                }
                if template.seq.width.is_none() && fields.value >= u128::from(Position::COUNT) {
                    reasons.push(Reason::Unreachable);
                }
                let mut body = [0; NUMBER_PART_BYTES_MAX];
                let mut seq = text.as_bytes()[fields.seq].to_vec();
                template.seq.alphabet.make_canonical(&mut seq);
                let body = join_number_part(&mut body, &seq, fields.check.as_bytes());
                self.reject().explain(body, &mut reasons);
            }
        }
        Verdict { reasons }
    }

    fn is_digits_only(&self) -> bool {
        let segments = &self.compiled_template().segments;
        self.compiled_template().seq.alphabet.is_decimal()
            && segments.iter().all(|s| matches!(s, Segment::Seq | Segment::Check))
    }

    /// Applies the check and the rules to digits of the wrong length.
    fn explain_digits(&self, text: &str, reasons: &mut Vec<Reason>) {
        if let Some(check) = self.compiled_template().check
            && let Some(end) = text.len().checked_sub(check.width())
            && check.compute(&text.as_bytes()[..end]).as_bytes() != &text.as_bytes()[end..]
        {
            reasons.push(Reason::Checksum { check });
        }
        self.reject().explain(text.as_bytes(), reasons);
    }

    fn split<'t>(&self, text: &'t str) -> Result<TextFields<'t>, Reason> {
        self.split_segments(text).map_err(|reason| self.length_mismatch(text).unwrap_or(reason))
    }

    fn split_segments<'t>(&self, text: &'t str) -> Result<TextFields<'t>, Reason> {
        let template = self.compiled_template();
        let values = Vec::with_capacity(template.parameters.len());
        let mut fields = TextFields { values, check_fits: true, ..TextFields::default() };
        let mut at = 0;
        for (index, segment) in template.segments.iter().enumerate() {
            let end = self.segment_end(index, text, at);
            let part = end.and_then(|end| text.get(at..end));
            let fits = part.is_some_and(|part| self.read_segment(segment, part, &text[..at], &mut fields));
            let Some(end) = end.filter(|_| fits) else { return Err(self.shape_mismatch(segment, text, at)) };
            at = end;
        }
        if at != text.len() {
            let expected = "the end of the identifier".into();
            return Err(Reason::Shape { column: column(text, at), expected });
        }
        fields.period = fields.date.period(self.reset(), fields.period).map_err(|()| Reason::Date)?;
        Ok(fields)
    }

    fn segment_end(&self, index: usize, text: &str, at: usize) -> Option<usize> {
        let template = self.compiled_template();
        let segment = &template.segments[index];
        let (min, max) = template.length_bounds(segment, self.reset());
        if min == max {
            return Some(at + min).filter(|end| *end <= text.len());
        }
        let rest = &template.segments[index + 1..];
        let end = match template.fixed_length(rest, self.reset()) {
            Some(length) if !template.ends_itself(segment, rest.first()) => text.len().checked_sub(length)?,
            _ => at + readable_length(template.characters(segment), &text.as_bytes()[at..]),
        };
        (end >= at + min && end <= at + max).then_some(end)
    }

    fn read_segment<'t>(
        &self,
        segment: &Segment,
        part: &'t str,
        before: &str,
        fields: &mut TextFields<'t>,
    ) -> bool {
        let template = self.compiled_template();
        match segment {
            Segment::Literal(text) => **text == *part,
            Segment::Parameter(index) => {
                fields.values.push(part);
                template.parameters[*index].rule.admits(part)
            }
            Segment::Date(field) => fields.date.read(*field, part),
            Segment::Period(format) => {
                let period = format.read(self.reset(), part);
                let agrees = fields.period.is_none_or(|known| Some(known) == period);
                fields.period = period;
                period.is_some() && agrees
            }
            Segment::Seq => {
                fields.seq = before.len()..before.len() + part.len();
                let value = template.seq.alphabet.read(part.as_bytes());
                fields.value = value.unwrap_or_default();
                value.is_ok() && (template.seq.width.is_some() || self.has_no_leading_zero(part))
            }
            Segment::Check => {
                fields.check = part;
                fields.check_fits = self.check_fits(part, before, fields.seq.clone());
                template.check.is_some_and(|check| part.bytes().all(|byte| check.characters().contains(byte)))
            }
        }
    }

    /// Without a width, leading zeros are refused, so that a number has one text.
    fn has_no_leading_zero(&self, seq: &str) -> bool {
        seq.len() == 1 || self.compiled_template().seq.alphabet.digit(seq.as_bytes()[0]) != Some(0)
    }

    fn check_fits(&self, found: &str, before: &str, seq: Range<usize>) -> bool {
        let template = self.compiled_template();
        if !template.seq.alphabet.is_forgiving {
            return template.check_text(before.as_bytes()).as_bytes() == found.as_bytes();
        }
        let mut canonical = before.as_bytes().to_vec();
        template.seq.alphabet.make_canonical(&mut canonical[seq]);
        template.check_text(&canonical).as_bytes().eq_ignore_ascii_case(found.as_bytes())
    }

    /// If all identifiers have the same length, a wrong length is a clearer reason than the column of the first mismatch.
    fn length_mismatch(&self, text: &str) -> Option<Reason> {
        let template = self.compiled_template();
        template.fixed_length(&template.segments, self.reset())?;
        let characters = |segment: &Segment| match segment {
            Segment::Literal(text) => text.chars().count(),
            _ => template.length_bounds(segment, self.reset()).0,
        };
        let (expected, found) = (template.segments.iter().map(characters).sum(), text.chars().count());
        (expected != found).then_some(Reason::Length { expected, found })
    }

    fn shape_mismatch(&self, segment: &Segment, text: &str, at: usize) -> Reason {
        let template = self.compiled_template();
        let name = template.describe(segment);
        let expected = match segment {
            Segment::Parameter(index) => format!("{name}, {}", template.parameters[*index].rule),
            Segment::Seq if let Some(width) = template.seq.width => {
                format!("{name}, {width} characters in {}", template.seq.alphabet.name)
            }
            Segment::Seq => {
                format!("{name}, a number in {} without leading zeros", template.seq.alphabet.name)
            }
            Segment::Date(field) => format!("{name}, the {}", field.name),
            Segment::Period(format) => format.expected(self.reset()),
            Segment::Check | Segment::Literal(_) => name.into(),
        };
        let column = column(text, at + self.matching_bytes(segment, &text[at..]));
        Reason::Shape { column, expected: expected.into() }
    }

    /// How many bytes at the start of a text match the segment.
    fn matching_bytes(&self, segment: &Segment, text: &str) -> usize {
        let template = self.compiled_template();
        match segment {
            Segment::Literal(literal) => {
                let pairs = literal.char_indices().zip(text.chars());
                let same = pairs.take_while(|((_, one), other)| one == other);
                same.last().map_or(0, |((at, one), _)| at + one.len_utf8())
            }
            Segment::Parameter(index) if matches!(template.parameters[*index].rule, Rule::Choice(_)) => 0,
            _ => {
                let (_, max) = template.length_bounds(segment, self.reset());
                let length = readable_length(template.characters(segment), text.as_bytes());
                // If every character is allowed, the whole value is wrong.
                if length >= max.min(text.len()) { 0 } else { length }
            }
        }
    }
}

fn readable_length(readable: CharSet, text: &[u8]) -> usize {
    text.iter().take_while(|byte| readable.contains(**byte)).count()
}

fn column(text: &str, at: usize) -> usize {
    text.char_indices().take_while(|(index, _)| *index < at).count() + 1
}
