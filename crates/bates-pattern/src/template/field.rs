//! Parses one `{…}` of a template: `{seq}`, a parameter, `{date:…}`, `{period}` or `{check:…}`.

use super::reader::Reader;
use super::{Field, Segment, Seq};
use crate::alphabet::{self, Alphabet, WIDTH_MAX};
use crate::charset::CharSet;
use crate::check::Check;
use crate::date::DateField;
use crate::error::{PatternError, Problem};
use crate::nearest;
use crate::period_format::PeriodFormat;
use crate::rule::{CLASSES, Rule, VALUE_BYTES_MAX};

const FIELD_EXPECTED: &str =
    "seq, date, period, check or the name of a parameter (a letter, then letters, digits and _)";

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Field, PatternError> {
    let opened = reader.column;
    reader.skip(1);
    let name_column = reader.column;
    let name = reader.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
    let field = match name {
        "seq" => Field::Seq(Box::new(read_seq(reader, opened)?)),
        "date" => Field::Date(read_date(reader)?),
        "period" => Field::Period(read_period(reader)?),
        "check" => Field::Check(read_check(reader)?),
        _ if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.len() <= VALUE_BYTES_MAX => {
            let rule = if reader.accept(':') { Some(read_rule(reader, name)?) } else { None };
            Field::Parameter { name: name.into(), rule }
        }
        _ => return Err(reader.expected_instead_of(name_column, name, FIELD_EXPECTED)),
    };
    if reader.accept('}') { Ok(field) } else { Err(unclosed(reader, &field, opened)) }
}

fn unclosed(reader: &Reader<'_>, field: &Field, opened: usize) -> PatternError {
    let more = match (field, reader.peek()) {
        (Field::Seq(seq), Some(_)) if seq.width.is_none() => "`:` or ",
        (Field::Parameter { rule: None, .. } | Field::Period(PeriodFormat::Name), Some(_)) => "`:` or ",
        _ => "",
    };
    reader.expected(&format!("{more}`}}` to close the `{{` at column {opened}"))
}

/// `{seq}`, `{seq:6}`, `{seq:base62}`, `{seq:base62:6}`, `{seq:[A-F0-9]:6}`
fn read_seq(reader: &mut Reader<'_>, column: usize) -> Result<Seq, PatternError> {
    let mut seq = Seq { alphabet: Alphabet::decimal(), width: None, column };
    if !reader.accept(':') {
        return Ok(seq);
    }
    if !matches!(reader.peek(), Some('0'..='9')) {
        let is_custom = reader.peek() == Some('[');
        seq.alphabet = if is_custom { read_custom_alphabet(reader)? } else { read_named_alphabet(reader)? };
        if !reader.accept(':') {
            return Ok(seq);
        }
    }
    seq.width = Some(read_number(reader, "width", WIDTH_MAX)?);
    Ok(seq)
}

fn read_named_alphabet(reader: &mut Reader<'_>) -> Result<Alphabet, PatternError> {
    let column = reader.column;
    let name = read_word(reader);
    Alphabet::named(name).ok_or_else(|| {
        let names = alphabet::NAMES.map(|(name, _)| name).join(", ");
        let expected = format!("a width, an alphabet ({names}) or a custom alphabet in [ ]");
        reader.expected_instead_of(column, name, &expected)
    })
}

fn read_custom_alphabet(reader: &mut Reader<'_>) -> Result<Alphabet, PatternError> {
    let column = reader.column;
    let Class { characters, columns, written } = read_class(reader)?;
    if characters.len() < 2 {
        return Err(reader.expected_instead_of(column, &written, "an alphabet of two characters or more"));
    }
    let twice = (1..characters.len()).find(|at| characters[..*at].contains(&characters[*at]));
    if let Some(at) = twice {
        let problem = Problem::DuplicateCharacter(char::from(characters[at]));
        return Err(PatternError::at(columns[at], problem));
    }
    Ok(Alphabet::new(&written, &characters, false))
}

struct Class {
    /// In the order written, ranges expanded.
    characters: Vec<u8>,
    columns: Vec<usize>,
    written: String,
}

/// `[A-Z0-9_-]`
fn read_class(reader: &mut Reader<'_>) -> Result<Class, PatternError> {
    let mut class = Class { characters: Vec::new(), columns: Vec::new(), written: String::from("[") };
    reader.skip(1);
    while !reader.accept(']') {
        let column = reader.column;
        let first = read_class_character(reader)?;
        class.written.push(char::from(first));
        let mut last = first;
        // A dash before the closing bracket is a character, not a range.
        if reader.peek() == Some('-') && reader.peek_second() != Some(']') {
            reader.skip(1);
            last = read_class_character(reader)?;
            class.written.extend(['-', char::from(last)]);
        }
        if last < first {
            let range = format!("{}-{}", char::from(first), char::from(last));
            return Err(reader.expected_instead_of(column, &range, "an ascending range"));
        }
        class.characters.extend(first..=last);
        class.columns.resize(class.characters.len(), column);
    }
    class.written.push(']');
    Ok(class)
}

fn read_class_character(reader: &mut Reader<'_>) -> Result<u8, PatternError> {
    const EXPECTED: &str = "a visible ASCII character other than [ ] { }, a range such as A-Z, or `]`";
    let is_allowed = |c: &char| c.is_ascii_graphic() && !matches!(c, '[' | ']' | '{' | '}');
    let character = reader.peek().filter(is_allowed).ok_or_else(|| reader.expected(EXPECTED))?;
    reader.skip(1);
    Ok(character as u8)
}

/// `digits`, `upper:2-8`, `[A-Z0-9]:4`, `INV|CRN`
fn read_rule(reader: &mut Reader<'_>, parameter: &str) -> Result<Rule, PatternError> {
    let column = reader.column;
    let set = if reader.peek() == Some('[') {
        let Class { characters, written, .. } = read_class(reader)?;
        if characters.is_empty() {
            return Err(reader.expected_instead_of(column, &written, "a class of one character or more"));
        }
        CharSet::of(&characters)
    } else {
        let words = reader.take_while(|c| c.is_ascii_graphic() && !matches!(c, ':' | '{' | '}'));
        if words.contains('|') {
            return read_choice(reader, column, words);
        }
        let named = CLASSES.iter().find(|(name, _)| *name == words);
        named.map(|(_, set)| *set).ok_or_else(|| {
            let names = CLASSES.map(|(name, _)| name).join(", ");
            let near = nearest(parameter, ["seq", "date", "period", "check"]);
            let hint = near.map_or(String::new(), |near| format!(" (or did you mean {{{near}}}?)"));
            let expected = format!("a rule: {names}, a class in [ ], or choices as in A|B{hint}");
            reader.expected_instead_of(column, words, &expected)
        })?
    };
    if !reader.accept(':') {
        return Ok(Rule::class(set));
    }
    let column = reader.column;
    let min = read_number(reader, "length", VALUE_BYTES_MAX)?;
    let max = if reader.accept('-') { read_number(reader, "length", VALUE_BYTES_MAX)? } else { min };
    if max < min {
        let range = format!("{min}-{max}");
        return Err(reader.expected_instead_of(column, &range, "an ascending range of lengths"));
    }
    Ok(Rule::Class { set, min, max })
}

fn read_choice(reader: &Reader<'_>, column: usize, words: &str) -> Result<Rule, PatternError> {
    let choices: Box<[Box<str>]> = words.split('|').map(Into::into).collect();
    if choices.iter().any(|choice| choice.is_empty() || choice.len() > VALUE_BYTES_MAX) {
        let expected = format!("choices of 1 to {VALUE_BYTES_MAX} characters between the `|`");
        return Err(reader.expected_instead_of(column, words, &expected));
    }
    if (1..choices.len()).any(|at| choices[..at].contains(&choices[at])) {
        return Err(reader.expected_instead_of(column, words, "each choice once"));
    }
    Ok(Rule::Choice(choices))
}

/// `{date:%Y-%m}`: conversions of fixed width, and literals between them.
fn read_date(reader: &mut Reader<'_>) -> Result<Vec<Segment>, PatternError> {
    const EXPECTED: &str = "`:` and a format such as %Y-%m (conversions: %Y %y %m %d %j)";
    if !reader.accept(':') || matches!(reader.peek(), None | Some('}')) {
        return Err(reader.expected(EXPECTED));
    }
    let mut parts = Vec::new();
    let mut conversions = 0;
    while !matches!(reader.peek(), None | Some('{' | '}')) {
        if !reader.accept('%') {
            parts.push(Segment::Literal(reader.next_visible()?.to_string().into()));
            continue;
        }
        let field = reader.peek().and_then(DateField::of);
        let field = field.ok_or_else(|| reader.expected("one of Y, y, m, d, j after `%`"))?;
        reader.skip(1);
        conversions += 1;
        parts.push(Segment::Date(field));
    }
    if conversions == 0 { Err(reader.expected("a conversion: %Y, %y, %m, %d or %j")) } else { Ok(parts) }
}

/// `{period}`, `{period:yyyy}`, `{period:yy-yy}`
fn read_period(reader: &mut Reader<'_>) -> Result<PeriodFormat, PatternError> {
    const EXPECTED: &str = "yyyy (the first year) or yy-yy (both years of a fiscal year)";
    if !reader.accept(':') {
        return Ok(PeriodFormat::Name);
    }
    let column = reader.column;
    let format = read_word(reader);
    PeriodFormat::from_written(format).ok_or_else(|| reader.expected_instead_of(column, format, EXPECTED))
}

fn read_check(reader: &mut Reader<'_>) -> Result<Check, PatternError> {
    let names = Check::ALL.map(Check::name).join(", ");
    if !reader.accept(':') {
        return Err(reader.expected(&format!("`:` and an algorithm ({names})")));
    }
    let column = reader.column;
    let name = read_word(reader);
    Check::from_name(name)
        .ok_or_else(|| reader.expected_instead_of(column, name, &format!("a check algorithm ({names})")))
}

fn read_word<'t>(reader: &mut Reader<'t>) -> &'t str {
    reader.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

fn read_number(reader: &mut Reader<'_>, what: &'static str, max: usize) -> Result<usize, PatternError> {
    let column = reader.column;
    let digits = reader.take_while(|c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(reader.expected(&format!("a {what} from 1 to {max}")));
    }
    // Leading zeros are refused, so that a template has one spelling.
    match digits.parse() {
        Ok(value) if (1..=max).contains(&value) && !digits.starts_with('0') => Ok(value),
        _ => Err(PatternError::at(column, Problem::OutOfRange { what, min: 1, max, found: digits.into() })),
    }
}
