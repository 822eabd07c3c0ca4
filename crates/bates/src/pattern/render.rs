//! `bates pattern render`: prints the numbers from a position on.

use anyhow::{Result, anyhow};
use bates_pattern::{Position, Scope};
use clap::Args;
use serde::Serialize;

use super::compile::{PatternArgs, ScopeArgs};
use crate::output::{self, Answer, Output};

/// Print the numbers from a position on
///
/// Skips positions whose numbers --reject or --restrict rejects, and says so in a note. If the template shows a date
/// and --date is missing, today is used.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern render '{project}-{type}-{seq}' --position 1001 \\\n    \
    --param project=PROJ --param type=9012\n  \
    bates pattern render '{seq:base62:6}' --position 0 --count 5 --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    bates pattern render 'INV-{date:%Y}-{seq:5}' --position 1 --date 2026-12-31 --reset yearly\n  \
    bates pattern render 'INV/{period:yy-yy}/{seq:6}' --position 1 --reset fiscal-04-01\n  \
    bates pattern render '{seq:11}{check:verhoeff}' --position 0 --count 3 --reject openg2p")]
pub(crate) struct RenderArgs {
    /// The first position, 0 or more
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = position)]
    position: Position,

    /// How many numbers
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,

    #[command(flatten)]
    scope: ScopeArgs,

    #[command(flatten)]
    pattern: PatternArgs,
}

#[derive(Serialize)]
struct RenderedNumber<'n> {
    position: u64,
    number: &'n str,
}

fn position(text: &str) -> Result<Position, String> {
    let position = text.parse().ok().and_then(Position::new);
    position.ok_or_else(|| format!("a position is a whole number from 0 to {}", Position::MAX))
}

impl RenderArgs {
    pub(super) fn run(self, out: &mut Output) -> Result<Answer> {
        let pattern = self.pattern.compile()?;
        let scope = self.scope.scope_today(&pattern)?;
        let summary = print(out, &scope, self.position, self.count, self.pattern.json)?;
        if summary.rejected > 0 {
            let skipped = output::count_of(summary.rejected, "position");
            output::print_note(&format!("{skipped} skipped: the rules reject their numbers"));
        }
        if summary.printed == self.count {
            return Ok(Answer::Yes);
        }
        let (done, first) = (summary.printed, self.position);
        let printed = format!("printed {done} of {} numbers from position {first} on", self.count);
        let most = output::group_digits(REJECTED_MAX);
        output::print_error(&match summary.next {
            Some(next) => anyhow!("{printed}: the rules reject all {most} positions before {next}"),
            None => anyhow!("{printed}: the last position is {}", pattern.last()),
        });
        Ok(Answer::No)
    }
}

/// Rejected positions in a row before giving up: about a second.
const REJECTED_MAX: u64 = 10_000_000;

/// In a counting order rejected positions are skipped in long strides, so the walk goes to the end.
fn window_end(scope: &Scope, first: Position) -> Position {
    let end = if scope.pattern().is_shuffled() { first.value() + REJECTED_MAX - 1 } else { u64::MAX };
    Position::new(end).unwrap_or(Position::MAX)
}

struct RenderSummary {
    printed: u64,
    rejected: u64,
    /// `None` at the end of the space.
    next: Option<Position>,
}

fn print(out: &mut Output, scope: &Scope, first: Position, count: u64, json: bool) -> Result<RenderSummary> {
    let mut summary = RenderSummary { printed: 0, rejected: 0, next: Some(first) };
    let mut line = Vec::new();
    let end = scope.pattern().last();
    while let Some(first) = summary.next.filter(|next| summary.printed < count && *next <= end) {
        let last = window_end(scope, first);
        let mut walk = scope.accepted(first, last);
        let printed_before = summary.printed;
        while summary.printed < count {
            line.clear();
            let Some(position) = walk.next_into(&mut line) else { break };
            print_number(out, position, &mut line, json)?;
            summary.printed += 1;
            summary.next = Position::new(position.value() + 1);
        }
        if summary.printed == printed_before {
            summary.next = Position::new(last.value() + 1);
            break;
        }
    }
    out.flush()?;
    summary.next = summary.next.filter(|next| *next <= end);
    let reached = summary.next.map_or(end.value() + 1, Position::value);
    summary.rejected = reached.saturating_sub(first.value()) - summary.printed;
    Ok(summary)
}

fn print_number(out: &mut Output, position: Position, line: &mut Vec<u8>, json: bool) -> Result<()> {
    if json {
        let number = std::str::from_utf8(line)?;
        return out.print_json(&RenderedNumber { position: position.value(), number });
    }
    line.push(b'\n');
    out.print_bytes(line)
}
