//! Prefetching with the Rust client, against server processes.

use std::collections::BTreeSet;

use bates_client::{CloseError, Error, Prefetch, TakeError};

use super::super::client::proxy::Proxy;
use super::super::documents::Home;
use super::{Stage, builder, until};

/// The client renders the same text as the server.
#[tokio::test]
async fn prefetched_numbers_read_like_those_of_the_server() {
    let stage = Stage::on(Home::folder());
    let client = stage.client();
    let scope = [("project", "PROJ"), ("type", "9012")];
    let document = client.series("document").scope(scope);
    let held = document.prefetch(10);
    assert_eq!(held.take(3).await.unwrap(), ["PROJ-9012-1001", "PROJ-9012-1002", "PROJ-9012-1003"]);
    let next: u64 = document.next().await.unwrap()[10..].parse().unwrap();
    assert_eq!(next - 1_004, held.cached(), "other callers do not get prefetched numbers");
    let conversation = client.series("conversation").scope([("conversation", "7")]).prefetch(10);
    assert_eq!(conversation.take(2).await.unwrap(), ["1", "2"], "a parameter that the number does not show");
    let dated = client.series("daily").date("2026-12-31".parse().unwrap()).prefetch(10);
    assert_eq!(dated.take(2).await.unwrap(), ["20261231-1", "20261231-2"]);
    for series in ["short", "farmer", "plain", "daily", "fiscal"] {
        let series = client.series(series);
        let held = series.prefetch(30);
        for number in held.take(100).await.unwrap() {
            let verdict = series.validate(&number).await.unwrap();
            assert!(verdict.valid, "{number:?}");
        }
    }
}

#[tokio::test]
async fn prefetching_from_an_ordered_gapless_or_unknown_series_is_an_error() {
    let stage = Stage::on(Home::folder());
    for series in ["queue", "bill", "nothing"] {
        let held = stage.client().series(series).prefetch(10);
        let Err(TakeError::Failed(error)) = held.next().await else { panic!("{series} gave a number") };
        let code = if series == "nothing" { "unknown_series" } else { "not_unique" };
        assert_eq!(error.code(), Some(code), "{error}");
    }
}

/// Every position of the scope is either taken once or a gap.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_prefetch_and_take_account_for_every_number_of_a_series() {
    for home in [Home::folder(), Home::postgres()] {
        let stage = Stage::on(home);
        let mut tasks = Vec::new();
        for size in [1_u64, 7, 100, 1_000] {
            let series = stage.client().series("ticket");
            tasks.push(tokio::spawn(async move {
                let held = series.prefetch(size);
                let (mut taken, clone) = (Vec::new(), held.clone());
                for count in 0..300 {
                    taken.push(clone.next().await.unwrap().to_string());
                    taken.extend(held.take(count % 7).await.unwrap().iter().map(ToString::to_string));
                    if count % 10 == 0 {
                        taken.push(series.next().await.unwrap().into());
                    }
                }
                taken
            }));
        }
        let mut all = Vec::new();
        for task in tasks {
            all.extend(task.await.unwrap());
        }
        let taken: BTreeSet<u64> = all.iter().map(|number| number[2..].parse().unwrap()).collect();
        assert_eq!(taken.len(), all.len(), "each number is taken once");
        until(|| stage.held().is_empty()).await;
        let gaps = stage.gaps("ticket");
        assert!(gaps.values().all(|reason| reason == "lease_lost"), "{gaps:?}");
        assert!(gaps.keys().all(|position| !taken.contains(position)), "no taken number is a gap");
        let last = taken.iter().chain(gaps.keys()).max().unwrap();
        let lost: Vec<u64> = (1..=*last).filter(|at| !taken.contains(at) && !gaps.contains_key(at)).collect();
        assert_eq!(lost, [0_u64; 0], "positions that are neither taken nor gaps");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_million_numbers_need_only_a_few_requests() {
    let stage = Stage::on(Home::folder());
    let proxy = Proxy::start(stage.server.http, []);
    let held = proxy.client().series("ticket").prefetch(Prefetch::new(100).at_most(1_000_000));
    let mut taken = vec![false; 4_000_000];
    for _ in 0..1_000_000 {
        let number = match held.try_next() {
            Ok(number) => number,
            Err(_) => held.next().await.unwrap(),
        };
        let seen = &mut taken[usize::try_from(number.position().value()).unwrap()];
        assert!(!std::mem::replace(seen, true), "{number} came twice");
    }
    let calls = proxy.seen();
    let in_flight = calls.len() as u64 - held.leases();
    assert!(in_flight <= 1, "{in_flight} requests at the same time");
    assert!(calls.len() < 50 && calls.iter().all(|call| call.ends_with("/lease")), "{calls:?}");
    let left = held.cached();
    assert!(left > 0 && held.close().await.unwrap() >= left);
}

#[tokio::test]
async fn the_first_call_reports_a_wrong_secret() {
    let home = Home::folder();
    let server = home.start_with(super::SERIES, &[("BATES_SECRET", "sesame")]);
    let series = |secret: &str| builder(server.http).secret(secret).build().unwrap().series("ticket");
    let held = series("wrong").prefetch(10);
    let Err(TakeError::Failed(error)) = held.next().await else { panic!("a number without a valid secret") };
    assert!(matches!(&*error, Error::Refused { status: 401, .. }), "{error}");
    assert_eq!(series("sesame").prefetch(10).next().await.unwrap().position().value(), 1);
}

/// A lease with a list of numbers may span several ranges, with numbers of other callers between them.
#[tokio::test]
async fn a_return_contains_only_numbers_of_the_lease() {
    for home in [Home::folder(), Home::postgres()] {
        let stage = Stage::on(home);
        let series = stage.client().series("plain");
        let first: u64 = series.next().await.unwrap().parse().unwrap();
        let mut reserved = BTreeSet::new();
        for _ in 0..3 {
            let (status, number) = stage.ask("POST", "/v1/series/plain/reservations", "");
            assert_eq!(status, 201, "{number}");
            reserved.insert(number["id"].as_str().unwrap().parse::<u64>().unwrap());
        }
        let held = series.prefetch(Prefetch::from(600));
        let taken: u64 = held.next().await.unwrap().to_string().parse().unwrap();
        assert!(taken > first);
        let (_, leases) = stage.ask("GET", "/v1/leases", "");
        assert!(
            leases["leases"][0]["ranges"].as_array().unwrap().len() > 1,
            "the lease has several ranges: {leases}"
        );
        held.close().await.unwrap();
        assert!(stage.held().is_empty(), "the lease has ended");
        let gaps = stage.gaps("plain");
        assert!(gaps.len() > 100 && gaps.values().all(|reason| reason == "lease_lost"), "{gaps:?}");
        assert!(!gaps.contains_key(&taken) && reserved.iter().all(|number| !gaps.contains_key(number)));
    }
}

/// A range also spans positions that the rules reject; they are not gaps.
#[tokio::test]
async fn a_return_counts_numbers_and_not_rejected_positions() {
    for home in [Home::folder(), Home::postgres()] {
        let stage = Stage::on(home);
        for series in ["plain", "dated"] {
            let held = stage.client().series(series).prefetch(Prefetch::from(600));
            held.next().await.unwrap();
            let unused = held.cached();
            assert_eq!(held.close().await.unwrap(), unused);
            assert_eq!(stage.gaps(series).len() as u64, unused, "{series}");
            let lease = stage.post(&format!("/v1/series/{series}/lease"), "{\"count\":300}");
            let numbers: Vec<u64> = lease["numbers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|number| number["position"].as_u64().unwrap())
                .collect();
            assert_eq!(numbers.len(), 300);
            let path = format!("/v1/leases/{}/return", lease["lease"].as_str().unwrap());
            let returned = stage.post(&path, &serde_json::json!({"unused": lease["ranges"]}).to_string());
            assert_eq!(returned["gaps"], 300, "{series}");
            let gaps = stage.gaps(series);
            assert_eq!(gaps.len() as u64, unused + 300, "{series}");
            assert!(numbers.iter().all(|position| gaps.contains_key(position)), "{series}");
        }
    }
}

#[tokio::test]
async fn closing_reports_a_refused_return_with_its_code() {
    let stage = Stage::on(Home::postgres());
    let held = stage.client().series("ticket").prefetch(10);
    held.next().await.unwrap();
    // Now the client returns more than the server thinks it holds.
    stage.home.query("UPDATE bates.client_lease SET last = last - 1");
    let CloseError::Failed { numbers: 9, error } = held.close().await.unwrap_err() else {
        panic!("the server must refuse it")
    };
    assert!(matches!(*error, Error::Refused { status: 422, .. }), "{error:?}");
    assert_eq!((error.code(), error.is_retryable(), error.may_burn()), (Some("not_of_lease"), false, false));
    assert_eq!(stage.held().len(), 1, "the lease is still open");
}
