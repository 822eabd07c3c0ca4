//! Secrets and refusals: by the client before it sends anything, or by the server with an error code.

use std::time::Duration;

use bates_client::{Document, Error};

use super::{Stage, builder};

#[tokio::test]
async fn only_clients_with_a_valid_secret_get_numbers() {
    let tokens = [("BATES_SECRET", "open sesame"), ("BATES_TOKENS__CLINIC__SECRET", "open clinic")];
    let stage = Stage::with(&[tokens[0], tokens[1], ("BATES_TOKENS__CLINIC__MAY", "read,take")]);
    let client = |secret: &str| builder(stage.server.http).secret(secret).build().unwrap();
    for (_, secret) in tokens {
        client(secret).series("ticket").next().await.unwrap();
    }
    for refused in [client("wrong"), client("open"), stage.client()] {
        let error = refused.series("ticket").next().await.unwrap_err();
        assert!(matches!(error, Error::Refused { status: 401, .. }), "{error:?}");
        assert_eq!((error.code(), error.may_burn()), (Some("unauthorized"), false));
        assert!(!format!("{error} {error:?} {refused:?}").contains("wrong"));
    }
    assert_eq!(
        client("open sesame").series("ticket").next().await.unwrap(),
        "T-3",
        "a refused request takes no number"
    );
}

#[tokio::test]
async fn an_error_of_the_server_keeps_its_code() {
    let stage = Stage::new();
    let (client, plans) = (stage.client(), stage.client().series("document"));
    let document = Document::new(&1).unwrap();
    let scoped = |value: &str| plans.clone().scope([("project", value), ("type", "1")]);
    for (error, code) in [
        (plans.next().await.unwrap_err(), "bad_scope"),
        (scoped("a b").next().await.unwrap_err(), "bad_scope"),
        (client.series("unknown").next().await.unwrap_err(), "unknown_series"),
        (client.series("No/body").next().await.unwrap_err(), "bad_name"),
        (client.series("ticket").assign(&document).await.unwrap_err(), "no_sink"),
        (client.series("bill").reserve(Duration::ZERO).await.unwrap_err(), "bad_count"),
        (client.document("B-77").await.unwrap_err(), "unknown_document"),
        (client.gaps().page(0).next_page().await.unwrap_err(), "bad_count"),
        (client.outbox().state("lost").next_page().await.unwrap_err(), "bad_arguments"),
    ] {
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(!error.is_retryable() && !error.may_burn(), "{error}");
    }
}

#[tokio::test]
async fn a_bad_argument_is_refused_before_anything_is_sent() {
    // No server listens on this port, so a request that is sent fails with another error.
    let client = builder(1).attempts(1).build().unwrap();
    let bills = client.series("bill");
    let document = || Document::new(&1).unwrap();
    let mut wrong = Vec::new();
    for key in [String::new(), "x".repeat(256), "ä".to_owned(), "a\nb".to_owned()] {
        wrong.push(document().with_key(key.clone()).unwrap_err());
        wrong.push(bills.reserve_once(key, Duration::from_mins(1)).await.unwrap_err());
    }
    for id in ["", ".", ".."] {
        wrong.push(bills.validate(id).await.unwrap_err());
        wrong.push(client.find(id).await.unwrap_err());
        wrong.push(client.document(id).await.unwrap_err());
        wrong.push(client.confirm(id).await.unwrap_err());
        wrong.push(client.series(id).next().await.unwrap_err());
    }
    wrong.push(bills.reserve(Duration::from_millis(1_500)).await.unwrap_err());
    for error in wrong {
        assert!(matches!(error, Error::BadArgument { .. }), "{error}");
        assert!(!error.is_retryable() && error.code().is_none());
    }
}
