//! Documents and reservations: numbered once, then delivered, confirmed or voided, and included in reconciliation.

use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use bates::{
    Bates, DeliverFuture, Delivery, DocumentFilter, DocumentState, ErrorCode, GapFilter, GapReason, Promise,
    Series, Sink, Uuid,
};
use tempfile::tempdir;

use super::PLAN;
use crate::http;
use crate::running::Server;

/// A sink that sends each document to the test.
struct ChannelSink(Sender<(String, String)>);

impl Sink for ChannelSink {
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
        let answer = |delivery: &Delivery| {
            self.0.send((delivery.number.to_string(), delivery.body.to_string())).unwrap();
            Ok(())
        };
        Box::pin(async move { deliveries.iter().map(answer).collect() })
    }

    fn batch_max(&self) -> usize {
        10
    }

    fn describe(&self) -> String {
        "a test".to_owned()
    }
}

fn delivered_series() -> (Series, Receiver<(String, String)>) {
    let (sink, delivered) = mpsc::channel();
    (Series::new("document", "{project}-{type}-{seq}").start(1001).sink(ChannelSink(sink)), delivered)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_numbered_and_delivered() {
    let folder = tempdir().unwrap();
    let (series, delivered) = delivered_series();
    let bates = Bates::open(folder.path(), [series]).await.unwrap();
    let documents = bates.series("document").unwrap().scope(PLAN);
    let assigned = documents.assign(r#"{"title":"Plan"}"#).await.unwrap();
    assert_eq!((&*assigned.number, assigned.state), ("PROJ-9012-1001", DocumentState::Pending));
    let delivery = delivered.recv_timeout(Duration::from_mins(1)).unwrap();
    assert_eq!(delivery, ("PROJ-9012-1001".to_owned(), r#"{"title":"Plan"}"#.to_owned()));
    drop(documents);
    // Closing waits until the delivery is settled.
    bates.close().await.unwrap();
    let (series, delivered) = delivered_series();
    let bates = Bates::open(folder.path(), [series]).await.unwrap();
    let filter = DocumentFilter { document_id: Some(assigned.document_id), ..DocumentFilter::default() };
    let found = bates.documents(filter, None, 10).await.unwrap();
    assert_eq!(found.iter().map(|document| document.state).collect::<Vec<_>>(), [DocumentState::Delivered]);
    assert!(delivered.try_recv().is_err(), "it is not delivered again");
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_number_even_from_a_server_on_the_folder() {
    let folder = tempdir().unwrap();
    let (series, _delivered) = delivered_series();
    let bates = Bates::open(folder.path(), [series]).await.unwrap();
    let documents = bates.series("document").unwrap().scope(PLAN);
    let document = r#"{"title": "Plan", "pages": 3}"#;
    let first = documents.assign_once("order-4711", document).await.unwrap();
    let again = documents.assign_once("order-4711", r#"{"pages":3,"title":"Plan"}"#).await.unwrap();
    assert_eq!((first.is_new, again.is_new, &first.number), (true, false, &again.number));
    let reused = documents.assign_once("order-4711", r#"{"title":"Other"}"#).await.unwrap_err();
    assert_eq!((reused.code(), reused.may_burn()), (ErrorCode::KEY_REUSED, false));
    let duration = Duration::from_mins(15);
    let reserved = documents.reserve_once("order-4712", duration).await.unwrap();
    assert_eq!(documents.reserve_once("order-4712", duration).await.unwrap().number, reserved.number);
    drop(documents);
    bates.close().await.unwrap();
    let served = tempdir().unwrap();
    let sink = format!(r#"{{"object":{{"url":"file://{}"}}}}"#, served.path().display());
    let server = Server::start_with(folder.path(), "127.0.0.1:0", &[("BATES_SERIES__DOCUMENT__SINK", &sink)]);
    let document = r#"{"scope":{"type":"9012","project":"PROJ"},"document":{"title":"Plan","pages":3}}"#;
    let reservation = r#"{"scope":{"type":"9012","project":"PROJ"},"seconds":900}"#;
    for (path, key, body, number) in [
        ("documents", "order-4711", document, &first.number),
        ("reservations", "order-4712", reservation, &reserved.number),
    ] {
        let (request, head) =
            (format!("POST /v1/series/document/{path}"), format!("Idempotency-Key: {key}\r\n"));
        let (status, _, answer) = http::send(server.http, &request, &head, body);
        assert_eq!(status, 200, "{path}");
        assert!(answer.contains(&format!(r#""id":"{number}""#)), "{answer}");
    }
}

#[tokio::test]
async fn a_reservation_is_confirmed_or_voided_once() {
    let folder = tempdir().unwrap();
    let invoice = Series::new("invoice", "{seq}").promise(Promise::Gapless);
    let bates = Bates::open(folder.path(), [invoice]).await.unwrap();
    let invoices = bates.series("invoice").unwrap();
    let hour = Duration::from_hours(1);
    let (saved, lost) = (invoices.reserve(hour).await.unwrap(), invoices.reserve(hour).await.unwrap());
    assert_eq!((&*saved.number, &*lost.number), ("1", "2"));
    assert_eq!(bates.confirm(saved.document_id).await.unwrap().state, DocumentState::Confirmed);
    assert_eq!(bates.void(lost.document_id).await.unwrap().state, DocumentState::Voided);
    assert_eq!(bates.void(saved.document_id).await.unwrap_err().code(), ErrorCode::WRONG_STATE);
    assert_eq!(bates.confirm(Uuid::nil()).await.unwrap_err().code(), ErrorCode::UNKNOWN_DOCUMENT);
    assert_eq!(invoices.next().await.unwrap(), "3");
    let reconciled = bates.reconcile().await.unwrap();
    assert_eq!((reconciled.gaps, reconciled.missing), (1, 1));
    let gaps = bates.gaps(GapFilter::default(), None, 10).await.unwrap();
    let reasons: Vec<_> = gaps.iter().map(|gap| (gap.missing.range.from(), gap.missing.reason)).collect();
    assert_eq!(reasons, [(2, GapReason::Voided)]);
}

/// The library voids expired reservations as long as the folder is open.
#[tokio::test]
async fn an_expired_reservation_is_voided() {
    let folder = tempdir().unwrap();
    let bates = Bates::open(folder.path(), [Series::new("invoice", "{seq}")]).await.unwrap();
    let reserved = bates.series("invoice").unwrap().reserve(Duration::from_secs(1)).await.unwrap();
    let filter = DocumentFilter { document_id: Some(reserved.document_id), ..DocumentFilter::default() };
    while bates.documents(filter.clone(), None, 1).await.unwrap()[0].state != DocumentState::Voided {
        tokio::task::yield_now().await;
    }
    assert_eq!(bates.confirm(reserved.document_id).await.unwrap_err().code(), ErrorCode::WRONG_STATE);
}

#[tokio::test]
async fn an_invalid_document_takes_no_number() {
    let folder = tempdir().unwrap();
    let (series, _delivered) = delivered_series();
    let bates = Bates::open(folder.path(), [series, Series::new("plain", "{seq}")]).await.unwrap();
    let documents = bates.series("document").unwrap().scope(PLAN);
    let large = format!("\"{}\"", "x".repeat(1024 * 1024));
    for bad in ["", "{", "null", large.as_str()] {
        assert_eq!(documents.assign(bad).await.unwrap_err().code(), ErrorCode::BAD_DOCUMENT);
    }
    for key in ["", "é", &"k".repeat(256)] {
        assert_eq!(documents.assign_once(key, "{}").await.unwrap_err().code(), ErrorCode::BAD_ARGUMENTS);
    }
    for seconds in [0, 30 * 24 * 60 * 60 + 1] {
        let duration = Duration::from_secs(seconds);
        assert_eq!(documents.reserve(duration).await.unwrap_err().code(), ErrorCode::BAD_COUNT);
    }
    let plain = bates.series("plain").unwrap();
    assert_eq!(plain.assign("{}").await.unwrap_err().code(), ErrorCode::NO_SINK);
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1001");
}
