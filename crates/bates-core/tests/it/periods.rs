//! Series that restart by date, in their own time zone, whatever the clock does.

use std::collections::HashSet;
use std::sync::Arc;

use bates_core::{Actor, Machine, NextError, Promise, ScopeParams, SeriesSpec};
use bates_pattern::{Date, Reset};
use bates_testkit::{FakeClock, MemoryStore};

use super::machine::spec;

type Numbering = Machine<MemoryStore>;

fn invoice() -> SeriesSpec {
    SeriesSpec {
        promise: Promise::Gapless,
        reset: Reset::Yearly,
        time_zone: "Europe/Berlin".into(),
        ..spec("invoice", "INV-{date:%Y}-{seq:5}", None)
    }
}

async fn open(specs: Vec<SeriesSpec>, clock: &Arc<FakeClock>) -> Numbering {
    Machine::open(Arc::default(), specs, clock.clone()).await.unwrap()
}

async fn one(machine: &Numbering, series: &str, date: Option<Date>) -> String {
    let entry = machine.series(series).unwrap();
    let numbers =
        machine.next(&entry, ScopeParams { parameters: &[], date }, 1, Actor::library("test")).await.unwrap();
    numbers.values().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_year_begins_at_midnight_in_the_time_zone_of_the_series() {
    let clock = Arc::new(FakeClock::at("2026-12-31T22:59:59Z"));
    let machine = open(vec![invoice()], &clock).await;
    assert_eq!(one(&machine, "invoice", None).await, "INV-2026-00001");
    clock.set("2026-12-31T23:00:00Z");
    assert_eq!(one(&machine, "invoice", None).await, "INV-2027-00001", "midnight in Berlin");
    let back_dated = Some(Date::constant(2026, 12, 31));
    assert_eq!(
        one(&machine, "invoice", back_dated).await,
        "INV-2026-00002",
        "a back-dated number comes from its own period"
    );
}

#[tokio::test]
async fn a_clock_that_jumps_repeats_no_number() {
    let clock = Arc::new(FakeClock::at("2026-06-01T12:00:00Z"));
    let daily = SeriesSpec { reset: Reset::Daily, ..spec("ticket", "{date:%Y%m%d}-{seq}", None) };
    let machine = open(vec![invoice(), daily], &clock).await;
    let mut seen = HashSet::new();
    for hours in [0, 1, -1, 8_760, -8_760, 24, -24, 1, 0] {
        let moment = "2026-06-01T12:00:00Z".parse::<jiff::Timestamp>().unwrap();
        clock.set(&(moment + jiff::SignedDuration::from_hours(hours)).to_string());
        for series in ["invoice", "ticket"] {
            let number = one(&machine, series, None).await;
            assert!(seen.insert(number.clone()), "{number} was issued twice");
        }
    }
}

#[tokio::test]
async fn a_date_that_the_pattern_cannot_show_is_refused_and_takes_nothing() {
    let clock = Arc::new(FakeClock::at("2026-06-01T12:00:00Z"));
    let short = SeriesSpec { reset: Reset::Yearly, ..spec("short-year", "{date:%y}-{seq}", None) };
    let reset = "fiscal-04-01".parse().unwrap();
    let fiscal = SeriesSpec { reset, ..spec("short-fiscal", "{period:yy-yy}/{seq}", None) };
    let machine = open(vec![short, fiscal], &clock).await;
    for (series, date) in
        [("short-year", Date::constant(2100, 1, 1)), ("short-fiscal", Date::constant(2000, 3, 31))]
    {
        let entry = machine.series(series).unwrap();
        let far = ScopeParams { parameters: &[], date: Some(date) };
        let refused = machine.next(&entry, far, 1, Actor::library("test")).await.unwrap_err();
        assert_eq!(refused.code().name(), "bad_date", "{refused}");
        assert!(matches!(refused, NextError::Scope(_)));
        assert!(machine.scopes(series.parse().unwrap(), None, 10).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn an_unknown_time_zone_is_refused() {
    let clock: Arc<FakeClock> = Arc::new(FakeClock::at("2026-06-01T12:00:00Z"));
    let store: Arc<MemoryStore> = Arc::default();
    let mars = SeriesSpec { time_zone: "Mars/Olympus".into(), ..invoice() };
    let refused = Machine::open(store, vec![mars], clock).await.err().unwrap();
    assert!(refused.to_string().contains("no time zone"), "{refused}");
}
