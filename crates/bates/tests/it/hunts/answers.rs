//! Answers that get lost on the way to a client, and requests that never arrive.

use std::collections::HashSet;

use super::Hunt;
use crate::client::Stage;
use crate::client::proxy::{Action, Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn lost_answers_cost_numbers_and_repeat_none() {
    let (stage, mut hunt) = (Stage::new(), Hunt::begin());
    let (mut seen, mut lost, mut calls, mut failed, mut returned) = (HashSet::new(), 0, 0, 0, 0);
    while hunt.is_running() {
        let plan: Vec<Action> = (0..40)
            .map(|_| match hunt.below(6) {
                0 | 1 => {
                    lost += 1;
                    Action::Lose
                }
                2 => Action::Drop,
                _ => Action::Pass,
            })
            .collect();
        let proxy = Proxy::start(stage.server.http, plan);
        let (series, held) = (proxy.client().series("ticket"), proxy.client().series("ticket").prefetch(20));
        for _ in 0..10 {
            calls += 1;
            let numbers = match hunt.below(2) {
                0 => series.take(1 + usize::try_from(hunt.below(20)).unwrap()).await.map_err(drop),
                _ => held.take(5).await.map_err(drop),
            };
            for number in numbers.unwrap_or_else(|()| {
                failed += 1;
                Vec::new()
            }) {
                assert!(seen.insert(number.clone()), "{number} came twice");
            }
        }
        returned += held.close().await.unwrap_or(0);
    }
    println!(
        "lost answers: {calls} calls, {failed} failed, {} numbers, up to {lost} answers lost, {returned} returned",
        seen.len()
    );
}
