//! Numbers as `next` and `pop` print them: one a line, or a JSON array, taken some at a time.

use crate::output::{self, Answer, Output, counted};

/// What one call brought: numbers, and why no more follow.
pub(super) struct Chunk {
    pub(super) numbers: Vec<String>,
    pub(super) end: Option<End>,
}

/// Why no more numbers follow.
pub(super) struct End {
    pub(super) error: anyhow::Error,
    /// Whether the scope has no more, which is no failure behind numbers that it gave.
    pub(super) is_exhausted: bool,
}

/// Takes and prints that many numbers. Those that were taken are shown, whatever came then.
pub(super) async fn print(
    count: u64,
    json: bool,
    chunk_max: u64,
    mut take: impl AsyncFnMut(usize) -> Chunk,
) -> anyhow::Result<Answer> {
    let (mut out, mut all, mut taken, mut end) = (Output::new(), Vec::new(), 0, None);
    while taken < count && end.is_none() {
        let wanted = (count - taken).min(chunk_max);
        let chunk = take(usize::try_from(wanted)?).await;
        taken += chunk.numbers.len() as u64;
        end = chunk.end;
        if json {
            all.extend(chunk.numbers);
            continue;
        }
        for number in &chunk.numbers {
            out.line(format_args!("{}", output::printable(number)))?;
        }
    }
    if json && taken > 0 {
        out.json(&all)?;
    }
    out.flush()?;
    match end {
        Some(End { error, .. }) if taken == 0 => Err(error),
        Some(End { error, is_exhausted: false }) => {
            Err(error.context(format!("after {}", counted(taken, "number"))))
        }
        _ if taken == count => Ok(Answer::Yes),
        _ => {
            output::print_note(&format!("the scope ends here: {taken} of {}", counted(count, "number")));
            Ok(Answer::No)
        }
    }
}
