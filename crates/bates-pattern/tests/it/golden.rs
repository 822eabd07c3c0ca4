//! Freezes the mapping from position to text: a changed algorithm would issue old identifiers again.
//!
//! Rows are only added. If a row fails, never change the row: fix the code, or add a new `Construction`.

use bates_pattern::{Construction, Date, Key, Options, Order, Pattern, Reject};

use super::position;

const V1: &str = include_str!("../golden/v1.tsv");

struct Row<'r> {
    pattern: Pattern,
    parameters: Vec<(&'r str, &'r str)>,
    date: Option<Date>,
    position: u64,
    number: &'r str,
}

fn read(row: &str) -> Row<'_> {
    let columns: Vec<&str> = row.split('\t').collect();
    let [template, key, reset, reject, parameters, date, at, number] = columns.try_into().unwrap();
    let mut options =
        Options { construction: Construction::V1, reset: reset.parse().unwrap(), ..Options::default() };
    if !key.is_empty() {
        options.order = Order::Shuffled(key.parse::<Key>().unwrap());
    }
    if !reject.is_empty() {
        options.reject = Reject::default().with_digits(reject.parse().unwrap());
    }
    Row {
        pattern: Pattern::compile(template, options).unwrap_or_else(|error| panic!("{template}: {error}")),
        parameters: parameters.split(' ').filter_map(|pair| pair.split_once('=')).collect(),
        date: (!date.is_empty()).then(|| date.parse().unwrap()),
        position: at.parse().unwrap(),
        number,
    }
}

#[test]
fn construction_1_renders_and_parses_its_golden_rows() {
    let rows = V1.lines().filter(|row| !row.starts_with('#'));
    let mut count = 0;
    for row in rows {
        let Row { pattern, parameters, date, position: at, number } = read(row);
        let scope = pattern.scope(parameters, date).unwrap();
        assert_eq!(scope.number(position(at)).as_deref(), Ok(number), "{row}");
        assert_eq!(pattern.parse(number).unwrap().position(), position(at), "{row}");
        count += 1;
    }
    assert_eq!(count, 248, "rows are only added");
}

#[test]
fn construction_1_has_number_1() {
    assert_eq!(Construction::V1.number(), 1);
    assert_eq!(Construction::from_number(1), Some(Construction::V1));
    assert_eq!(Construction::from_number(2), None);
    assert_eq!(Construction::default(), Construction::V1);
}
