//! How often a node sends notices: one at a time, each for all series written in the meantime.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::board::Board;
use crate::error::Failure;

/// How long notices are collected. If the relay of the writing node claims the documents by then, no notice is sent.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends notices until `until`, or until sending fails. Unsent notices are sent later.
pub(super) async fn speak<F>(
    board: &Board,
    until: Instant,
    send: impl Fn(Vec<String>) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    loop {
        tokio::select! {
            () = board.has_written() => {}
            () = sleep_until(until) => return Ok(()),
        }
        sleep(PAUSE).await;
        let unsent = board.take();
        let series = unsent.series();
        if !series.is_empty() {
            send(series).await?;
            unsent.sent();
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use uuid::Uuid;

    use super::*;

    /// Writes `count` documents of two series, one each millisecond, and answers with what was sent.
    async fn sent(count: u32, sending_takes: Duration) -> Vec<Vec<String>> {
        let (board, sent) = (Board::new(Uuid::nil()), Mutex::new(Vec::new()));
        let until = Instant::now() + Duration::from_mins(1);
        let speaking = speak(&board, until, async |series| {
            sleep(sending_takes).await;
            sent.lock().push(series);
            Ok(())
        });
        let writing = async {
            for at in 0..count {
                board.wrote(Some(["one", "two"][at as usize % 2].parse().unwrap()));
                sleep(Duration::from_millis(1)).await;
            }
        };
        let (spoken, ()) = tokio::join!(speaking, writing);
        assert_eq!((spoken, board.take().series()), (Ok(()), vec![]));
        sent.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_documents_is_told_a_few_times_and_silence_never() {
        assert_eq!(sent(0, Duration::ZERO).await, Vec::<Vec<String>>::new());
        assert_eq!(sent(1, Duration::ZERO).await, [["one"]]);
        let told = sent(10_000, Duration::ZERO).await;
        assert!((150..=201).contains(&told.len()), "{} times in ten seconds", told.len());
        assert_eq!(told[0], ["one", "two"]);
        let told = sent(10_000, Duration::from_millis(950)).await;
        assert!(told.len() <= 11, "one after the other: {}", told.len());
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_told_is_told_later() {
        let board = Board::new(Uuid::nil());
        board.wrote(None);
        let until = Instant::now() + Duration::from_secs(1);
        let failed =
            speak(&board, until, |_| std::future::ready(Err(Failure::Transient("away".into())))).await;
        assert_eq!(failed, Err(Failure::Transient("away".into())));
        let sent = Mutex::new(Vec::new());
        let spoken = speak(&board, until, async |series| {
            sent.lock().push(series);
            Ok(())
        });
        assert_eq!((spoken.await, sent.into_inner()), (Ok(()), vec![vec!["*".to_owned()]]));
    }
}
