//! From an id-generator to Bates on the same database: what was given out never comes again.

use std::collections::HashSet;
use std::fmt::Write as _;

use bates_testkit::PrivatePostgres;

use super::{Setting, batch, query};
use crate::running::Server;

const TYPES: &str = "{ farmer: {id_length: 6}, household: {id_length: 8} }";

/// Identifiers that another generator, with another key, has made.
fn made_elsewhere(id_type: &str, count: u64) -> Vec<String> {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let ids = batch(&server, id_type, count);
    assert_eq!(ids.len() as u64, count);
    ids
}

/// A table as the id-generator makes it.
fn pool(postgres: &PrivatePostgres, id_type: &str, taken: &[String], available: &[String]) {
    let mut sql = format!(
        "CREATE TABLE id_pool_{id_type} (id_value VARCHAR(32) PRIMARY KEY, status VARCHAR(16) NOT NULL DEFAULT 'AVAILABLE',
         created_at TIMESTAMPTZ NOT NULL DEFAULT now(), issued_at TIMESTAMPTZ NULL);
         COPY id_pool_{id_type} (id_value, status) FROM stdin;\n"
    );
    for (ids, status) in [(taken, "TAKEN"), (available, "AVAILABLE")] {
        for id in ids {
            let _ = writeln!(sql, "{id}\t{status}");
        }
    }
    sql.push_str("\\.\n");
    query(postgres, &sql);
}

fn said(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_hundred_thousand_identifiers_that_were_given_out_never_come_again() {
    let postgres = PrivatePostgres::start().unwrap();
    let farmers = made_elsewhere("farmer", 12_000);
    let (farmers, available) = farmers.split_at(10_000);
    let households = made_elsewhere("household", 100_000);
    pool(&postgres, "farmer", farmers, available);
    pool(&postgres, "household", &households, &[]);
    let setting = Setting::with(TYPES);
    let refused = setting.node(&postgres).err().expect("a server that issues nothing yet");
    assert!(refused.contains("id_pool_farmer") && refused.contains("bates adopt --openg2p"), "{refused}");
    let adopted = setting.run(&postgres, &["adopt", "--openg2p"]);
    let told = said(&adopted);
    assert!(adopted.status.success(), "{told}");
    assert!(told.contains("farmer: 10,000 numbers in 1 scope adopted"), "{told}");
    assert!(told.contains("household: 100,000 numbers in 1 scope adopted"), "{told}");
    let node = setting.node(&postgres).unwrap();
    let taken: HashSet<&String> = households.iter().collect();
    let fresh = batch(&node, "household", 100_000);
    assert_eq!(fresh.iter().filter(|id| taken.contains(id)).count(), 0);
    // Of six digits 29,593 keep the rules, and those that were not given out all come.
    let given: HashSet<&String> = farmers.iter().collect();
    let rest = batch(&node, "farmer", 30_000);
    assert_eq!(rest.len(), 29_593 - 10_000);
    assert!(
        rest.iter().all(|id| !given.contains(id)) && rest.iter().collect::<HashSet<_>>().len() == rest.len()
    );
    assert!(available.iter().all(|id| rest.contains(id)), "what lay ready was never given out");
    let again = setting.run(&postgres, &["adopt", "--openg2p", "--series", "household"]);
    assert!(again.status.success(), "{}", said(&again));
}

#[test]
fn tables_of_another_database_are_adopted_into_a_folder() {
    let postgres = PrivatePostgres::start().unwrap();
    let farmers = made_elsewhere("farmer", 5_000);
    pool(&postgres, "farmer", &farmers, &[]);
    let setting = Setting::with(TYPES);
    let data = setting.folder.path().join("data");
    let adopt = |words: &[&str]| {
        let mut command = setting.command();
        command.args(["adopt", "--openg2p", "--data"]).arg(&data).args(setting.flags()).args(words);
        command.output().unwrap()
    };
    let refused = adopt(&[]);
    assert!(!refused.status.success() && said(&refused).contains("--url"), "{}", said(&refused));
    let refused = adopt(&["--url", &postgres.url(), "--series", "household"]);
    assert!(said(&refused).contains("no table id_pool_household"), "{}", said(&refused));
    let adopted = adopt(&["--url", &postgres.url()]);
    assert!(adopted.status.success() && said(&adopted).contains("5,000 numbers"), "{}", said(&adopted));
    let server: Server = setting.serve(&[]);
    let given: HashSet<&String> = farmers.iter().collect();
    let rest = batch(&server, "farmer", 30_000);
    assert_eq!(rest.len(), 29_593 - 5_000);
    assert!(rest.iter().all(|id| !given.contains(id)));
}

#[test]
fn identifiers_of_another_length_are_told_and_nothing_is_adopted() {
    let postgres = PrivatePostgres::start().unwrap();
    pool(&postgres, "farmer", &["52".to_owned(), "5738201964".to_owned()], &[]);
    let setting = Setting::with(TYPES);
    setting.run(&postgres, &["migrate"]);
    let refused = setting.run(&postgres, &["adopt", "--openg2p"]);
    assert!(!refused.status.success());
    assert!(
        said(&refused).contains("2 texts in table id_pool_farmer that cannot be a number"),
        "{}",
        said(&refused)
    );
    assert!(setting.node(&postgres).is_err(), "nothing is issued before");
    let adopted = setting.run(&postgres, &["adopt", "--openg2p", "--skip-others"]);
    assert!(adopted.status.success(), "{}", said(&adopted));
}
