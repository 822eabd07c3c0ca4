//! What an identifier shows of a business date, and what can be told from it.

use std::fmt::Write;

use jiff::civil::Date;

use crate::period::{Period, Reset, number};

/// Business dates outside these years are refused; four digits always show them.
pub(crate) const YEARS: std::ops::RangeInclusive<i16> = 1900..=9999;

/// The years that `%y` can show without two of them reading the same.
pub(crate) const SHORT_YEARS: std::ops::RangeInclusive<i16> = 2000..=2099;

/// Which parts of a date a template shows.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing a template shows or does not")]
pub(crate) struct Shown {
    pub(crate) period: bool,
    pub(crate) year: bool,
    pub(crate) month: bool,
    pub(crate) day: bool,
    pub(crate) ordinal: bool,
}

/// One conversion of `{date:…}`. All have a fixed width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateField {
    /// `%Y`
    Year,
    /// `%y`
    ShortYear,
    /// `%m`
    Month,
    /// `%d`
    Day,
    /// `%j`, the day of the year
    Ordinal,
}

impl DateField {
    pub(crate) fn of(conversion: char) -> Option<Self> {
        match conversion {
            'Y' => Some(Self::Year),
            'y' => Some(Self::ShortYear),
            'm' => Some(Self::Month),
            'd' => Some(Self::Day),
            'j' => Some(Self::Ordinal),
            _ => None,
        }
    }

    /// In words, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Year => "year in four digits",
            Self::ShortYear => "year in two digits",
            Self::Month => "month",
            Self::Day => "day of the month",
            Self::Ordinal => "day of the year",
        }
    }

    pub(crate) fn width(self) -> usize {
        match self {
            Self::Year => 4,
            Self::ShortYear | Self::Month | Self::Day => 2,
            Self::Ordinal => 3,
        }
    }
}

/// What is known of a business date: all of it, or what an identifier showed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DateParts {
    year: Option<i16>,
    month: Option<i8>,
    day: Option<i8>,
    ordinal: Option<i16>,
}

impl DateParts {
    pub(crate) fn of(date: Date) -> Self {
        Self {
            year: Some(date.year()),
            month: Some(date.month()),
            day: Some(date.day()),
            ordinal: Some(date.day_of_year()),
        }
    }

    /// What is known, by name.
    pub(crate) fn known(&self) -> impl Iterator<Item = (&'static str, i16)> {
        let Self { year, month, day, ordinal } = *self;
        let named = [
            ("year", year),
            ("month", month.map(i16::from)),
            ("day", day.map(i16::from)),
            ("day_of_year", ordinal),
        ];
        named.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }

    /// Appends the text of one field; what is not known of the date is never asked for.
    pub(crate) fn write(&self, field: DateField, out: &mut String) {
        let value = match field {
            DateField::Year => self.year,
            DateField::ShortYear => self.year.map(|year| year % 100),
            DateField::Month => self.month.map(i16::from),
            DateField::Day => self.day.map(i16::from),
            DateField::Ordinal => self.ordinal,
        };
        let width = field.width();
        let _ = write!(out, "{:0width$}", value.unwrap_or(0));
    }

    /// Takes in what one field of an identifier shows; false if it contradicts what is known.
    pub(crate) fn read(&mut self, field: DateField, text: &str) -> bool {
        match field {
            DateField::Year => agree(&mut self.year, number(text)),
            DateField::ShortYear => {
                agree(&mut self.year, number(text).map(|year: i16| SHORT_YEARS.start() + year))
            }
            DateField::Month => agree(&mut self.month, number(text)),
            DateField::Day => agree(&mut self.day, number(text)),
            DateField::Ordinal => agree(&mut self.ordinal, number(text)),
        }
    }

    /// The period of the one date, or of all the dates, that these parts and the shown period leave; `Err`
    /// if no date has them all.
    pub(crate) fn period(&self, reset: Reset, shown: Option<Period>) -> Result<Option<Period>, ()> {
        let date = match (shown, self) {
            (None, Self { year: None, month: None, day: None, ordinal: None }) => return Ok(None),
            (Some(period), _) => period.days().find(|day| self.fits(*day)),
            (None, Self { year: Some(year), month: Some(month), day: Some(day), ordinal: None }) => {
                Date::new(*year, *month, *day).ok().filter(|day| self.fits(*day))
            }
            (None, Self { year: Some(year), .. }) => self.day_of(*year),
            // No year is shown: 2000 has every day a year can have, 2001 those of the others.
            (None, _) => self.day_of(2000).or_else(|| self.day_of(2001)),
        };
        let date = date.ok_or(())?;
        Ok(shown.or_else(|| reset.period(date)))
    }

    fn day_of(&self, year: i16) -> Option<Date> {
        Reset::Yearly.period(Date::new(year, 1, 1).ok()?)?.days().find(|day| self.fits(*day))
    }

    fn fits(&self, date: Date) -> bool {
        YEARS.contains(&date.year())
            && self.year.is_none_or(|year| year == date.year())
            && self.month.is_none_or(|month| month == date.month())
            && self.day.is_none_or(|day| day == date.day())
            && self.ordinal.is_none_or(|ordinal| ordinal == date.day_of_year())
    }
}

/// Whether a value could be read and is the one already known, if any is.
fn agree<T: PartialEq + Copy>(known: &mut Option<T>, value: Option<T>) -> bool {
    value.is_some_and(|value| *known.get_or_insert(value) == value)
}
