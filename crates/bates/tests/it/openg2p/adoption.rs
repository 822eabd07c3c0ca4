//! From an id-generator to Bates on the same database: Bates never issues an ID that the id-generator issued.

use std::collections::HashSet;
use std::fmt::Write as _;

use bates_testkit::PrivatePostgres;

use super::{Setting, batch, query};
use crate::running::Server;

const TYPES: &str = "{ farmer: {id_length: 6}, household: {id_length: 8} }";

/// IDs from another installation with another key.
fn ids_of_another_installation(id_type: &str, count: u64) -> Vec<String> {
    let setting = Setting::with(TYPES);
    let server = setting.serve(&[]);
    let ids = batch(&server, id_type, count);
    assert_eq!(ids.len() as u64, count);
    ids
}

/// Creates a table as the id-generator does.
fn create_pool_table(postgres: &PrivatePostgres, id_type: &str, taken: &[String], available: &[String]) {
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

fn printed(output: &std::process::Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn a_hundred_thousand_adopted_ids_are_never_issued_again() {
    let postgres = PrivatePostgres::start().unwrap();
    let farmers = ids_of_another_installation("farmer", 12_000);
    let (farmers, available) = farmers.split_at(10_000);
    let households = ids_of_another_installation("household", 100_000);
    create_pool_table(&postgres, "farmer", farmers, available);
    create_pool_table(&postgres, "household", &households, &[]);
    let setting = Setting::with(TYPES);
    let refused = setting.node(&postgres).err().expect("the server refuses before the adoption");
    assert!(refused.contains("id_pool_farmer") && refused.contains("bates adopt --openg2p"), "{refused}");
    let adopted = setting.run(&postgres, &["adopt", "--openg2p"]);
    let output = printed(&adopted);
    assert!(adopted.status.success(), "{output}");
    assert!(output.contains("farmer: 10,000 numbers in 1 scope adopted"), "{output}");
    assert!(output.contains("household: 100,000 numbers in 1 scope adopted"), "{output}");
    let node = setting.node(&postgres).unwrap();
    let taken: HashSet<&String> = households.iter().collect();
    let fresh = batch(&node, "household", 100_000);
    assert_eq!(fresh.iter().filter(|id| taken.contains(id)).count(), 0);
    // 29,593 IDs of six digits pass the rules, and Bates issues all that were not adopted.
    let adopted_ids: HashSet<&String> = farmers.iter().collect();
    let rest = batch(&node, "farmer", 30_000);
    assert_eq!(rest.len(), 29_593 - 10_000);
    assert!(
        rest.iter().all(|id| !adopted_ids.contains(id))
            && rest.iter().collect::<HashSet<_>>().len() == rest.len()
    );
    assert!(
        available.iter().all(|id| rest.contains(id)),
        "available IDs were never issued, so Bates may issue them"
    );
    let again = setting.run(&postgres, &["adopt", "--openg2p", "--series", "household"]);
    assert!(again.status.success(), "{}", printed(&again));
}

#[test]
fn a_folder_adopts_the_tables_of_another_database() {
    let postgres = PrivatePostgres::start().unwrap();
    let farmers = ids_of_another_installation("farmer", 5_000);
    create_pool_table(&postgres, "farmer", &farmers, &[]);
    let setting = Setting::with(TYPES);
    let data = setting.folder.path().join("data");
    let mut migrate = setting.command();
    assert!(migrate.args(["migrate", "--data"]).arg(&data).output().unwrap().status.success());
    let adopt = |words: &[&str]| {
        let mut command = setting.command();
        command.args(["adopt", "--openg2p", "--data"]).arg(&data).args(setting.flags()).args(words);
        command.output().unwrap()
    };
    let refused = adopt(&[]);
    assert!(!refused.status.success() && printed(&refused).contains("--url"), "{}", printed(&refused));
    let refused = adopt(&["--url", &postgres.url(), "--series", "household"]);
    assert!(printed(&refused).contains("no table id_pool_household"), "{}", printed(&refused));
    let adopted = adopt(&["--url", &postgres.url()]);
    assert!(adopted.status.success() && printed(&adopted).contains("5,000 numbers"), "{}", printed(&adopted));
    let server: Server = setting.serve(&[]);
    let adopted_ids: HashSet<&String> = farmers.iter().collect();
    let rest = batch(&server, "farmer", 30_000);
    assert_eq!(rest.len(), 29_593 - 5_000);
    assert!(rest.iter().all(|id| !adopted_ids.contains(id)));
}

#[test]
fn ids_of_another_length_are_reported_and_nothing_is_adopted() {
    let postgres = PrivatePostgres::start().unwrap();
    create_pool_table(&postgres, "farmer", &["52".to_owned(), "5738201964".to_owned()], &[]);
    let setting = Setting::with(TYPES);
    setting.run(&postgres, &["migrate"]);
    let refused = setting.run(&postgres, &["adopt", "--openg2p"]);
    assert!(!refused.status.success());
    assert!(
        printed(&refused).contains("table id_pool_farmer has 2 texts that cannot be numbers"),
        "{}",
        printed(&refused)
    );
    assert!(setting.node(&postgres).is_ok(), "IDs that the type cannot render are never issued");
    let adopted = setting.run(&postgres, &["adopt", "--openg2p", "--skip-others"]);
    assert!(adopted.status.success(), "{}", printed(&adopted));
}

/// Even if only a part is missing: the adoption was interrupted, or the id-generator ran again.
#[test]
fn a_server_refuses_to_start_until_every_issued_id_is_adopted() {
    let postgres = PrivatePostgres::start().unwrap();
    let farmers = ids_of_another_installation("farmer", 600);
    create_pool_table(&postgres, "farmer", &farmers[..500], &farmers[500..]);
    let setting = Setting::with(TYPES);
    setting.run(&postgres, &["migrate"]);
    assert!(setting.run(&postgres, &["adopt", "--openg2p"]).status.success());
    setting.node(&postgres).unwrap().stop();
    query(&postgres, "UPDATE id_pool_farmer SET status = 'TAKEN'");
    let refused = setting.node(&postgres).err().expect("the server could issue 100 of them again");
    assert!(refused.contains("has 100 identifiers"), "{refused}");
    // The check also covers a configuration file of Bates, and a database that is not the store.
    let converted = setting.command().args(["convert", "default.yaml"]).output().unwrap();
    let file = setting.folder.path().join("converted.yaml");
    std::fs::write(&file, converted.stdout).unwrap();
    let file = file.display().to_string();
    let refused = Server::try_node(&postgres.url(), &[], &[("BATES_CONFIG", &file)]).err().unwrap();
    assert!(refused.contains("has 100 identifiers"), "{refused}");
    let mut elsewhere = setting.command();
    elsewhere
        .envs(super::database(&postgres))
        .args(["serve", "--data", "data", "--new"])
        .args(setting.flags());
    let refused = Server::run(elsewhere).err().unwrap();
    assert!(refused.contains("has 600 identifiers"), "{refused}");
    assert!(setting.run(&postgres, &["adopt", "--openg2p"]).status.success());
    setting.node(&postgres).unwrap();
}

#[test]
fn a_type_whose_last_ids_are_adopted_ends_exhausted_and_healthy() {
    let setting = Setting::with("{ few: {id_length: 3} }");
    let (data, spare) = (setting.folder.path().join("data"), setting.folder.path().join("spare"));
    setting.serve(&[]).stop();
    let copied = std::process::Command::new("cp").arg("-r").args([&data, &spare]).status();
    assert!(copied.unwrap().success());
    let server = setting.serve(&[]);
    let all = batch(&server, "few", 1_000);
    server.stop();
    // Restore the empty store with the same key, so the order is the same, and adopt the last five IDs.
    std::fs::remove_dir_all(&data).unwrap();
    std::fs::rename(&spare, &data).unwrap();
    let file = setting.folder.path().join("issued.txt");
    std::fs::write(&file, all[all.len() - 5..].join("\n")).unwrap();
    let mut adopt = setting.command();
    adopt.args(["adopt", "--series", "few", "issued.txt", "--data", "data"]).args(setting.flags());
    assert!(adopt.output().unwrap().status.success());
    let server = setting.serve(&[]);
    assert_eq!(batch(&server, "few", 1_000), all[..all.len() - 5]);
    let (status, body) = super::ask(&server, "POST", "/few/id");
    assert_eq!(status, 410, "{body}");
    let (status, body) = super::ask(&server, "GET", "/health");
    assert_eq!(status, 200, "{body}");
}
