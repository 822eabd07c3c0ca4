//! Claims about chains: every record that is removed, changed or replaced is found.

use super::*;

const RECORDS: u64 = 6;

fn operation(subject: u64) -> Operation {
    Operation {
        id: Uuid::from_u128(u128::from(subject)),
        at: Timestamp::from_microsecond(1_000_000 + i64::try_from(subject).unwrap()).unwrap(),
        caller: "ops".into(),
        channel: Channel::Http,
        kind: OperationKind::FloorRaised,
        series: Some("invoice".parse().unwrap()),
        subject: Box::default(),
        before: None,
        after: None,
    }
    .on(&subject.to_string())
    .between(Some("1"), None)
}

fn chain() -> (Vec<OperationRecord>, ChainHead) {
    let mut head = ChainHead::new("host");
    ((1..=RECORDS).map(|subject| head.append(operation(subject))).collect(), head)
}

fn verify(records: &[OperationRecord], head: &ChainHead, known: &[ChainHead]) -> Vec<ChainFault> {
    verify_at(records, head, known, Timestamp::UNIX_EPOCH)
}

/// Each known head is one second old at the epoch.
fn verify_at(
    records: &[OperationRecord],
    head: &ChainHead,
    known: &[ChainHead],
    now: Timestamp,
) -> Vec<ChainFault> {
    let at = Timestamp::from_second(-1).unwrap();
    let known = known.iter().map(|head| KnownRecord { head: head.clone(), at });
    let mut verifier = ChainVerifier::new("host", known.collect(), now);
    for record in records {
        verifier.add(record);
    }
    verifier.end(head.clone()).faults
}

#[test]
fn an_untouched_chain_has_no_fault() {
    let (records, head) = chain();
    assert_eq!(verify(&records, &head, &[]), []);
    assert_eq!(verify(&[], &ChainHead::new("host"), &[]), []);
}

#[test]
fn every_removed_run_of_records_is_found() {
    let (records, head) = chain();
    for first in 0..records.len() {
        for end in first + 1..=records.len() {
            let rest = [&records[..first], &records[end..]].concat();
            assert_ne!(verify(&rest, &head, &[]), [], "without {first}..{end}");
        }
    }
}

/// Changes every field of every record, with and without a new digest.
#[test]
fn every_changed_field_is_found() {
    let (records, head) = chain();
    let changes: [fn(&mut OperationRecord); 12] = [
        |record| record.number += 100,
        |record| record.chain = "other".into(),
        |record| record.previous.0[0] ^= 1,
        |record| record.operation.id = Uuid::from_u128(99),
        |record| record.operation.at = Timestamp::UNIX_EPOCH,
        |record| record.operation.caller = "mallory".into(),
        |record| record.operation.channel = Channel::Resp,
        |record| record.operation.kind = OperationKind::TokenAdded,
        |record| record.operation.series = None,
        |record| record.operation.subject = "other".into(),
        |record| record.operation.before = None,
        |record| record.operation.after = Some(Box::default()),
    ];
    for at in 0..records.len() {
        for (field, change) in changes.iter().enumerate() {
            let mut records = records.clone();
            change(&mut records[at]);
            assert_ne!(verify(&records, &head, &[]), [], "field {field} of record {at}");
            records[at].digest = records[at].computed_digest();
            assert_ne!(verify(&records, &head, &[]), [], "field {field} of record {at}, with its digest");
        }
    }
}

/// A rewritten chain is consistent; only a digest that was kept elsewhere tells.
#[test]
fn a_rewritten_chain_is_found_by_a_head_from_earlier() {
    let (records, head) = chain();
    let known: Vec<ChainHead> = (1..=RECORDS)
        .map(|number| {
            let digest = records[usize::try_from(number).unwrap() - 1].digest;
            ChainHead { chain: "host".into(), number, digest }
        })
        .collect();
    assert_eq!(verify(&records, &head, &known), []);
    let mut rewritten = ChainHead::new("host");
    let other: Vec<_> = (2..=RECORDS).map(|subject| rewritten.append(operation(subject))).collect();
    assert_eq!(verify(&other, &rewritten, &[]), []);
    for known in known {
        assert_ne!(verify(&other, &rewritten, std::slice::from_ref(&known)), [], "{known:?}");
    }
}

#[test]
fn a_removal_is_explained_by_its_record_only() {
    let (mut records, mut head) = chain();
    for last in 1..RECORDS {
        let at = usize::try_from(last).unwrap();
        let (mut explained, mut head) = (records[at..].to_vec(), head.clone());
        explained.push(head.append_removal(&records[at - 1], operation(100)));
        assert_eq!(verify(&explained, &head, &[]), [], "up to {last}");
        assert_ne!(verify(&explained[1..], &head, &[]), [], "one more than explained");
    }
    // Of two removals, the second one counts.
    records.push(head.append_removal(&records[1], operation(100)));
    records.push(head.append_removal(&records[3], operation(101)));
    assert_eq!(verify(&records[4..], &head, &[]), []);
    assert_ne!(verify(&records[3..], &head, &[]), []);
}

/// A forged record can explain any removal; a record that is known and too young to be removed shows it.
#[test]
fn a_known_record_may_be_removed_only_once_it_is_old() {
    let (records, mut head) = chain();
    let known = ChainHead { number: 2, digest: records[1].digest, ..head.clone() };
    let mut rest = records[3..].to_vec();
    rest.push(head.append_removal(&records[2], operation(100)));
    assert_eq!(verify(&rest, &head, &[]), []);
    assert_eq!(
        verify(&rest, &head, std::slice::from_ref(&known)),
        [ChainFault::RemovedTooEarly { number: 2 }]
    );
    let later = Timestamp::UNIX_EPOCH.checked_add(RETENTION_MIN).unwrap();
    assert_eq!(verify_at(&rest, &head, &[known], later), []);
}

#[test]
fn long_texts_are_cut_and_differ_still() {
    let long = "é".repeat(TEXT_BYTES_MAX);
    let (one, other) = (excerpt(&long), excerpt(&format!("{long}x")));
    assert!(one.len() < TEXT_BYTES_MAX + 200 && one != other);
    assert_eq!(&*excerpt("a\0b"), "a\u{fffd}b");
}

#[test]
fn a_viewer_sees_its_series_and_what_it_did() {
    let viewer = OperationViewer {
        series: SeriesSet::Patterns(["acme.*".parse().unwrap()].into()),
        caller: "acme".into(),
    };
    let filter = OperationFilter { seen_by: Some(viewer), ..OperationFilter::default() };
    let of = |series: Option<&str>, caller: &str| Operation {
        series: series.map(|name| name.parse().unwrap()),
        caller: caller.into(),
        ..operation(1)
    };
    assert!(filter.matches(&of(Some("acme.invoice"), "ops")) && filter.matches(&of(None, "acme")));
    assert!(!filter.matches(&of(Some("invoice"), "ops")) && !filter.matches(&of(None, "ops")));
}
