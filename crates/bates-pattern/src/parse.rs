//! A text back into its scope and position, or the reasons why it is no identifier of the pattern. Reading ignores the
//! rules of rejection: an identifier issued before a rule was added keeps its position.

use std::ops::Range;

use crate::charset::CharSet;
use crate::date::DateParts;
use crate::pattern::Pattern;
use crate::period::Period;
use crate::position::Position;
use crate::rule::Rule;
use crate::scope::{Scope, join};
use crate::template::Segment;
use crate::verdict::{ParseError, Reason, Verdict};

/// What an identifier says: its scope and its position.
#[derive(Clone, Debug)]
pub struct Parsed<'p, 't> {
    pattern: &'p Pattern,
    values: Vec<&'t str>,
    date: DateParts,
    period: Option<Period>,
    position: Position,
}

impl<'t> Parsed<'_, 't> {
    /// The position of the identifier.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The value of one parameter.
    pub fn parameter(&self, name: &str) -> Option<&'t str> {
        self.parameters().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All parameters, in the order of the template.
    pub fn parameters(&self) -> impl Iterator<Item = (&str, &'t str)> {
        self.pattern.parameters().zip(self.values.iter().copied())
    }

    /// The period, if the numbering starts again by date.
    pub fn period(&self) -> Option<Period> {
        self.period
    }

    /// What `{date:…}` shows: `year`, `month`, `day` and `day_of_year`, as far as they are shown.
    pub fn date(&self) -> impl Iterator<Item = (&'static str, i16)> {
        self.date.known()
    }

    /// The scope, ready to render. Rendering the position in it gives the identifier in its canonical form.
    pub fn scope(&self) -> Scope {
        let values = self.values.iter().map(|value| (*value).into()).collect();
        Scope::new(self.pattern.clone(), values, self.date, self.period)
    }
}

/// A text taken apart along the template; check, rules and position are not verified yet.
#[derive(Default)]
struct Taken<'t> {
    values: Vec<&'t str>,
    date: DateParts,
    period: Option<Period>,
    value: u128,
    seq: Range<usize>,
    check: &'t str,
    check_fits: bool,
}

impl Pattern {
    /// Reads an identifier back. Its check characters must fit; the rules of rejection are not asked.
    pub fn parse<'p, 't>(&'p self, text: &'t str) -> Result<Parsed<'p, 't>, ParseError> {
        let fail = |reason| ParseError { reason };
        let taken = self.take_apart(text).map_err(fail)?;
        if let (Some(check), false) = (self.parts().check, taken.check_fits) {
            return Err(fail(Reason::Checksum { check }));
        }
        let index = match self.shuffle() {
            Some(shuffle) => {
                let period = taken.period.map(|period| period.to_string());
                let tweak = self.tweak(&taken.values, period.as_deref());
                shuffle.invert(tweak.expect("a shuffled pattern has a tweak"), taken.value)
            }
            None => taken.value,
        };
        let position =
            u64::try_from(index).ok().and_then(Position::new).ok_or_else(|| fail(Reason::Unreachable))?;
        let Taken { values, date, period, .. } = taken;
        Ok(Parsed { pattern: self, values, date, period, position })
    }

    /// Whether a text could be an identifier of this pattern, and if not, everything that speaks against it.
    pub fn validate(&self, text: &str) -> Verdict {
        let mut reasons = Vec::new();
        match self.take_apart(text) {
            Err(reason) => {
                let judge_digits = matches!(reason, Reason::Length { .. }) && self.is_bare();
                reasons.push(reason);
                // The rules would take long over a text longer than any number part.
                let short = text.len() <= crate::scope::BODY_BYTES_MAX;
                if judge_digits && short && text.bytes().all(|byte| byte.is_ascii_digit()) {
                    self.judge_bare(text, &mut reasons);
                }
            }
            Ok(taken) => {
                if let (Some(check), false) = (self.parts().check, taken.check_fits) {
                    reasons.push(Reason::Checksum { check });
                }
                if self.parts().seq.width.is_none() && taken.value >= u128::from(Position::COUNT) {
                    reasons.push(Reason::Unreachable);
                }
                let mut body = [0; crate::scope::BODY_BYTES_MAX];
                let mut seq = text.as_bytes()[taken.seq].to_vec();
                self.parts().seq.alphabet.make_canonical(&mut seq);
                self.reject().explain(join(&mut body, &seq, taken.check.as_bytes()), &mut reasons);
            }
        }
        Verdict { reasons }
    }

    fn is_bare(&self) -> bool {
        let segments = &self.parts().segments;
        self.parts().seq.alphabet.is_decimal()
            && segments.iter().all(|s| matches!(s, Segment::Seq | Segment::Check))
    }

    /// Applies the other rules to digits of the wrong length.
    fn judge_bare(&self, text: &str, reasons: &mut Vec<Reason>) {
        if let Some(check) = self.parts().check
            && let Some(end) = text.len().checked_sub(check.width())
            && check.compute(&text.as_bytes()[..end]).as_bytes() != &text.as_bytes()[end..]
        {
            reasons.push(Reason::Checksum { check });
        }
        self.reject().explain(text.as_bytes(), reasons);
    }

    fn take_apart<'t>(&self, text: &'t str) -> Result<Taken<'t>, Reason> {
        self.take_segments(text).map_err(|reason| self.wrong_length(text).unwrap_or(reason))
    }

    fn take_segments<'t>(&self, text: &'t str) -> Result<Taken<'t>, Reason> {
        let template = self.parts();
        let values = Vec::with_capacity(template.parameters.len());
        let mut taken = Taken { values, check_fits: true, ..Taken::default() };
        let mut at = 0;
        for (index, segment) in template.segments.iter().enumerate() {
            let end = self.end_of(index, text, at);
            let part = end.and_then(|end| text.get(at..end));
            let fits = part.is_some_and(|part| self.take(segment, part, &text[..at], &mut taken));
            let Some(end) = end.filter(|_| fits) else { return Err(self.shape(segment, text, at)) };
            at = end;
        }
        if at != text.len() {
            let expected = "the end of the identifier".into();
            return Err(Reason::Shape { column: column(text, at), expected });
        }
        taken.period = taken.date.period(self.reset(), taken.period).map_err(|()| Reason::Date)?;
        Ok(taken)
    }

    fn end_of(&self, index: usize, text: &str, at: usize) -> Option<usize> {
        let template = self.parts();
        let segment = &template.segments[index];
        let (min, max) = template.extent(segment, self.reset());
        if min == max {
            return Some(at + min).filter(|end| *end <= text.len());
        }
        let rest = &template.segments[index + 1..];
        let end = match template.fixed_length(rest, self.reset()) {
            Some(length) if !template.is_apart(segment, rest.first()) => text.len().checked_sub(length)?,
            _ => at + readable_length(template.readable(segment), &text.as_bytes()[at..]),
        };
        (end >= at + min && end <= at + max).then_some(end)
    }

    fn take<'t>(&self, segment: &Segment, part: &'t str, before: &str, taken: &mut Taken<'t>) -> bool {
        let template = self.parts();
        match segment {
            Segment::Literal(text) => **text == *part,
            Segment::Parameter(index) => {
                taken.values.push(part);
                template.parameters[*index].rule.admits(part)
            }
            Segment::Date(field) => taken.date.read(*field, part),
            Segment::Period => {
                let period = self.reset().named(part);
                let agrees = taken.period.is_none_or(|known| Some(known) == period);
                taken.period = period;
                period.is_some() && agrees
            }
            Segment::Seq => {
                taken.seq = before.len()..before.len() + part.len();
                let value = template.seq.alphabet.read(part.as_bytes());
                taken.value = value.unwrap_or_default();
                value.is_ok() && (template.seq.width.is_some() || self.is_plain(part))
            }
            Segment::Check => {
                taken.check = part;
                taken.check_fits = self.check_fits(part, before, taken.seq.clone());
                template.check.is_some_and(|check| part.bytes().all(|byte| check.readable().contains(byte)))
            }
        }
    }

    /// Without a width, a number has one text: no zeros before it.
    fn is_plain(&self, seq: &str) -> bool {
        seq.len() == 1 || self.parts().seq.alphabet.digit(seq.as_bytes()[0]) != Some(0)
    }

    fn check_fits(&self, found: &str, before: &str, seq: Range<usize>) -> bool {
        let template = self.parts();
        if !template.seq.alphabet.is_forgiving {
            return template.check_text(before.as_bytes()).as_bytes() == found.as_bytes();
        }
        let mut meant = before.as_bytes().to_vec();
        template.seq.alphabet.make_canonical(&mut meant[seq]);
        template.check_text(&meant).as_bytes().eq_ignore_ascii_case(found.as_bytes())
    }

    /// For identifiers of one length, a wrong length says more than the column where a text leaves the template.
    fn wrong_length(&self, text: &str) -> Option<Reason> {
        let template = self.parts();
        template.fixed_length(&template.segments, self.reset())?;
        let characters = |segment: &Segment| match segment {
            Segment::Literal(text) => text.chars().count(),
            _ => template.extent(segment, self.reset()).0,
        };
        let (expected, found) = (template.segments.iter().map(characters).sum(), text.chars().count());
        (expected != found).then_some(Reason::Length { expected, found })
    }

    fn shape(&self, segment: &Segment, text: &str, at: usize) -> Reason {
        let template = self.parts();
        let name = template.describe(segment);
        let expected = match segment {
            Segment::Parameter(index) => format!("{name}, {}", template.parameters[*index].rule),
            Segment::Seq if let Some(width) = template.seq.width => {
                format!("{name}, {width} characters in {}", template.seq.alphabet.name)
            }
            Segment::Seq => {
                format!("{name}, a number in {} without zeros before it", template.seq.alphabet.name)
            }
            Segment::Date(field) => format!("{name}, the {}", field.name),
            Segment::Period => format!("{name}, the name of a {} period", self.reset()),
            Segment::Check | Segment::Literal(_) => name.into(),
        };
        let column = column(text, at + self.fitting(segment, &text[at..]));
        Reason::Shape { column, expected: expected.into() }
    }

    /// How many bytes of a text could still be the segment's.
    fn fitting(&self, segment: &Segment, text: &str) -> usize {
        match segment {
            Segment::Literal(literal) => {
                let same =
                    literal.char_indices().zip(text.chars()).take_while(|((_, one), other)| one == other);
                same.last().map_or(0, |((at, one), _)| at + one.len_utf8())
            }
            Segment::Parameter(index) if matches!(self.parts().parameters[*index].rule, Rule::Choice(_)) => 0,
            _ => {
                let (_, max) = self.parts().extent(segment, self.reset());
                let length = readable_length(self.parts().readable(segment), text.as_bytes());
                // If every character fits, the text is wrong as a whole.
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
