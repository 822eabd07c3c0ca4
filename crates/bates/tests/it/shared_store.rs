//! Commands on a store in PostgreSQL: creating its tables, raising cursors, moving it, and never showing a password.

use std::collections::HashSet;
use std::process::{Command, Output};

use bates_testkit::PrivatePostgres;

use super::cluster::Cluster;
use super::running::Server;

fn bates(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env_remove("PGPASSWORD").env("BATES_STORE", store).args(arguments).output().unwrap()
}

/// Standard output and standard error.
fn text_of(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn migrate_shows_and_creates_the_tables_that_serving_needs() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    let plan = text_of(&bates(&url, &["migrate", "--plan"]));
    assert!(plan.contains("CREATE TABLE bates.cursor") && plan.ends_with("COMMIT;\n"), "{plan}");
    let refused = Server::try_node(&url, &[], &[]).err().unwrap();
    assert!(refused.contains("holds no Bates store"), "--plan creates no tables: {refused}");
    assert!(text_of(&bates(&url, &["migrate"])).contains("made the store"));
    assert!(text_of(&bates(&url, &["migrate"])).contains("up to date:"));
    assert_eq!(text_of(&bates(&url, &["migrate", "--plan"])), "");
    let node = Server::try_node(&url, &[], &[]).unwrap();
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "1");
    let checked = text_of(&bates(&url, &["check"]));
    assert!(checked.contains(&url) && checked.contains("skips nothing"), "{checked}");
    let folder = text_of(&bates("sqlite:nowhere", &["migrate", "--plan"]));
    assert!(folder.contains("--plan is for PostgreSQL"), "{folder}");
}

#[test]
fn floor_all_raises_every_cursor_of_a_stopped_database_and_nodes_go_on() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    let node = Server::node(&url);
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "1");
    let all = ["floor", "--all", "--by", "5000"];
    let refused = text_of(&bates(&url, &all));
    assert!(refused.contains("issues numbers: --all is for a store that stopped"), "{refused}");
    let stop = "UPDATE bates.store SET timeline = 7";
    let psql = bates_testkit::programs::find("psql").unwrap();
    assert!(Command::new(psql).args(["--quiet", "--command", stop, &url]).status().unwrap().success());
    assert!(node.redis_cli(&["INCR", "counter:a"]).contains("store_poisoned"));
    let plan = text_of(&bates(&url, &[&all[..], &["--dry-run"]].concat()));
    assert!(plan.contains("nothing was changed"), "{plan}");
    assert!(Server::try_node(&url, &[], &[]).err().unwrap().contains("timeline 7"), "a plan accepts nothing");
    let raised = text_of(&bates(&url, &all));
    assert!(raised.contains("raised 1 cursor by 5,000") && raised.contains("nodes issue again"), "{raised}");
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "5002", "the node goes on by itself");
    assert_eq!(node.redis_cli(&["INCR", "counter:new"]), "5001", "a scope that the store did not know");
}

#[test]
fn floor_raises_a_cursor_while_nodes_run_and_accepts_another_timeline() {
    let postgres = PrivatePostgres::start().unwrap();
    let url = postgres.url();
    let node = Server::node(&url);
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "1");
    let raised = text_of(&bates(&url, &["floor", "counter", "name=a", "500"]));
    assert!(raised.contains("raised from 2 to 500"), "{raised}");
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "500");
    let stop = "UPDATE bates.store SET timeline = 7";
    let psql = bates_testkit::programs::find("psql").unwrap();
    assert!(Command::new(psql).args(["--quiet", "--command", stop, &url]).status().unwrap().success());
    let refused = node.redis_cli(&["INCR", "counter:a"]);
    assert!(refused.contains("store_poisoned") && refused.contains("--accept-timeline"), "{refused}");
    assert!(Server::try_node(&url, &[], &[]).err().unwrap().contains("timeline 7"));
    assert!(text_of(&bates(&url, &["floor", "counter", "name=a", "900"])).contains("raised from 501 to 900"));
    let accepted = text_of(&bates(&url, &["floor", "--accept-timeline"]));
    assert!(accepted.contains("timeline 1 is accepted"), "{accepted}");
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "900", "the node goes on by itself");
}

#[test]
fn commands_never_show_a_password_wherever_it_comes_from() {
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
            assert!(!text_of(&output).contains("hunter2"), "{command}: {}", text_of(&output));
            assert!(command == "check" || !output.status.success());
            let is_away = command != "check" && store.ends_with("127.0.0.1:1/numbers");
            let is_wrong_call = text_of(&output).contains("already holds a password");
            assert!(!is_away || is_wrong_call || output.status.code() == Some(3), "{}", text_of(&output));
        }
    }
    let both = Command::new(env!("CARGO_BIN_EXE_bates"))
        .envs([("BATES_STORE", with), ("BATES_STORE_PASSWORD_FILE", file)])
        .arg("check")
        .output()
        .unwrap();
    assert!(
        text_of(&both).contains("already holds a password: remove it, or remove store_password_file"),
        "{}",
        text_of(&both)
    );
}

#[test]
fn an_installation_moves_to_postgres_and_back_and_numbering_continues() {
    let (folder, postgres) = (tempfile::tempdir().unwrap(), PrivatePostgres::start().unwrap());
    let (data, back, url) = (folder.path().join("data"), folder.path().join("back"), postgres.url());
    let (from, to) = (format!("sqlite:{}", data.display()), format!("sqlite:{}", back.display()));
    let move_store = |from: &str, to: &str| text_of(&bates("", &["move-store", from, to]));
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
    let refused = move_store(&from, &url);
    assert!(refused.contains("in use by another process"), "{refused}");
    server.stop();
    let output = move_store(&from, &url);
    assert!(output.contains("moved 6 series with 3 scopes, 0 documents and 0 idempotency keys"), "{output}");
    let left =
        Server::try_start(Command::new(env!("CARGO_BIN_EXE_bates")), &data, "127.0.0.1:0").err().unwrap();
    assert!(left.contains("was left for"), "{left}");
    let node = Server::try_node(&url, &[], &[]).unwrap();
    assert_eq!(node.redis_cli(&["INCR", "counter:a"]), "101");
    assert_eq!(node.redis_cli(&["LPOP", "t"]), "T-4");
    let more = node.redis_cli(&["LPOP", "short", "50"]);
    assert!(more.lines().all(|key| !short.contains(key)), "the same permutation, further on");
    let again = move_store(&from, &url);
    assert!(again.contains("was left for"), "a second move must not overwrite later numbers: {again}");
    // A node that runs during the move stops issuing by itself.
    let output = move_store(&url, &to);
    assert!(output.contains("moved 6 series with 3 scopes, 0 documents and 0 idempotency keys"), "{output}");
    let refused = node.redis_cli(&["INCR", "counter:a"]);
    assert!(refused.contains("was left for"), "{refused}");
    node.stop();
    let server = Server::start(&back);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "102");
    assert_eq!(server.redis_cli(&["LPOP", "t"]), "T-5");
    let wrong = move_store("mysql://root:hunter2@db", &to);
    assert!(wrong.contains("the old store: expected") && !wrong.contains("hunter2"), "{wrong}");
}

/// A range in memory may lie above the floor, because an operator knows which numbers were issued but not which were
/// held.
#[test]
fn a_node_drops_its_held_ranges_when_its_database_goes_back() {
    let cluster = Cluster::start();
    let url = cluster.postgres.url();
    let (one, other) = (Server::node(&url), Server::node(&url));
    assert_eq!(one.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-1001");
    cluster.query("TRUNCATE bates.cursor, bates.held_range, bates.last_commit");
    let refused = one.redis_cli(&["LPOP", "id-pool:P:2"]);
    assert!(refused.contains("store_poisoned"), "{refused}");
    let refused = one.redis_cli(&["LPOP", "id-pool:P:1"]);
    assert!(refused.contains("store_poisoned"), "not even from memory: {refused}");
    bates(&url, &["floor", "document", "project=P", "type=1", "1002"]);
    bates(&url, &["floor", "--accept-timeline"]);
    let mut numbers: Vec<String> = Vec::new();
    for node in [&other, &one, &other, &one] {
        numbers.extend(node.redis_cli(&["LPOP", "id-pool:P:1", "40"]).lines().map(str::to_owned));
    }
    assert_eq!((numbers.len(), numbers.iter().collect::<HashSet<_>>().len()), (160, 160));
    assert!(!numbers.contains(&"P-1-1001".to_owned()), "{numbers:?}");
}
