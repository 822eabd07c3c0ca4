//! When a numbering restarts, and the periods that result. Reads no clock: the caller gives the date.

use std::fmt;
use std::str::FromStr;

use jiff::civil::Date;

use crate::date::{ShownParts, YEARS};

/// When the numbering of a scope restarts at its first position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reset {
    /// Never restarts.
    #[default]
    Never,
    /// On 1 January.
    Yearly,
    /// On the first of each month.
    Monthly,
    /// Each day.
    Daily,
    /// On this day of each year: `fiscal-04-01` restarts on 1 April.
    Fiscal(YearStart),
}

/// The day on which a fiscal year begins: a day that every year has, except 1 January.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct YearStart {
    month: i8,
    day: i8,
}

impl YearStart {
    /// `None` for 29 February, for 1 January (which is [`Reset::Yearly`]), and if the day does not exist.
    pub fn new(month: i8, day: i8) -> Option<Self> {
        // 2001 is not a leap year, so every year has the days of 2001.
        Date::new(2001, month, day).ok()?;
        ((month, day) != (1, 1)).then_some(Self { month, day })
    }

    pub(crate) fn is_first_of_month(self) -> bool {
        self.day == 1
    }
}

/// A text that is not a reset.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown reset {0:?}: expected never, yearly, monthly, daily or fiscal-MM-DD (a day that every year has; \
     for 1 January write yearly)"
)]
pub struct ResetError(pub Box<str>);

const NAMES: [(&str, Reset); 4] = [
    ("never", Reset::Never),
    ("yearly", Reset::Yearly),
    ("monthly", Reset::Monthly),
    ("daily", Reset::Daily),
];

impl FromStr for Reset {
    type Err = ResetError;

    fn from_str(text: &str) -> Result<Self, ResetError> {
        let named = NAMES.into_iter().find(|(name, _)| *name == text).map(|(_, reset)| reset);
        named.or_else(|| fiscal(text.strip_prefix("fiscal-")?)).ok_or_else(|| ResetError(text.into()))
    }
}

fn fiscal(month_and_day: &str) -> Option<Reset> {
    let (month, day) = month_and_day.split_once('-')?;
    let two_digits = |text: &str| (text.len() == 2).then(|| number(text)).flatten();
    let (month, day) = (two_digits(month)?, two_digits(day)?);
    YearStart::new(month, day).map(Reset::Fiscal)
}

impl fmt::Display for Reset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fiscal(YearStart { month, day }) => write!(f, "fiscal-{month:02}-{day:02}"),
            _ => NAMES.iter().filter(|(_, reset)| reset == self).try_for_each(|(name, _)| f.write_str(name)),
        }
    }
}

impl Reset {
    /// The period of `date`; `None` for [`Reset::Never`].
    pub fn period(self, date: Date) -> Option<Period> {
        let first = match self {
            Self::Never => return None,
            Self::Yearly => date.first_of_year(),
            Self::Monthly => date.first_of_month(),
            Self::Daily => date,
            Self::Fiscal(YearStart { month, day }) => {
                let has_begun = (date.month(), date.day()) >= (month, day);
                Date::new(date.year() - i16::from(!has_begun), month, day).ok()?
            }
        };
        Some(Period { reset: self, first })
    }

    /// The number of days of the longest period; `None` for [`Reset::Never`].
    pub fn days_max(self) -> Option<u32> {
        match self {
            Self::Never => None,
            Self::Daily => Some(1),
            Self::Monthly => Some(31),
            Self::Yearly | Self::Fiscal(_) => Some(366),
        }
    }

    pub(crate) fn name_width(self) -> usize {
        match self {
            Self::Never => 0,
            Self::Yearly => 4,
            Self::Monthly | Self::Fiscal(_) => 7,
            Self::Daily => 10,
        }
    }

    /// The period with this name; `None` if the reset has no such period.
    pub fn period_named(self, name: &str) -> Option<Period> {
        if name.len() != self.name_width() || !name.is_ascii() {
            return None;
        }
        let dashed = name.as_bytes().get(4).is_none_or(|byte| *byte == b'-');
        // A series without a reset has no period, and the empty name is as long as its names.
        let year: i16 = number(name.get(..4)?)?;
        let (month, day) = match self {
            Self::Yearly => (1, 1),
            Self::Monthly => (number(&name[5..])?, 1),
            Self::Daily if name.as_bytes()[7] == b'-' => (number(&name[5..7])?, number(&name[8..])?),
            Self::Fiscal(start) if number(&name[5..]) == Some((year + 1) % 100) => (start.month, start.day),
            Self::Never | Self::Daily | Self::Fiscal(_) => return None,
        };
        self.period_from(year, month, day).filter(|_| dashed)
    }

    /// The calendar year or fiscal year that begins in `year`.
    pub(crate) fn period_starting_in(self, year: i16) -> Option<Period> {
        match self {
            Self::Yearly => self.period_from(year, 1, 1),
            Self::Fiscal(YearStart { month, day }) => self.period_from(year, month, day),
            Self::Never | Self::Monthly | Self::Daily => None,
        }
    }

    fn period_from(self, year: i16, month: i8, day: i8) -> Option<Period> {
        // The fiscal year of the earliest business dates began in the year before.
        let in_range = YEARS.contains(&year) || matches!(self, Self::Fiscal(_)) && year == YEARS.start() - 1;
        let first = Date::new(year, month, day).ok()?;
        in_range.then_some(Period { reset: self, first })
    }

    /// Whether the shown parts have the same text on all days of a period.
    pub(crate) fn is_constant_in_period(self, shown: ShownParts) -> bool {
        let [year, month, day, ordinal] = shown.parts;
        match self {
            Self::Daily => true,
            Self::Monthly => !day && !ordinal,
            Self::Yearly => !month && !day && !ordinal,
            // A fiscal year reaches into two calendar years.
            Self::Never | Self::Fiscal(_) => !year && !month && !day && !ordinal,
        }
    }

    pub(crate) fn is_determined_by(self, shown: ShownParts) -> bool {
        let ShownParts { period, parts: [year, month, day, ordinal] } = shown;
        let in_year = |needs_day: bool| ordinal || month && (day || !needs_day);
        period
            || match self {
                Self::Never => true,
                Self::Yearly => year,
                Self::Monthly => year && in_year(false),
                Self::Daily => year && in_year(true),
                // If the fiscal year begins within a month, only the day tells the two years of that month apart.
                Self::Fiscal(start) => year && in_year(!start.is_first_of_month()),
            }
    }
}

/// One period of a reset. Its name is its first day, as short as the reset allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Period {
    reset: Reset,
    first: Date,
}

impl Period {
    pub(crate) fn first_year(self) -> i16 {
        self.first.year()
    }

    pub(crate) fn days(self) -> impl Iterator<Item = Date> {
        let days = std::iter::successors(Some(self.first), |day| day.tomorrow().ok());
        days.take_while(move |day| self.reset.period(*day) == Some(self))
    }
}

/// `2026`, `2026-01`, `2026-01-31`; a fiscal year is `2026-27`.
impl fmt::Display for Period {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = (self.first.year(), self.first.month());
        match self.reset {
            Reset::Never => Ok(()),
            Reset::Yearly => write!(f, "{year:04}"),
            Reset::Monthly => write!(f, "{year:04}-{month:02}"),
            Reset::Daily => write!(f, "{year:04}-{month:02}-{:02}", self.first.day()),
            Reset::Fiscal(_) => write!(f, "{year:04}-{:02}", (year + 1) % 100),
        }
    }
}

/// Parses digits only: `str::parse` would also accept a sign.
pub(crate) fn number<T: FromStr>(text: &str) -> Option<T> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_but_the_name_of_a_period_names_one() {
        let resets = ["never", "yearly", "monthly", "daily", "fiscal-04-01"].map(str::parse::<Reset>);
        let texts =
            ["", "-", "2026", "2026-", "2026-1", "2026-12", "2026-13", "2026-27", "2026-12-31", "2026-02-30"];
        let others = ["é026", "20é6-12", "2026_12", "----", "-------", "----------", "99999", "0000-00-00"];
        let mut named = Vec::new();
        for reset in resets.into_iter().map(|reset| reset.expect("a reset")) {
            for text in texts.iter().chain(&others) {
                if let Some(period) = reset.period_named(text) {
                    assert_eq!(period.to_string(), *text);
                    named.push(*text);
                }
            }
        }
        assert_eq!(named, ["2026", "2026-12", "2026-12-31", "2026-27"]);
    }
}
