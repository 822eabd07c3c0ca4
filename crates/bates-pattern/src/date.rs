//! The parts of a business date that an identifier shows, and the period that they determine.

use std::fmt::Write;

use jiff::civil::Date;

use crate::period::{Period, Reset, number};

/// Business dates must be in these years, which four digits can show.
pub(crate) const YEARS: std::ops::RangeInclusive<i16> = 1900..=9999;

/// The years that two digits can show: one century, so that no two years have the same text.
pub(crate) const SHORT_YEARS: std::ops::RangeInclusive<i16> = 2000..=2099;

/// The parts of a date, in the order of [`ShownParts`] and [`DateParts`].
const PARTS: [&str; 4] = ["year", "month", "day", "day_of_year"];

/// The parts of the business date that a template shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ShownParts {
    pub(crate) period: bool,
    pub(crate) parts: [bool; PARTS.len()],
}

/// One conversion of `{date:…}`, such as `%Y`. All have a fixed width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DateField {
    conversion: char,
    pub(crate) part: usize,
    pub(crate) width: usize,
    pub(crate) name: &'static str,
}

const FIELDS: [DateField; 5] = [
    DateField { conversion: 'Y', part: 0, width: 4, name: "year in four digits" },
    DateField { conversion: 'y', part: 0, width: 2, name: "year in two digits" },
    DateField { conversion: 'm', part: 1, width: 2, name: "month" },
    DateField { conversion: 'd', part: 2, width: 2, name: "day of the month" },
    DateField { conversion: 'j', part: 3, width: 3, name: "day of the year" },
];

impl DateField {
    pub(crate) fn of(conversion: char) -> Option<Self> {
        FIELDS.into_iter().find(|field| field.conversion == conversion)
    }

    pub(crate) fn is_short_year(self) -> bool {
        self.conversion == 'y'
    }
}

/// The known parts of a business date: all, or those that an identifier shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DateParts([Option<i16>; PARTS.len()]);

impl DateParts {
    pub(crate) fn of(date: Date) -> Self {
        Self([date.year(), date.month().into(), date.day().into(), date.day_of_year()].map(Some))
    }

    pub(crate) fn known(&self) -> impl Iterator<Item = (&'static str, i16)> {
        PARTS.into_iter().zip(self.0).filter_map(|(name, value)| Some((name, value?)))
    }

    pub(crate) fn write(&self, field: DateField, out: &mut String) {
        let value = self.0[field.part].unwrap_or(0);
        let value = if field.is_short_year() { value % 100 } else { value };
        let _ = write!(out, "{value:0width$}", width = field.width);
    }

    /// Reads one field. Returns `false` if the text contradicts a part that is already known.
    pub(crate) fn read(&mut self, field: DateField, text: &str) -> bool {
        let century = if field.is_short_year() { *SHORT_YEARS.start() } else { 0 };
        let value = number(text).map(|value: i16| century + value);
        value.is_some_and(|value| *self.0[field.part].get_or_insert(value) == value)
    }

    /// The period of the dates that have these parts and lie in the shown period; `Err` if there is no such date.
    pub(crate) fn period(&self, reset: Reset, shown: Option<Period>) -> Result<Option<Period>, ()> {
        let date = match (shown, self.0) {
            (None, [None, None, None, None]) => return Ok(None),
            (Some(period), _) => period.days().find(|day| self.fits(*day)),
            (None, [Some(year), Some(month), Some(day), None]) => {
                let (month, day) = (i8::try_from(month).unwrap_or(0), i8::try_from(day).unwrap_or(0));
                Date::new(year, month, day).ok().filter(|day| self.fits(*day))
            }
            (None, [Some(year), ..]) => self.day_of(year),
            // No year is shown: 2000 stands for all leap years, 2001 for all other years.
            (None, _) => self.day_of(2000).or_else(|| self.day_of(2001)),
        };
        let date = date.ok_or(())?;
        Ok(shown.or_else(|| reset.period(date)))
    }

    fn day_of(&self, year: i16) -> Option<Date> {
        Reset::Yearly.period(Date::new(year, 1, 1).ok()?)?.days().find(|day| self.fits(*day))
    }

    fn fits(&self, date: Date) -> bool {
        let mut parts = self.0.into_iter().zip(Self::of(date).0);
        YEARS.contains(&date.year()) && parts.all(|(known, part)| known.is_none() || known == part)
    }
}
