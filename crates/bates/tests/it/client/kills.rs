//! Servers killed in the middle of a call, and restarted on the same store.

use std::sync::mpsc::channel;

use bates_client::Document;
use serde_json::json;

use super::Stage;
use super::proxy::{Action, Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_keeps_its_number_when_the_server_is_killed_before_the_client_hears_it() {
    let stage = Stage::new();
    let (answered, was_answered) = channel();
    let (go_on, may_go_on) = channel();
    let proxy = Proxy::start(stage.server.http, [Action::Hold(answered, may_go_on)]);
    let bills = proxy.client().series("bill");
    let document = Document::new(&json!({"title": "Bill"})).unwrap();
    let assigning = tokio::spawn({
        let (bills, document) = (bills.clone(), document.clone());
        async move { bills.assign(&document).await.unwrap() }
    });
    let stage = tokio::task::spawn_blocking(move || {
        was_answered.recv().unwrap();
        stage.killed_and_started_again()
    });
    let stage = stage.await.unwrap();
    proxy.set_target(stage.server.http);
    go_on.send(()).unwrap();
    assert_eq!(assigning.await.unwrap().id, "B-1");
    assert_eq!(proxy.seen(), ["POST /v1/series/bill/documents"; 2]);
    assert_eq!(bills.assign(&document).await.unwrap().id, "B-1", "also in later calls");
    assert_eq!(bills.assign(&Document::new(&1).unwrap()).await.unwrap().id, "B-2");
    assert_eq!(bills.reconcile().await.unwrap().gaps, 0);
    while stage.home.delivered() != ["B-1", "B-2"] {}
}
