//! `bates pattern capacity`: how many numbers a scope can have, and when they run out.

use std::str::FromStr;

use anyhow::{Context, Result};
use bates_pattern::{Capacity, Reset};
use clap::Args;
use jiff::{SignedDuration, Zoned};
use serde::Serialize;

use super::compile::{PatternArgs, ScopeArgs};
use crate::output::{Answer, Output, count_of, group_digits};

const DAY_SECONDS: u64 = 86_400;

/// Print how many numbers each scope can have
///
/// The first line is the bare number. With rules, it is counted if that is quick and otherwise estimated from a
/// sample; the second line then shows the margin of error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern capacity '{seq:base62:6}' --rate 1000/s\n  \
    bates pattern capacity '{seq:5}{check:verhoeff}' --reject openg2p\n  \
    bates pattern capacity '{seq:11}{check:verhoeff}' --reject openg2p --rate 5000000/d --json")]
pub(crate) struct CapacityArgs {
    /// Also print when the numbers run out at this rate: a number per s, min, h or d
    #[arg(long, value_name = "N/UNIT")]
    rate: Option<Rate>,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    pattern: PatternArgs,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    count: u64,
    unit: &'static str,
    unit_seconds: u64,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3_600), ("d", DAY_SECONDS)];
        let (count, unit) = text.split_once('/').unwrap_or((text, ""));
        let count = count.parse().ok().filter(|count| *count > 0);
        let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
        match (count, unit) {
            (Some(count), Some((unit, unit_seconds))) => Ok(Self { count, unit, unit_seconds }),
            _ => Err("expected a whole number above 0 and a unit (s, min, h, d), such as 1000/s".to_owned()),
        }
    }
}

#[derive(Serialize)]
struct CapacityReport {
    capacity: u64,
    exact: bool,
    margin: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_rate: Option<Exhaustion>,
}

#[derive(Serialize)]
struct Exhaustion {
    rate: String,
    /// `None` if each period ends before the last number is taken.
    seconds: Option<u64>,
    /// `None` after the year 9999.
    date: Option<String>,
}

impl CapacityArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<Answer> {
        let pattern = self.pattern.compile_any_order()?;
        let capacity = match pattern.capacity() {
            Ok(capacity) if !self.scope.is_given() => capacity,
            // Check a given scope as well.
            Ok(_) => self.scope.scope_today(&pattern)?.capacity(),
            Err(needed) => self.scope.scope(&pattern).context(needed)?.capacity(),
        };
        let exhaustion = self.rate.map(|rate| rate.exhaustion(capacity.count(), pattern.reset()));
        if self.pattern.json {
            let (exact, margin, at_rate) = (capacity.is_exact(), capacity.margin(), exhaustion);
            out.print_json(&CapacityReport { capacity: capacity.count(), exact, margin, at_rate })?;
        } else {
            print(out, capacity, exhaustion.as_ref(), pattern.reset())?;
        }
        Ok(Answer::Yes)
    }
}

fn print(out: &mut Output, capacity: Capacity, exhaustion: Option<&Exhaustion>, reset: Reset) -> Result<()> {
    writeln!(out, "{}", capacity.count())?;
    if !capacity.is_exact() {
        let margin = group_digits(capacity.margin());
        writeln!(out, "estimated from a sample: within {margin} of the true number with 95% confidence")?;
    }
    match exhaustion {
        None => Ok(()),
        Some(Exhaustion { rate, seconds: Some(seconds), date }) => {
            let date = date.as_deref().map_or("after the year 9999".to_owned(), |date| format!("on {date}"));
            let of_period = if reset == Reset::Never { "" } else { " of a period" };
            let duration = describe_duration(*seconds);
            writeln!(out, "at {rate} the numbers{of_period} run out in {duration}, {date}")
        }
        Some(Exhaustion { rate, seconds: None, .. }) => {
            writeln!(out, "at {rate} they do not run out: with reset {reset}, each period ends first")
        }
    }
}

impl Rate {
    fn exhaustion(self, capacity: u64, reset: Reset) -> Exhaustion {
        let rate = format!("{}/{}", self.count, self.unit);
        let seconds = u128::from(capacity) * u128::from(self.unit_seconds) / u128::from(self.count);
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        if reset.days_max().is_some_and(|days| seconds >= u64::from(days) * DAY_SECONDS) {
            return Exhaustion { rate, seconds: None, date: None };
        }
        let span = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let date = Zoned::now().checked_add(span).ok().map(|end| end.date().to_string());
        Exhaustion { rate, seconds: Some(seconds), date }
    }
}

/// In the largest unit that fits twice; years with one decimal.
fn describe_duration(seconds: u64) -> String {
    const YEAR_SECONDS: u64 = 31_556_952;
    const UNITS: [(&str, u64); 3] = [("day", DAY_SECONDS), ("hour", 3_600), ("minute", 60)];
    if seconds >= 2 * YEAR_SECONDS {
        // Tenths before years: dividing the year by ten would drop a fraction of a second each.
        let tenths = seconds / YEAR_SECONDS * 10 + seconds % YEAR_SECONDS * 10 / YEAR_SECONDS;
        return format!("{}.{} years", group_digits(tenths / 10), tenths % 10);
    }
    let fitting = UNITS.into_iter().find(|(_, length)| seconds >= 2 * length);
    let (unit, length) = fitting.unwrap_or(("second", 1));
    count_of(seconds / length, unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_use_the_largest_unit_that_fits_twice() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (119, "119 seconds"),
            (120, "2 minutes"),
            (7_200, "2 hours"),
            (172_800, "2 days"),
            (63_113_904, "2.0 years"),
            (86_400_000, "2.7 years"),
            (u64::MAX, "584,554,049,253.8 years"),
        ] {
            assert_eq!(describe_duration(seconds), text);
        }
    }

    #[test]
    fn a_rate_needs_a_number_and_a_unit() {
        for good in ["1/s", "1000/min", "5000000/d", "18446744073709551615/h"] {
            assert!(good.parse::<Rate>().is_ok(), "{good}");
        }
        for bad in ["", "10", "0/s", "-1/s", "1.5/s", "1/w", "/s", "10/", "1/s/s", "18446744073709551616/s"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    #[test]
    fn numbers_do_not_run_out_if_the_period_ends_first() {
        let rate: Rate = "1/s".parse().unwrap();
        assert_eq!(rate.exhaustion(86_399, Reset::Daily).seconds, Some(86_399));
        assert_eq!(rate.exhaustion(86_400, Reset::Daily).seconds, None);
        assert_eq!(rate.exhaustion(86_400, Reset::Never).seconds, Some(86_400));
        assert_eq!(rate.exhaustion(u64::MAX, Reset::Never).date, None, "past the calendar");
    }
}
