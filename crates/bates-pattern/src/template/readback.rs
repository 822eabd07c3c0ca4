//! Refuses templates whose numbers could not be read back, or could read the same in two scopes. A part of varying length
//! must end at the first character that cannot be its own, or be followed by parts of fixed length only.

use super::{Parameter, Segment, Template};
use crate::charset::CharSet;
use crate::error::{PatternError, Problem};
use crate::period::Reset;

pub(super) fn check(template: &Template, reset: Reset) -> Result<(), PatternError> {
    for (at, segment) in template.segments.iter().enumerate() {
        let rest = &template.segments[at + 1..];
        let Some(next) = rest.first() else { break };
        check_separator(template, segment, next)?;
        let (min, max) = template.extent(segment, reset);
        if min != max && template.fixed_length(rest, reset).is_none() {
            check_apart(template, segment, next)?;
        }
    }
    Ok(())
}

/// Even where lengths are unambiguous, a separator inside a value misleads the reader.
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

fn check_apart(template: &Template, segment: &Segment, next: &Segment) -> Result<(), PatternError> {
    let Some(shared) = template.shared(segment, next) else { return Ok(()) };
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
    Err(PatternError::at(column, Problem::RunsTogether { first, second, shared }))
}

impl Template {
    pub(crate) fn extent(&self, segment: &Segment, reset: Reset) -> (usize, usize) {
        let fixed = |width: usize| (width, width);
        match segment {
            Segment::Literal(text) => fixed(text.len()),
            Segment::Parameter(index) => self.parameters[*index].rule.extent(),
            Segment::Seq => self.seq.width.map_or((1, crate::alphabet::WIDTH_MAX), fixed),
            Segment::Date(field) => fixed(field.width),
            Segment::Period => fixed(reset.name_width()),
            Segment::Check => fixed(self.check.map_or(0, crate::Check::width)),
        }
    }

    pub(crate) fn fixed_length(&self, segments: &[Segment], reset: Reset) -> Option<usize> {
        segments.iter().try_fold(0, |sum, segment| {
            let (min, max) = self.extent(segment, reset);
            (min == max).then_some(sum + min)
        })
    }

    /// The characters that a segment of varying length may hold.
    pub(crate) fn readable(&self, segment: &Segment) -> CharSet {
        match segment {
            Segment::Parameter(index) => self.parameters[*index].rule.set(),
            Segment::Seq => self.seq.alphabet.readable,
            Segment::Check => self.check.map_or(CharSet::default(), crate::Check::readable),
            Segment::Date(_) | Segment::Period => CharSet::DIGITS,
            Segment::Literal(_) => CharSet::default(),
        }
    }

    fn shared(&self, segment: &Segment, next: &Segment) -> Option<char> {
        self.readable(segment).meets(self.first(next))
    }

    /// Whether a segment ends at the first character that cannot be its own.
    pub(crate) fn is_apart(&self, segment: &Segment, next: Option<&Segment>) -> bool {
        next.is_none_or(|next| self.shared(segment, next).is_none())
    }

    fn first(&self, segment: &Segment) -> CharSet {
        match segment {
            Segment::Literal(text) => CharSet::of(&text.as_bytes()[..1]),
            _ => self.readable(segment),
        }
    }

    pub(crate) fn describe(&self, segment: &Segment) -> Box<str> {
        match segment {
            Segment::Literal(text) => format!("{text:?}").into(),
            Segment::Parameter(index) => format!("{{{}}}", self.parameters[*index].name).into(),
            Segment::Seq => "{seq}".into(),
            Segment::Date(_) => "{date}".into(),
            Segment::Period => "{period}".into(),
            Segment::Check => "{check}".into(),
        }
    }
}
