//! How `{period}` shows a period in an identifier, and how it is read back. A format shows a period only if its text
//! belongs to that period alone.

use std::fmt::Write;

use crate::date::SHORT_YEARS;
use crate::period::{Period, Reset, number};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodFormat {
    /// `{period}`: the name of the period, whatever the reset.
    Name,
    /// `{period:yyyy}`: the year in which the period begins.
    FirstYear,
    /// `{period:yy-yy}`: both years of a fiscal year, in two digits each.
    ShortYears,
}

impl PeriodFormat {
    /// The formats by the text after the colon.
    const WRITTEN: [(&str, Self); 2] = [("yyyy", Self::FirstYear), ("yy-yy", Self::ShortYears)];

    pub(crate) fn from_written(text: &str) -> Option<Self> {
        Self::WRITTEN.into_iter().find(|(written, _)| *written == text).map(|(_, format)| format)
    }

    /// The field as it stands in a template.
    pub(crate) fn field(self) -> &'static str {
        match self {
            Self::Name => "{period}",
            Self::FirstYear => "{period:yyyy}",
            Self::ShortYears => "{period:yy-yy}",
        }
    }

    /// The resets whose periods it shows.
    pub(crate) fn resets(self) -> &'static str {
        match self {
            Self::Name => "yearly, monthly, daily or fiscal-MM-DD",
            Self::FirstYear => "yearly or fiscal-MM-DD",
            Self::ShortYears => "fiscal-MM-DD",
        }
    }

    pub(crate) fn is_short(self) -> bool {
        self == Self::ShortYears
    }

    /// The fields to write instead, where this one does not show the periods of `reset`.
    pub(crate) fn replacement(self, reset: Reset) -> Option<&'static str> {
        match (self, reset) {
            (Self::Name, _) | (_, Reset::Never | Reset::Fiscal(_)) | (Self::FirstYear, Reset::Yearly) => None,
            (Self::ShortYears, Reset::Yearly) => Some("{period}, or {date:%y} for two digits"),
            (_, Reset::Monthly) => Some("{period}, or {date:%Y%m} without a dash"),
            (_, Reset::Daily) => Some("{period}, or {date:%Y%m%d} without dashes"),
        }
    }

    pub(crate) fn width(self, reset: Reset) -> usize {
        match self {
            Self::Name => reset.name_width(),
            Self::FirstYear => 4,
            Self::ShortYears => 5,
        }
    }

    pub(crate) fn write(self, period: Period, out: &mut String) {
        let year = period.first_year();
        let _ = match self {
            Self::Name => write!(out, "{period}"),
            Self::FirstYear => write!(out, "{year:04}"),
            Self::ShortYears => write!(out, "{:02}-{:02}", year % 100, (year + 1) % 100),
        };
    }

    pub(crate) fn read(self, reset: Reset, text: &str) -> Option<Period> {
        match self {
            Self::Name => reset.period_named(text),
            Self::FirstYear => reset.period_starting_in(number(text)?),
            Self::ShortYears => {
                let (first, second) = text.split_once('-').filter(|(first, _)| first.len() == 2)?;
                let year = SHORT_YEARS.start() + number::<i16>(first)?;
                let follows = number(second) == Some((year + 1) % 100);
                reset.period_starting_in(year).filter(|_| follows)
            }
        }
    }

    /// The expected text, for messages.
    pub(crate) fn expected(self, reset: Reset) -> String {
        let field = self.field();
        match self {
            Self::Name => format!("{field}, the name of a {reset} period"),
            Self::FirstYear => format!("{field}, the first year of a {reset} period"),
            Self::ShortYears => format!("{field}, the two years of a {reset} period, such as 26-27"),
        }
    }
}
