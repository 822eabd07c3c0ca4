//! `bates pattern capacity`: how many numbers a scope can have, and when they run out.

use std::io::Write;
use std::str::FromStr;

use bates_pattern::Capacity;
use clap::Args;
use jiff::{SignedDuration, Zoned};
use serde::Serialize;

use super::compile::{PatternArgs, ScopeArgs};
use crate::output::{self, Answer, grouped};

/// Print how many numbers each scope can have
///
/// The first line is the bare number. With rules it is counted where that is quick, and otherwise estimated
/// from a sample; the second line then says how far off it may be.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern capacity '{seq:base62:6}' --rate 1000/s\n  \
    bates pattern capacity '{seq:5}{check:verhoeff}' --reject openg2p\n  \
    bates pattern capacity '{seq:11}{check:verhoeff}' --reject openg2p --rate 5000000/d --json")]
pub(crate) struct CapacityArgs {
    /// Also say when it would run out at this rate: a number per s, min, h or d
    #[arg(long, value_name = "N/UNIT")]
    rate: Option<Rate>,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    pattern: PatternArgs,
}

/// Numbers in a span of time.
#[derive(Clone, Copy, Debug)]
struct Rate {
    count: u64,
    unit: &'static str,
    unit_seconds: u64,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const UNITS: [(&str, u64); 4] = [("s", 1), ("min", 60), ("h", 3_600), ("d", 86_400)];
        let (count, unit) = text.split_once('/').unwrap_or((text, "s"));
        let count = count.parse().ok().filter(|count| *count > 0);
        let unit = UNITS.into_iter().find(|(name, _)| *name == unit);
        match (count, unit) {
            (Some(count), Some((unit, unit_seconds))) => Ok(Self { count, unit, unit_seconds }),
            _ => Err("expected a whole number above 0 and a unit (s, min, h, d), such as 1000/s".to_owned()),
        }
    }
}

#[derive(Serialize)]
struct Told {
    capacity: u64,
    exact: bool,
    error: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs_out: Option<End>,
}

#[derive(Serialize)]
struct End {
    rate: String,
    seconds: u64,
    date: Option<String>,
}

pub(super) fn run(args: CapacityArgs) -> anyhow::Result<Answer> {
    let pattern = args.pattern.compile_any_order()?;
    let capacity = match pattern.capacity() {
        Ok(capacity) if !args.scope.is_given() => capacity,
        // A scope that is named is also checked; and some patterns differ from scope to scope.
        _ => args.scope.scope(&pattern)?.capacity(),
    };
    let end = args.rate.map(|rate| rate.end(capacity.count()));
    let mut out = output::stdout();
    if args.pattern.json {
        let (count, error) = (capacity.count(), capacity.error());
        output::json_line(
            &mut out,
            &Told { capacity: count, exact: capacity.is_exact(), error, runs_out: end },
        )?;
    } else {
        print(&mut out, capacity, end.as_ref())?;
    }
    out.flush()?;
    Ok(Answer::Yes)
}

fn print(out: &mut impl Write, capacity: Capacity, end: Option<&End>) -> anyhow::Result<()> {
    writeln!(out, "{}", capacity.count())?;
    if !capacity.is_exact() {
        let error = grouped(capacity.error());
        writeln!(out, "estimated from a sample; within {error} of it with 95% confidence")?;
    }
    if let Some(End { rate, seconds, date }) = end {
        let date = date.as_deref().map_or("after the year 9999".to_owned(), |date| format!("on {date}"));
        writeln!(out, "at {rate} it runs out in {}, {date}", span(*seconds))?;
    }
    Ok(())
}

impl Rate {
    fn end(self, capacity: u64) -> End {
        let seconds = u128::from(capacity) * u128::from(self.unit_seconds) / u128::from(self.count);
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        let span = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        let date = Zoned::now().checked_add(span).ok().map(|end| end.date().to_string());
        End { rate: format!("{}/{}", self.count, self.unit), seconds, date }
    }
}

/// A span in its largest fitting unit, two of which it has at least.
fn span(seconds: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("years", 31_556_952), ("days", 86_400), ("hours", 3_600), ("minutes", 60)];
    let fitting = UNITS.into_iter().find(|(_, length)| seconds >= 2 * length);
    let (unit, length) = fitting.unwrap_or(("seconds", 1));
    format!("{} {unit}", grouped(seconds / length))
}
