//! Refuses templates whose identifiers could not be read back, or could be equal in two scopes.
//!
//! Invariant: the end of a segment of varying length can be found. Either the next segment begins with a character
//! that the segment cannot contain, or all segments after it have a fixed length.

use super::{Parameter, Segment, Template};
use crate::charset::CharSet;
use crate::error::{PatternError, Problem};
use crate::period::Reset;

pub(super) fn check(template: &Template, reset: Reset) -> Result<(), PatternError> {
    for (at, segment) in template.segments.iter().enumerate() {
        let rest = &template.segments[at + 1..];
        let Some(next) = rest.first() else { break };
        check_separator(template, segment, next)?;
        let (min, max) = template.length_bounds(segment, reset);
        if min != max && template.fixed_length(rest, reset).is_none() {
            check_boundary(template, segment, next)?;
        }
    }
    Ok(())
}

/// A separator inside a value is refused even if fixed lengths make it unambiguous, because it misleads people.
fn check_separator(template: &Template, segment: &Segment, next: &Segment) -> Result<(), PatternError> {
    if let (Segment::Parameter(index), Segment::Literal(text)) = (segment, next)
        && let Parameter { name, rule, column } = &template.parameters[*index]
        && rule.set().contains(text.as_bytes()[0])
    {
        let (parameter, separator) = (name.clone(), char::from(text.as_bytes()[0]));
        return Err(PatternError::at(*column, Problem::AdmitsSeparator { parameter, separator }));
    }
    Ok(())
}

fn check_boundary(template: &Template, segment: &Segment, next: &Segment) -> Result<(), PatternError> {
    let Some(shared) = template.shared_character(segment, next) else { return Ok(()) };
    if let (Segment::Parameter(first), Segment::Parameter(second)) = (segment, next) {
        let Parameter { name: second, column, .. } = &template.parameters[*second];
        let (first, second) = (template.parameters[*first].name.clone(), second.clone());
        return Err(PatternError::at(*column, Problem::AdjacentParameters { first, second, shared }));
    }
    let column = match segment {
        Segment::Parameter(index) => template.parameters[*index].column,
        _ => template.seq.column,
    };
    let (first, second) = (template.describe(segment), template.describe(next));
    Err(PatternError::at(column, Problem::AmbiguousBoundary { first, second, shared }))
}

impl Template {
    pub(crate) fn length_bounds(&self, segment: &Segment, reset: Reset) -> (usize, usize) {
        let fixed = |width: usize| (width, width);
        match segment {
            Segment::Literal(text) => fixed(text.len()),
            Segment::Parameter(index) => self.parameters[*index].rule.length_bounds(),
            Segment::Seq => self.seq.width.map_or((1, crate::alphabet::WIDTH_MAX), fixed),
            Segment::Date(field) => fixed(field.width),
            Segment::Period(format) => fixed(format.width(reset)),
            Segment::Check => fixed(self.check.map_or(0, crate::Check::width)),
        }
    }

    pub(crate) fn fixed_length(&self, segments: &[Segment], reset: Reset) -> Option<usize> {
        segments.iter().try_fold(0, |sum, segment| {
            let (min, max) = self.length_bounds(segment, reset);
            (min == max).then_some(sum + min)
        })
    }

    /// The characters that a segment of varying length may contain.
    pub(crate) fn characters(&self, segment: &Segment) -> CharSet {
        match segment {
            Segment::Parameter(index) => self.parameters[*index].rule.set(),
            Segment::Seq => self.seq.alphabet.readable,
            Segment::Check => self.check.map_or(CharSet::default(), crate::Check::characters),
            Segment::Date(_) | Segment::Period(_) => CharSet::DIGITS,
            Segment::Literal(_) => CharSet::default(),
        }
    }

    fn shared_character(&self, segment: &Segment, next: &Segment) -> Option<char> {
        self.characters(segment).first_common(self.first_characters(next))
    }

    /// Whether a segment ends at the first character that it cannot contain.
    pub(crate) fn ends_itself(&self, segment: &Segment, next: Option<&Segment>) -> bool {
        next.is_none_or(|next| self.shared_character(segment, next).is_none())
    }

    fn first_characters(&self, segment: &Segment) -> CharSet {
        match segment {
            Segment::Literal(text) => CharSet::of(&text.as_bytes()[..1]),
            _ => self.characters(segment),
        }
    }

    pub(crate) fn describe(&self, segment: &Segment) -> Box<str> {
        match segment {
            Segment::Literal(text) => format!("{text:?}").into(),
            Segment::Parameter(index) => format!("{{{}}}", self.parameters[*index].name).into(),
            Segment::Seq => "{seq}".into(),
            Segment::Date(_) => "{date}".into(),
            Segment::Period(format) => format.field().into(),
            Segment::Check => "{check}".into(),
        }
    }
}
