//! The commands on a store in PostgreSQL: making its tables, raising cursors, and that no password is ever shown.

use std::collections::HashSet;
use std::process::{Command, Output};

use bates_testkit::PrivatePostgres;

use super::cluster::Cluster;
use super::running::Server;

fn bates(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env_remove("PGPASSWORD").env("BATES_STORE", store).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn tables_are_made_once_shown_before_and_needed_to_serve() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    let plan = said(&bates(&url, &["migrate", "--plan"]));
    assert!(plan.contains("CREATE TABLE bates.cursor") && plan.ends_with("COMMIT;\n"), "{plan}");
    let refused = Server::try_node(&url, &[], &[]).err().unwrap();
    assert!(refused.contains("holds no Bates store"), "to show is not to make: {refused}");
    assert!(said(&bates(&url, &["migrate"])).contains("created the tables of"));
    assert!(said(&bates(&url, &["migrate"])).contains("is up to date"));
    assert_eq!(said(&bates(&url, &["migrate", "--plan"])), "");
    let node = Server::try_node(&url, &[], &[]).unwrap();
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "1");
    let checked = said(&bates(&url, &["check"]));
    assert!(checked.contains(&url) && checked.contains("skips nothing"), "{checked}");
    let folder = said(&bates("sqlite:nowhere", &["migrate"]));
    assert!(folder.contains("needs no migration"), "{folder}");
}

#[test]
fn a_cursor_is_raised_while_nodes_run_and_a_stopped_store_is_accepted() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    let node = Server::node(&url);
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "1");
    let raised = said(&bates(&url, &["floor", "counter", "name=a", "500"]));
    assert!(raised.contains("raised from 2 to 500"), "{raised}");
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "500");
    let stop = "UPDATE bates.store SET timeline = 7";
    let psql = bates_testkit::programs::find("psql").unwrap();
    assert!(Command::new(psql).args(["--quiet", "--command", stop, &url]).status().unwrap().success());
    let refused = node.redis_cli(&["INCR", "counter:a"]);
    assert!(refused.contains("store_poisoned") && refused.contains("--accept-timeline"), "{refused}");
    assert!(Server::try_node(&url, &[], &[]).err().unwrap().contains("timeline 7"));
    assert!(said(&bates(&url, &["floor", "counter", "name=a", "900"])).contains("raised from 501 to 900"));
    let accepted = said(&bates(&url, &["floor", "--accept-timeline"]));
    assert!(accepted.contains("timeline 1 is accepted"), "{accepted}");
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "900", "the node goes on by itself");
}

#[test]
fn a_password_comes_from_many_places_and_is_shown_in_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("password");
    std::fs::write(&file, "hunter2\n").unwrap();
    let file = file.to_str().unwrap();
    let with = "postgres://bates:hunter2@127.0.0.1:1/numbers";
    let without = "postgres://bates@127.0.0.1:1/numbers";
    for (store, variables) in [
        (with, vec![]),
        (without, vec![("PGPASSWORD", "hunter2")]),
        (without, vec![("BATES_STORE_PASSWORD_FILE", file)]),
        (with, vec![("BATES_STORE_PASSWORD_FILE", file)]),
        ("postgres://bates:hunter2@127.0.0.1:1/numbers?sslmode=none", vec![]),
        ("postgres://bates:hunter2@127.0.0.1:port/numbers", vec![]),
        ("mysql://bates:hunter2@127.0.0.1/numbers", vec![]),
    ] {
        for command in ["serve", "check", "migrate"] {
            let output = Command::new(env!("CARGO_BIN_EXE_bates"))
                .env_remove("PGPASSWORD")
                .env("BATES_STORE", store)
                .env("BATES_STORE_TIMEOUT_MS", "100")
                .envs(variables.iter().copied())
                .args([command])
                .output()
                .unwrap();
            assert!(!said(&output).contains("hunter2"), "{command}: {}", said(&output));
            assert!(command == "check" || !output.status.success());
            let is_away = command != "check" && store.ends_with("127.0.0.1:1/numbers");
            let is_wrong_call = said(&output).contains("already holds a password");
            assert!(!is_away || is_wrong_call || output.status.code() == Some(3), "{}", said(&output));
        }
    }
    let both = Command::new(env!("CARGO_BIN_EXE_bates"))
        .envs([("BATES_STORE", with), ("BATES_STORE_PASSWORD_FILE", file)])
        .arg("check")
        .output()
        .unwrap();
    assert!(
        said(&both).contains("already holds a password: remove it, or remove store_password_file"),
        "{}",
        said(&both)
    );
}

#[test]
fn an_installation_moves_to_postgres_and_back_and_numbering_goes_on() {
    let (folder, postgres) = (tempfile::tempdir().unwrap(), PrivatePostgres::start().unwrap());
    let (data, back, url) = (folder.path().join("data"), folder.path().join("back"), postgres.url());
    let (from, to) = (format!("sqlite:{}", data.display()), format!("sqlite:{}", back.display()));
    let moved = |from: &str, to: &str| said(&bates("", &["move-store", from, to]));
    let server = Server::start(&data);
    assert_eq!(server.redis_cli(&["INCRBY", "counter:a", "100"]), "100");
    let short = server.redis_cli(&["LPOP", "short", "50"]);
    super::http::ask(
        server.http,
        "PUT",
        "/v1/series/tenant",
        r#"{"pattern":"T-{seq}","promise":"gapless","key":"t"}"#,
    );
    assert_eq!(server.redis_cli(&["LPOP", "t", "3"]), "T-1\nT-2\nT-3");
    let refused = moved(&from, &url);
    assert!(refused.contains("in use by another process"), "{refused}");
    server.stop();
    let told = moved(&from, &url);
    assert!(told.contains("moved 6 series with 3 scopes, 0 documents and 0 idempotency keys"), "{told}");
    let left =
        Server::try_start(Command::new(env!("CARGO_BIN_EXE_bates")), &data, "127.0.0.1:0").err().unwrap();
    assert!(left.contains("was left for"), "{left}");
    let node = Server::try_node(&url, &[], &[]).unwrap();
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "101");
    assert_eq!(node.redis_cli(&["LPOP", "t"]), "T-4");
    let more = node.redis_cli(&["LPOP", "short", "50"]);
    assert!(more.lines().all(|key| !short.contains(key)), "the same permutation, further on");
    let again = moved(&from, &url);
    assert!(again.contains("was left for"), "what was issued since is not written over: {again}");
    // Away from PostgreSQL while a node runs: it stops issuing by itself.
    let told = moved(&url, &to);
    assert!(told.contains("moved 6 series with 3 scopes, 0 documents and 0 idempotency keys"), "{told}");
    let refused = node.redis_cli(&["INCR", "counter:a"]);
    assert!(refused.contains("was left for"), "{refused}");
    node.stop();
    let server = Server::start(&back);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "102");
    assert_eq!(server.redis_cli(&["LPOP", "t"]), "T-5");
    let wrong = moved("mysql://root:hunter2@db", &to);
    assert!(wrong.contains("the old store: expected") && !wrong.contains("hunter2"), "{wrong}");
}

/// What is held in memory may lie above the floor: an operator knows what was issued, and nobody knows what was held.
#[test]
fn a_node_whose_database_was_taken_back_drops_what_it_holds() {
    let cluster = Cluster::start();
    let url = cluster.postgres.url();
    let (one, other) = (Server::node(&url), Server::node(&url));
    assert_eq!(one.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-1001");
    cluster.query("TRUNCATE bates.cursor, bates.held_range, bates.last_commit");
    let refused = one.redis_cli(&["LPOP", "id-pool:P:2"]);
    assert!(refused.contains("store_poisoned"), "{refused}");
    let refused = one.redis_cli(&["LPOP", "id-pool:P:1"]);
    assert!(refused.contains("store_poisoned"), "nor from memory: {refused}");
    bates(&url, &["floor", "document", "project=P", "type=1", "1002"]);
    bates(&url, &["floor", "--accept-timeline"]);
    let mut numbers: Vec<String> = Vec::new();
    for node in [&other, &one, &other, &one] {
        numbers.extend(node.redis_cli(&["LPOP", "id-pool:P:1", "40"]).lines().map(str::to_owned));
    }
    assert_eq!((numbers.len(), numbers.iter().collect::<HashSet<_>>().len()), (160, 160));
    assert!(!numbers.contains(&"P-1-1001".to_owned()), "{numbers:?}");
}
