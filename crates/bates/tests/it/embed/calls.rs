//! Every call of the library, and what it returns.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use bates::{
    AuditFilter, AuditRecord, Bates, Channel, Date, NotCached, Position, Promise, Reset, Series, Settings,
    Verdict,
};
use bates_testkit::FakeClock;
use tempfile::tempdir;

use super::{PLAN, open};

#[tokio::test]
async fn numbers_of_a_scope_are_consecutive() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    let first = documents.next().await.unwrap();
    assert_eq!((first.as_str(), first.position().value()), ("PROJ-9012-1001", 1001));
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1002");
    let hundred = documents.take(100).await.unwrap();
    assert!(hundred.iter().map(|number| number.position().value()).eq(1003..1103));
    assert_eq!(hundred[99], "PROJ-9012-1102");
    assert_eq!(documents.take(0).await.unwrap().len(), 0);
    let other = documents.clone().scope([("project", "OTHER"), ("type", "9012")]);
    assert_eq!(String::from(other.next().await.unwrap()), "OTHER-9012-1001");
}

#[tokio::test]
async fn shuffled_numbers_come_once_and_obey_the_rejection_rules() {
    let folder = tempdir().unwrap();
    let farmer =
        || Series::new("farmer", "{seq:4}{check:verhoeff}").shuffled().reject("openg2p").restrict(["66"]);
    let bates = Bates::open(folder.path(), [farmer()]).await.unwrap();
    let farmers = bates.series("farmer").unwrap();
    let mut seen = HashSet::new();
    for count in 0..300 {
        let number = match count % 2 {
            0 => farmers.next().await.unwrap().to_string(),
            _ => farmers.take(1).await.unwrap()[0].to_string(),
        };
        assert!(farmers.validate(&number).is_valid() && !number.contains("66"), "{number}");
        assert!(seen.insert(number.clone()), "{number} came twice");
    }
    let verdict: Verdict = farmers.validate("11111");
    assert!(!verdict.is_valid() && !verdict.reasons().is_empty());
}

#[tokio::test]
async fn a_number_is_taken_without_waiting_once_it_is_in_memory() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    // Memory is empty; the failed call starts a fetch in the background.
    assert_eq!(documents.try_next(), Err(NotCached::Fetching));
    let number = loop {
        match documents.try_next() {
            Ok(number) => break number,
            Err(refused) => assert_eq!(refused, NotCached::Fetching),
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(number, "PROJ-9012-1001");
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1002");
    let unscoped = bates.series("document").unwrap();
    assert!(matches!(unscoped.try_next(), Err(NotCached::Scope(_))));
    bates.close().await.unwrap();
    assert_eq!(documents.try_next(), Err(NotCached::Stopping));
}

#[tokio::test]
async fn series_that_need_the_store_or_the_date_are_never_served_from_memory() {
    let folder = tempdir().unwrap();
    let dated = || Series::new("dated", "{date:%Y}-{seq}").reset(Reset::Yearly);
    let gapless = Series::new("gapless", "{seq}").promise(Promise::Gapless);
    let audited = Series::new("audited", "{seq}").audited();
    let bates = Bates::open(folder.path(), [dated(), gapless, audited]).await.unwrap();
    for name in ["dated", "gapless", "audited"] {
        let numbering = bates.series(name).unwrap();
        numbering.next().await.unwrap();
        assert_eq!(numbering.try_next(), Err(NotCached::Uncacheable), "{name}");
    }
    // With an explicit date the clock is not needed.
    let day = bates.series("dated").unwrap().date(Date::constant(2025, 12, 31));
    assert_eq!(day.next().await.unwrap(), "2025-1");
    assert_eq!(day.try_next().unwrap(), "2025-2");
    assert_eq!(day.date(Date::constant(2024, 12, 31)).next().await.unwrap(), "2024-1");
}

#[tokio::test]
async fn an_ordered_scope_with_reservations_is_no_longer_served_from_memory() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let messages = bates.series("conversation").unwrap().scope([("conversation", "abc")]);
    assert_eq!(messages.next().await.unwrap(), "1");
    assert_eq!(messages.try_next().unwrap(), "2");
    let reserved = messages.reserve(Duration::from_mins(1)).await.unwrap();
    assert!(reserved.position.value() > 2, "{reserved:?}");
    assert_eq!(messages.try_next(), Err(NotCached::Uncacheable));
    assert!(messages.next().await.unwrap().position() > reserved.position);
}

#[tokio::test]
async fn the_date_comes_from_the_clock_in_the_time_zone_of_the_series() {
    let folder = tempdir().unwrap();
    let clock = Arc::new(FakeClock::at("2026-12-31T23:30:00Z"));
    let invoice =
        Series::new("invoice", "INV-{date:%Y}-{seq:4}").reset(Reset::Yearly).time_zone("Europe/Berlin");
    let utc = Series::new("utc", "{date:%Y}-{seq:4}").reset(Reset::Yearly);
    let settings = Settings { clock: clock.clone(), ..Settings::default() };
    let bates = Bates::open_with(folder.path(), [invoice, utc], settings).await.unwrap();
    assert_eq!(bates.series("invoice").unwrap().next().await.unwrap(), "INV-2027-0001");
    let utc = bates.series("utc").unwrap();
    assert_eq!(utc.next().await.unwrap(), "2026-0001");
    clock.set("2027-01-01T00:30:00Z");
    assert_eq!(utc.next().await.unwrap(), "2027-0001");
    assert_eq!(utc.date(Date::constant(2026, 6, 1)).next().await.unwrap(), "2026-0002");
}

#[tokio::test]
async fn peek_and_find_change_nothing() {
    let folder = tempdir().unwrap();
    let bates = open(folder.path()).await;
    let documents = bates.series("document").unwrap().scope(PLAN);
    assert!(!documents.peek().await.unwrap().exists);
    documents.take(3).await.unwrap();
    let peek = documents.peek().await.unwrap();
    assert_eq!((peek.last, peek.next, peek.exists), (Position::new(1003), Position::new(1004), true));
    let found = bates.find("PROJ-9012-1002").await.unwrap();
    let [found] = &found[..] else { panic!("{found:?}") };
    assert_eq!((found.position.unwrap().value(), found.granted), (1002, Some(true)));
    assert_eq!(found.entry.series().name().as_str(), "document");
    let never = documents.find("PROJ-9012-9999999").await.unwrap().unwrap();
    assert_eq!(never.granted, Some(false));
    assert!(documents.find("nonsense").await.unwrap().is_none());
    assert_eq!(documents.next().await.unwrap(), "PROJ-9012-1004");
}

#[tokio::test]
async fn numbers_of_an_audited_series_are_recorded_with_their_caller() {
    let folder = tempdir().unwrap();
    let bates = Bates::open(folder.path(), [Series::new("farmer", "{seq}").audited()]).await.unwrap();
    let farmers = bates.series("farmer").unwrap().caller("registry");
    farmers.next().await.unwrap();
    farmers.take(9).await.unwrap();
    let mut records: Vec<AuditRecord> = Vec::new();
    while let [record] = &bates.records(AuditFilter::default(), records.last(), 1).await.unwrap()[..] {
        records.push(record.clone());
    }
    let ranges: Vec<_> = records.iter().map(|record| (&*record.first, &*record.last, record.count)).collect();
    assert_eq!(ranges, [("1", "1", 1), ("2", "10", 9)]);
    assert!(
        records
            .iter()
            .all(|record| &*record.stamp.caller == "registry" && record.stamp.channel == Channel::Library)
    );
}
