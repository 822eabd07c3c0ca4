//! A command of an operator while the store is being moved is refused, or its effect moves with the store.

use std::time::Duration;

use bates_core::store::prelude::*;
use bates_core::{
    Actor, Channel, Definition, DescriptionChange, NamedStore, Position, Promise, PromiseChange, ScopeId,
    ScopeKey, SeriesName, SystemRuntime, mark_left,
};
use bates_postgres::{Address, OpenMode, PostgresStore, Settings};
use bates_testkit::PrivatePostgres;

const MOVER: Actor<'_> = Actor { caller: "mover", channel: Channel::Command };

fn name() -> SeriesName {
    "ticket".parse().unwrap()
}

fn scope_id() -> ScopeId {
    ScopeId { series: name(), scope: ScopeKey::new([], None).unwrap() }
}

fn definition(series: &str) -> Definition {
    Definition {
        series: series.parse().unwrap(),
        template: "{seq}".into(),
        parameters: "".into(),
        shuffled: false,
        start: 1,
        reset: "never".into(),
        time_zone: "UTC".into(),
        construction: 1,
        promise: Some(Promise::Unique),
        rules: None,
    }
}

async fn open(address: &Address) -> PostgresStore {
    // These tests make no claim about speed.
    let settings = Settings { timeout: Duration::from_mins(1), ..Settings::default() };
    PostgresStore::open(address, settings, OpenMode::New).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_was_left_refuses_floors_adoptions_promises_and_descriptions() {
    let server = PrivatePostgres::start().unwrap();
    let store = open(&Address::parse(&server.url()).unwrap()).await;
    store.pin(definition("ticket"), None).await.unwrap();
    mark_left(&SystemRuntime, MOVER, NamedStore::new(&store, "here"), "there").await.unwrap();
    let refusals = [
        store.raise_floor(scope_id(), 1_000, None).await.unwrap_err(),
        store.adopt_positions(scope_id(), vec![Position::MIN], None).await.unwrap_err(),
        store
            .change_promise(name(), PromiseChange { from: Promise::Unique, to: Promise::Gapless }, None, None)
            .await
            .unwrap_err(),
        store
            .describe(
                name(),
                DescriptionChange { after: Some("{}".into()), ..DescriptionChange::default() },
                None,
            )
            .await
            .unwrap_err(),
        store.pin(definition("other"), None).await.unwrap_err(),
        store.accept(None).await.unwrap_err(),
    ];
    for refused in refusals {
        assert!(refused.to_string().contains("was left for there"), "{refused}");
    }
    assert_eq!(store.cursor(scope_id()).await, Ok(None));
    assert_eq!(store.definitions().await.unwrap().len(), 1);
}

/// The copy begins when the mark is written, so every command answered with success must be in the store by
/// then.
#[tokio::test(flavor = "multi_thread")]
async fn a_floor_an_adoption_or_a_promise_beside_a_move_is_refused_or_moves_with_the_store() {
    let server = PrivatePostgres::start().unwrap();
    for round in 0..24 {
        let url = super::database(&server, &format!("round{round}")).await;
        let address = Address::parse(&url).unwrap();
        let (operator, mover) = (open(&address).await, open(&address).await);
        operator.pin(definition("ticket"), None).await.unwrap();
        let command = async {
            match round % 3 {
                0 => operator.raise_floor(scope_id(), 1_000, None).await.map(drop),
                1 => operator
                    .adopt_positions(scope_id(), Position::new(999).into_iter().collect(), None)
                    .await
                    .map(drop),
                _ => {
                    let change = operator.change_promise(
                        name(),
                        PromiseChange { from: Promise::Unique, to: Promise::Gapless },
                        None,
                        None,
                    );
                    change.await.map(drop)
                }
            }
        };
        let leave = async {
            // The move begins a little later each round.
            for _ in 0..round * 8 {
                tokio::task::yield_now().await;
            }
            mark_left(&SystemRuntime, MOVER, NamedStore::new(&mover, "here"), "there").await.unwrap();
            let cursor = mover.cursor(scope_id()).await.unwrap().map_or(1, |cursor| cursor.next);
            let adopted = mover.moved_adoptions(name(), None, 10).await.unwrap().len();
            let promise = mover.definitions().await.unwrap()[0].0.promise;
            cursor == 1_000 || adopted == 1 || promise == Some(Promise::Gapless)
        };
        let (answer, is_copied) = tokio::join!(command, leave);
        assert_eq!(answer.is_ok(), is_copied, "round {round}: {answer:?}");
    }
}
