//! Servers killed in the middle of a call, and started again on what they left.

use std::sync::mpsc::channel;

use bates_client::Document;
use serde_json::json;

use super::Stage;
use super::proxy::{Act, Proxy};

#[tokio::test(flavor = "multi_thread")]
async fn a_document_has_one_number_though_its_server_was_killed_before_it_could_tell() {
    let stage = Stage::new();
    let (told, held) = channel();
    let (go_on, waits) = channel();
    let proxy = Proxy::start(stage.server.http, [Act::Hold(told, waits)]);
    let bills = proxy.client().series("bill");
    let document = Document::new(&json!({"title": "Bill"})).unwrap();
    let assigning = tokio::spawn({
        let (bills, document) = (bills.clone(), document.clone());
        async move { bills.assign(&document).await.unwrap() }
    });
    let stage = tokio::task::spawn_blocking(move || {
        held.recv().unwrap();
        stage.killed_and_started_again()
    });
    let stage = stage.await.unwrap();
    proxy.turn_to(stage.server.http);
    go_on.send(()).unwrap();
    assert_eq!(assigning.await.unwrap().id, "B-1");
    assert_eq!(proxy.seen(), ["POST /v1/series/bill/documents"; 2]);
    assert_eq!(bills.assign(&document).await.unwrap().id, "B-1", "and ever after");
    assert_eq!(bills.assign(&Document::new(&1).unwrap()).await.unwrap().id, "B-2");
    assert_eq!(bills.reconcile().await.unwrap().gaps, 0);
    while stage.home.delivered() != ["B-1", "B-2"] {}
}
