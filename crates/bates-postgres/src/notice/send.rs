//! How often a node sends notices: one at a time, each for all series written in the meantime.

use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use super::board::Board;
use crate::error::Failure;

/// How long notices are collected. If the relay of this node claims the documents by then, no notice is sent.
const COLLECT_TIME: Duration = Duration::from_millis(50);

/// Sends notices until `until`, or until sending fails. Unsent notices are sent later.
pub(super) async fn send_notices<F>(
    board: &Board,
    until: Instant,
    send: impl Fn(Vec<String>) -> F,
) -> Result<(), Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    loop {
        tokio::select! {
            () = board.has_unsent.notified() => {}
            () = sleep_until(until) => return Ok(()),
        }
        sleep(COLLECT_TIME).await;
        let unsent = board.take_unsent();
        let series = unsent.series();
        if !series.is_empty() {
            send(series).await?;
            unsent.mark_sent();
        }
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use uuid::Uuid;

    use super::*;

    /// Writes `count` documents of two series, one each millisecond, and returns the series of each notice sent.
    async fn sent(count: u32, sending_takes: Duration) -> Vec<Vec<String>> {
        let (board, sent) = (Board::new(Uuid::nil()), Mutex::new(Vec::new()));
        let until = Instant::now() + Duration::from_mins(1);
        let sending = send_notices(&board, until, async |series| {
            sleep(sending_takes).await;
            sent.lock().push(series);
            Ok(())
        });
        let writing = async {
            for at in 0..count {
                board.announce(Some(["one", "two"][at as usize % 2].parse().unwrap()));
                sleep(Duration::from_millis(1)).await;
            }
        };
        let (ended, ()) = tokio::join!(sending, writing);
        assert_eq!((ended, board.take_unsent().series()), (Ok(()), vec![]));
        sent.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn many_documents_share_a_few_notices_and_no_document_sends_none() {
        assert_eq!(sent(0, Duration::ZERO).await, Vec::<Vec<String>>::new());
        assert_eq!(sent(1, Duration::ZERO).await, [["one"]]);
        let notices = sent(10_000, Duration::ZERO).await;
        assert!((150..=201).contains(&notices.len()), "{} notices in ten seconds", notices.len());
        assert_eq!(notices[0], ["one", "two"]);
        let notices = sent(10_000, Duration::from_millis(950)).await;
        assert!(notices.len() <= 11, "one notice at a time: {}", notices.len());
    }

    #[tokio::test(start_paused = true)]
    async fn a_notice_that_could_not_be_sent_is_sent_later() {
        let board = Board::new(Uuid::nil());
        board.announce(None);
        let until = Instant::now() + Duration::from_secs(1);
        let failed =
            send_notices(&board, until, |_| std::future::ready(Err(Failure::Transient("away".into())))).await;
        assert_eq!(failed, Err(Failure::Transient("away".into())));
        let sent = Mutex::new(Vec::new());
        let ended = send_notices(&board, until, async |series| {
            sent.lock().push(series);
            Ok(())
        });
        assert_eq!((ended.await, sent.into_inner()), (Ok(()), vec![vec!["*".to_owned()]]));
    }
}
