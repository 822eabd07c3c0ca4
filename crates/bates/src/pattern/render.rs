//! `bates pattern render`: the numbers from a position on.

use anyhow::{Result, anyhow};
use bates_pattern::{Position, Scope};
use clap::Args;
use serde::Serialize;

use super::compile::{PatternArgs, ScopeArgs};
use crate::output::{self, Answer, Output};

/// Print the number at a position, and those after it
///
/// Positions that --reject or --restrict refuse are skipped, and a note says so. A date that the template
/// shows and --date does not give is today's.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern render '{project}-{type}-{seq}' --position 1001 \\\n    \
    --param project=PROJ --param type=9012\n  \
    bates pattern render '{seq:base62:6}' --position 0 --count 5 --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    bates pattern render 'INV-{date:%Y}-{seq:5}' --position 1 --date 2026-12-31 --reset yearly\n  \
    bates pattern render '{seq:11}{check:verhoeff}' --position 0 --count 3 --reject openg2p")]
pub(crate) struct RenderArgs {
    /// The first position, from 0 on
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
struct Rendered<'n> {
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
        let walked = print(out, &scope, self.position, self.count, self.pattern.json)?;
        if walked.rejected > 0 {
            let skipped = output::counted(walked.rejected, "position");
            output::print_note(&format!("{skipped} skipped: the rules reject what is there"));
        }
        if walked.printed == self.count {
            return Ok(Answer::Yes);
        }
        let found = format!("{} of {} from position {} on", walked.printed, self.count, self.position);
        let most = output::grouped(REJECTED_MAX);
        output::print_error(&match walked.next {
            Some(next) => anyhow!("{found}: the rules reject all {most} before position {next}"),
            None => anyhow!("{found}: the space ends with position {}", pattern.last()),
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

struct Walked {
    printed: u64,
    rejected: u64,
    /// `None` at the end of the space.
    next: Option<Position>,
}

fn print(out: &mut Output, scope: &Scope, first: Position, count: u64, json: bool) -> Result<Walked> {
    let mut walked = Walked { printed: 0, rejected: 0, next: Some(first) };
    let mut line = Vec::new();
    while let Some(first) =
        walked.next.filter(|next| walked.printed < count && *next <= scope.pattern().last())
    {
        let last = window_end(scope, first);
        let mut walk = scope.accepted(first, last);
        let printed_before = walked.printed;
        while walked.printed < count {
            line.clear();
            let Some(position) = walk.next_into(&mut line) else { break };
            print_number(out, position, &mut line, json)?;
            walked.printed += 1;
            walked.next = Position::new(position.value() + 1);
        }
        if walked.printed == printed_before {
            walked.next = Position::new(last.value() + 1);
            break;
        }
    }
    out.flush()?;
    walked.next = walked.next.filter(|next| *next <= scope.pattern().last());
    let end = walked.next.map_or(scope.pattern().last().value() + 1, Position::value);
    walked.rejected = end.saturating_sub(first.value()) - walked.printed;
    Ok(walked)
}

fn print_number(out: &mut Output, position: Position, line: &mut Vec<u8>, json: bool) -> Result<()> {
    if json {
        let number = std::str::from_utf8(line)?;
        return out.json(&Rendered { position: position.value(), number });
    }
    line.push(b'\n');
    out.bytes(line)
}
