//! The commands that call a server and those that maintain its data folder, as a user types them.

use std::path::Path;
use std::process::{Command, Output};

use super::running::Server;

fn bates(folder: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    for variable in ["BATES_SECRET", "BATES_URL", "BATES_CONFIG", "BATES_STORE", "CLICOLOR_FORCE"] {
        command.env_remove(variable);
    }
    command.current_dir(folder).envs(environment.iter().copied()).args(arguments).output().unwrap()
}

/// Exit code, standard output and standard error.
fn outcome(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[test]
fn the_leases_command_lists_client_leases_across_pages() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let url = format!("http://127.0.0.1:{}", server.http);
    let ask = |arguments: &[&str]| outcome(&bates(data.path(), &[("BATES_URL", &url)], arguments));
    let lease = |series: &str, body: &str| {
        let (status, _) = super::http::ask(server.http, "POST", &format!("/v1/series/{series}/lease"), body);
        assert_eq!(status, 200);
    };
    lease("document", r#"{"scope":{"project":"PROJ","type":"9012"},"count":1500}"#);
    for _ in 0..1_001 {
        lease("short", r#"{"count":1}"#);
    }
    let (code, table, _) = ask(&["leases", "document"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!((code, rows.len(), rows[0][0]), (0, 2, "SERIES"), "{table}");
    assert_eq!(rows[1][..7], ["document", "project=PROJ", "type=9012", "1001", "2500", "1,500", "127.0.0.1"]);
    let (_, all, _) = ask(&["leases", "--json"]);
    assert_eq!(all.lines().count(), 1_002);
    let (code, _, error) = ask(&["leases", "No Name"]);
    assert!(code == 2 && error.contains("bad_name"), "{error}");
}

#[test]
fn commands_take_peek_at_and_validate_numbers() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let url = format!("http://127.0.0.1:{}", server.http);
    let ask = |arguments: &[&str]| outcome(&bates(data.path(), &[("BATES_URL", &url)], arguments));
    let next = ask(&["next", "document", "project=PROJ", "type=9012", "-n", "2"]);
    assert_eq!(next, (0, "PROJ-9012-1001\nPROJ-9012-1002\n".to_owned(), String::new()));
    let json = ask(&["next", "document", "project=PROJ", "type=9012", "--json"]);
    assert_eq!(json.1, "[\"PROJ-9012-1003\"]\n");
    let (_, lines, _) = ask(&["next", "short", "-n", "50000"]);
    assert_eq!(lines.lines().collect::<std::collections::HashSet<_>>().len(), 50_000);
    let peek = ask(&["peek", "document", "project=PROJ", "type=9012"]);
    assert_eq!(peek.1, "last  position 1003\nnext  position 1004\nleft  9,007,199,254,739,988 numbers\n");
    let (code, verdict, _) = ask(&["validate", "document", "PROJ-9012-1001", "PROJ"]);
    assert!(code == 1 && verdict.starts_with("PROJ-9012-1001  valid\nPROJ  invalid\n"), "{verdict}");
    let (_, series, _) = ask(&["series"]);
    assert!(series.contains("document      {project}-{type}-{seq}    unique   counting"), "{series}");
    for (arguments, code, text) in [
        (["next", "missing"].as_slice(), 2, "unknown_series: there is no series \"missing\""),
        (&["next", "document", "project=PROJ"], 2, "bad_scope"),
        (&["next", "document", "project"], 2, "expected NAME=VALUE"),
        (&["next", "short", "-n", "0"], 2, "0 is not in 1..=1000000"),
        (&["next", "short", "--date", "tomorrow"], 2, "YYYY-MM-DD"),
        (&["next", "short", "--url", "http://127.0.0.1:1"], 3, "is `bates serve` running there?"),
        (&["next", "../series", "a=b"], 2, "bad_name"),
        (&["next", "short", "--url", "127.0.0.1:8080"], 2, "expected one such as http://127.0.0.1:8080"),
    ] {
        let (status, out, err) = ask(arguments);
        assert!(status == code && out.is_empty() && err.contains(text), "{arguments:?}: {status} {err}");
    }
}

#[test]
fn an_exhausted_scope_prints_its_remaining_numbers_and_an_error() {
    let data = tempfile::tempdir().unwrap();
    let server =
        Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SERIES__TINY__PATTERN", "'{seq:1}'")]);
    let url = format!("http://127.0.0.1:{}", server.http);
    let ask = |arguments: &[&str]| outcome(&bates(data.path(), &[("BATES_URL", &url)], arguments));
    let (code, out, err) = ask(&["next", "tiny", "-n", "12"]);
    assert_eq!((code, &*out), (1, "1\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    assert!(err.contains("the scope is exhausted: printed 9 of 12 numbers"), "{err}");
    let (code, out, err) = ask(&["next", "tiny"]);
    assert!(code == 1 && out.is_empty() && err.contains("exhausted"), "{err}");
    assert_eq!(ask(&["peek", "tiny"]).0, 1);
}

#[test]
fn a_command_reads_its_secret_from_the_environment_and_never_prints_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", "open sesame")]);
    let url = format!("http://127.0.0.1:{}", server.http);
    let ask = |secret: &str| {
        outcome(&bates(data.path(), &[("BATES_URL", &url), ("BATES_SECRET", secret)], &["next", "short"]))
    };
    assert_eq!(ask("open sesame").0, 0);
    let (code, _, err) = ask("wrong horse");
    assert!(code == 2 && err.contains("unauthorized") && !err.contains("horse"), "{err}");
}

#[test]
fn a_stopped_store_issues_nothing_below_a_raised_floor() {
    let data = tempfile::tempdir().unwrap();
    let folder = data.path().join("data");
    let floor = |arguments: &[&str]| {
        let arguments = [&["floor", "--data", "data"], arguments].concat();
        outcome(&bates(data.path(), &[], &arguments))
    };
    let (code, _, err) = floor(&["counter", "name=a", "500"]);
    assert!(code == 2 && err.contains("holds no store") && !folder.exists(), "no folder is created: {err}");
    let server = Server::start(&folder);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "1");
    let (code, _, err) = floor(&["counter", "name=a", "500"]);
    assert!(code == 2 && err.contains("in use by another process"), "{err}");
    server.stop();
    assert_eq!(
        floor(&["counter", "name=a", "500"]).1,
        "series \"counter\" in scope name=a: raised from 2 to 500; no lower position is issued again\n"
    );
    assert_eq!(
        floor(&["counter", "name=a", "100"]).1,
        "series \"counter\" in scope name=a: stays at 500, which is not below 100\n"
    );
    assert_eq!(floor(&["document", "project=P", "type=1", "2000"]).0, 0, "the scope does not exist yet");
    for (arguments, text) in [
        (["counter", "name=a", "x"].as_slice(), "invalid position"),
        (&["counter", "500"], "it needs exactly"),
        (&["missing", "500"], "unknown series"),
        (&["short", "56800235585"], "is past 56800235583"),
    ] {
        let (code, _, err) = floor(arguments);
        assert!(code == 2 && err.contains(text), "{arguments:?}: {err}");
    }
    let server = Server::start(&folder);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "500");
    assert_eq!(server.redis_cli(&["LPOP", "id-pool:P:1"]), "P-1-2000");
}

/// Fault 12: an old copy of the folder is put back. Without a floor above them, its numbers would repeat.
#[test]
fn a_floor_prevents_repeats_after_an_old_backup_is_restored() {
    let data = tempfile::tempdir().unwrap();
    let (folder, copy) = (data.path().join("data"), data.path().join("copy"));
    let server = Server::start(&folder);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), "1");
    server.stop();
    let copy_folder = |from: &Path, to: &Path| {
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    copy_folder(&folder, &copy);
    let server = Server::start(&folder);
    let last: u64 = server.redis_cli(&["INCRBY", "counter:a", "700"]).parse().unwrap();
    server.stop();
    std::fs::remove_dir_all(&folder).unwrap();
    copy_folder(&copy, &folder);
    let floor = (last + 1).to_string();
    assert_eq!(
        outcome(&bates(data.path(), &[], &["floor", "--data", "data", "counter", "name=a", &floor])).0,
        0
    );
    let server = Server::start(&folder);
    assert_eq!(server.redis_cli(&["INCR", "counter:a"]), floor);
}

#[test]
fn init_writes_a_configuration_that_check_reads_and_variables_override() {
    let folder = tempfile::tempdir().unwrap();
    let run = |environment: &[(&str, &str)], arguments: &[&str]| {
        outcome(&bates(folder.path(), environment, arguments))
    };
    let built_in = run(&[], &["check", "--json"]);
    assert_eq!(run(&[], &["init"]).0, 0);
    assert_eq!(run(&[], &["check", "--json"]).1, built_in.1, "the file holds the defaults");
    let (code, _, err) = run(&[], &["init"]);
    assert!(code == 2 && err.contains("already exists"), "{err}");
    let overridden = run(
        &[
            ("BATES_SERIES__DOCUMENT__PROMISE", "ordered"),
            ("BATES_SERIES__DOCUMENT__LIMITS__LEASE_MAX", "64"),
            ("BATES_SERIES__INVOICE__PATTERN", "INV-{seq}"),
            ("BATES_STORE", "sqlite:bates-data"),
            ("BATES_HTTP", "off"),
            ("BATES_RESP", "localhost:7000"),
            ("BATES_SERVICE_HOST", "10.0.0.1"),
            ("BATES_HTPP", "127.0.0.1:1"),
        ],
        &["check"],
    );
    for text in [
        "document  ordered, counting from 1001",
        "80 of a busy one",
        "invoice  unique",
        "bates-data",
        "HTTP            off",
        "127.0.0.1:7000",
    ] {
        assert!(overridden.1.contains(text), "{text} is not in {}", overridden.1);
    }
    assert!(
        overridden.2.contains("unknown variable BATES_HTPP") && !overridden.2.contains("SERVICE"),
        "{}",
        overridden.2
    );
    let (code, _, err) = run(&[("BATES_SERIES__SHORT__START", "x"), ("BATES_RESP", "nowhere")], &["check"]);
    assert!(code == 2 && err.contains("2 mistakes"), "{err}");
    assert!(err.contains("BATES_SERIES__SHORT__START: series \"short\": start: invalid type"), "{err}");
    assert!(err.contains("BATES_RESP: resp: invalid address \"nowhere\""), "{err}");
}

#[test]
fn check_reports_every_mistake_in_a_file_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bates.yaml");
    let check = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let (code, _, err) = outcome(&bates(folder.path(), &[], &["check"]));
        assert_eq!(code, 2, "{text}");
        err
    };
    let err = check(
        "http: 0.0.0.0:8080\nstore: mysql://root:hunter2@db\nserie: {}\nsecret: \"\"\nseries:\n  Bad: {pattern: \"{seq}\"}\n  \
         one:\n    pattern: \"{seq\"\n    promise: uniqe\n    order: random\n  two:\n    pattern: \"{seq}\"\n    key: a:{x}\n  \
         three:\n    pattern: \"{seq}\"\n    key: a:{y}\n    limits: {lease_max: -3}\n  four:\n    pattern: \"{seq}\"\n    key: a:{z}\n",
    );
    for line in [
        "line 2: store: expected sqlite:",
        "line 3: unknown key serie: did you mean series?",
        "line 4: secret is empty",
        "line 6: \"Bad\" is no name",
        "line 8: series \"one\": template \"{seq\": column 5",
        "line 9: series \"one\": promise: \"uniqe\" is not a promise: did you mean unique?",
        "line 10: series \"one\": order: expected counting or shuffled",
        "line 17: series \"three\": limits: lease_max: invalid value",
        "line 20: series \"two\" and \"four\": their keys a:{x} and a:{z} could be the same",
    ] {
        assert!(err.contains(&format!("bates.yaml, {line}")), "{line} is not in {err}");
    }
    assert!(!err.contains("hunter2"), "a URL that may hold a password is not shown: {err}");
    assert!(check("series: [").contains("line 1"), "a YAML syntax error has a line too");
    assert!(check("- a\n").contains("expected a map"));
    assert!(check("http: 0.0.0.0:8080\n").contains("any client could take numbers"));
    assert!(check("secret: ' a'\n").contains("without spaces around it"));
    let promises = "series:\n  a: {pattern: \"{seq:4}\", order: shuffled, promise: ordered}\n  b: {pattern: \"{seq:4}\", reject: mosip, promise: gapless}\n";
    let err = check(promises);
    assert!(
        err.contains("line 2: series \"a\": promise ordered")
            && err.contains("line 3: series \"b\": promise gapless"),
        "{err}"
    );
}

#[test]
fn check_finds_every_mistake_of_a_series_and_names_the_nearest_word() {
    let folder = tempfile::tempdir().unwrap();
    let text = "stroe: sqlite:x
series:
  a: { pattern: \"{seq}\", promise: gaples, time_zone: Berlin, keyy: a, lmits: {} }
  b: { pattern: {seq} }
  c: { pattern: \"{sq:6}\" }
  d: { pattern: \"{seq}\", limits: { leas_max: 4, waiters_maxx: 3 }, start: x, order: shufled }
";
    std::fs::write(folder.path().join("bates.yaml"), text).unwrap();
    let (code, _, err) = outcome(&bates(folder.path(), &[("BATES_HTPP", "off")], &["check"]));
    assert_eq!(code, 2);
    for line in [
        "unknown variable BATES_HTPP: did you mean BATES_HTTP?",
        "11 mistakes",
        "line 1: unknown key stroe: did you mean store?",
        "line 3: series \"a\": promise: \"gaples\" is not a promise: did you mean gapless?",
        "line 3: series \"a\": \"Berlin\" is no time zone: did you mean Europe/Berlin?",
        "line 3: series \"a\": keyy: unknown field keyy: did you mean key?",
        "line 3: series \"a\": lmits: unknown field lmits: did you mean limits?",
        "line 4: series \"b\": pattern: invalid type: map, expected a string: put texts with braces in quotation",
        "line 5: series \"c\": template \"{sq:6}\": column 5",
        "(or did you mean {seq}?)",
        "line 6: series \"d\": limits: leas_max: unknown field leas_max: did you mean lease_max?",
        "line 6: series \"d\": limits: waiters_maxx: unknown field waiters_maxx: did you mean waiters_max?",
        "line 6: series \"d\": start: invalid type",
        "line 6: series \"d\": order: expected counting or shuffled",
    ] {
        assert!(err.contains(line), "{line} is not in {err}");
    }
}

#[test]
fn check_reports_mistakes_in_offered_sinks_and_pools_and_shows_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let sinks = "sinks:
  a: { object: { url: \"file:///\" } }
  b: { offered_to: [\"x*\"], object: { url: \"file:///nowhere\" } }
  c: { offered_to: [], webhook: { uri: hunter2 } }
pools:
  d: { redis: \"redis://:hunter2@127.0.0.1\", size: 10 }
  e: { offered_to: [x], redis: \"redis://:hunter2@127.0.0.1\", size: 10, key: x }
  f: { offered_to: [x], redis: \"redis://:hunter2@127.0.0.1\", size: 0 }
  g: { offered_to: [x], redis: \"http://:hunter2@127.0.0.1\", size: 10 }
  h: { offered_to: [x], redis: \"redis://127.0.0.1\", size: 10, lists_max: 0 }
series: {}
";
    std::fs::write(folder.path().join("bates.yaml"), sinks).unwrap();
    let (code, _, err) = outcome(&bates(folder.path(), &[], &["check"]));
    assert_eq!(code, 2, "{err}");
    for line in [
        "line 2: sink \"a\": expected offered_to",
        "line 3: sink \"b\": offered_to: \"x*\" names no series",
        "line 3: sink \"b\": object.url: /nowhere",
        "line 4: sink \"c\": offered_to: expected a list of at least one word",
        "line 4: sink \"c\": webhook.uri: unknown field",
        "line 6: pool \"d\": expected offered_to",
        "line 7: pool \"e\": key and scopes are for the pool of one series",
        "line 8: pool \"f\": size: expected 1 to 100,000,000",
        "line 9: pool \"g\": redis: ",
        "line 10: pool \"h\": lists_max: expected 1 to 1,000,000, not 0",
    ] {
        assert!(err.contains(&format!("bates.yaml, {line}")), "{line} is not in {err}");
    }
    assert!(!err.contains("hunter2"), "{err}");
}

#[test]
fn check_shows_who_may_do_what_and_what_series_may_name() {
    let folder = tempfile::tempdir().unwrap();
    let configuration = "tokens:
  acme: { secret: hunter2, may: [read, take], series: [\"acme.*\"], scope: { project: [P, Q] }, rate: 50/s }
  ops: { secret: hunter3, may: [operate] }
sinks:
  letters: { offered_to: [\"acme.*\", b], webhook: { url: \"https://example.com/x\", secret: whsec_aHVudGVyMmh1bnRlcjJodW50ZXIyaHVudGVyMmh1bnQ= } }
pools:
  lists: { offered_to: [\"acme.*\"], redis: \"redis://:hunter2@127.0.0.1\", size: 1000 }
series: {}
";
    std::fs::write(folder.path().join("bates.yaml"), configuration).unwrap();
    let (code, shown, err) = outcome(&bates(folder.path(), &[], &["check"]));
    assert_eq!(code, 0, "{err}");
    for line in [
        "token  acme  may read, take of acme.*, where project is P or Q, 50/s",
        "token  ops  may operate of all series",
        "sink   letters  webhook https://example.com, offered to acme.*, b",
        "pool   lists  lists on Redis at 127.0.0.1:6379, filled up to 1,000 when 250 are left",
        "when 250 are left, offered to acme.*",
    ] {
        assert!(shown.contains(line), "{line} is not in {shown}");
    }
    let (_, json, _) = outcome(&bates(folder.path(), &[], &["check", "--json"]));
    let kinds: Vec<String> = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|report| {
            ["token", "sink", "pool"].into_iter().find(|&kind| report[kind].is_string()).unwrap().into()
        })
        .collect();
    assert_eq!(kinds, ["token", "token", "sink", "pool"]);
    let all = format!("{shown}{json}");
    assert!(!all.contains("hunter") && !all.contains("aHVudGVyM"), "{all}");
}
