//! `bates pattern render`: the numbers from a position on.

use std::io::Write;

use anyhow::anyhow;
use bates_pattern::{Accepted, Position};
use clap::Args;
use serde::Serialize;

use super::compile::{PatternArgs, ScopeArgs};
use crate::output::{self, Answer};

/// Print the number at a position, and those after it
///
/// Positions that --reject or --restrict refuse are skipped, and a note says so.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    bates pattern render '{project}-{type}-{seq}' --position 1001 \\\n    \
    --param project=PROJ --param type=9012\n  \
    bates pattern render '{seq:base62:6}' --position 0 --count 5 --order shuffled \\\n    \
    --key 2b7e151628aed2a6abf7158809cf4f3c\n  \
    bates pattern render 'INV-{date:%Y}-{seq:5}' --position 1 --date 2026-12-31 --reset yearly\n  \
    bates pattern render '{seq:11}{check:verhoeff}' --position 0 --count 3 --reject openg2p")]
pub(crate) struct RenderArgs {
    /// The first position
    #[arg(long, value_name = "N")]
    position: u64,

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

pub(super) fn run(args: RenderArgs) -> anyhow::Result<Answer> {
    let pattern = args.pattern.compile()?;
    let scope = args.scope.scope(&pattern)?;
    let first = Position::new(args.position).ok_or_else(|| {
        anyhow!("--position {}: a position is below 2^53 = {}", args.position, Position::COUNT)
    })?;
    let walk = scope.accepted(first, Position::MAX);
    let walked = print(walk, args.count, args.pattern.json)?;
    let skipped = match walked.last {
        Some(last) => last.value() - first.value() + 1 - walked.printed,
        None => 0,
    };
    if skipped > 0 {
        output::print_note(&format!(
            "{} positions were skipped: the rules reject them",
            output::grouped(skipped)
        ));
    }
    if walked.printed < args.count {
        output::print_error(&anyhow!(
            "the space ends: {} of {} numbers from position {first} on; the last position is {}",
            walked.printed,
            args.count,
            pattern.last()
        ));
        return Ok(Answer::No);
    }
    Ok(Answer::Yes)
}

struct Walked {
    printed: u64,
    last: Option<Position>,
}

fn print(mut walk: Accepted<'_>, count: u64, json: bool) -> anyhow::Result<Walked> {
    let mut out = output::stdout();
    let mut walked = Walked { printed: 0, last: None };
    let mut line = Vec::new();
    while walked.printed < count {
        line.clear();
        let Some(position) = walk.next_into(&mut line) else { break };
        if json {
            let number = std::str::from_utf8(&line)?;
            output::json_line(&mut out, &Rendered { position: position.value(), number })?;
        } else {
            line.push(b'\n');
            out.write_all(&line)?;
        }
        walked = Walked { printed: walked.printed + 1, last: Some(position) };
    }
    out.flush()?;
    Ok(walked)
}
