//! Tokens that are made at run time: what they open, when they end, and that a caller gives only what it has.

use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};

use super::super::audit::{ask_as, ask_with};
use super::super::cluster::Cluster;
use super::super::http::ask;
use super::super::running::{Client, Server};
use super::{ACME, Rig};

pub(super) const SHARED: &str = "the shared secret";

fn cluster() -> Cluster {
    Cluster::start_with(&format!(
        "secret: {SHARED}\nseries:\n  ticket: {{ pattern: \"{{seq}}\", key: \"ticket:{{name}}\" }}\n"
    ))
}

pub(super) fn add(port: u16, secret: &str, name: &str, grant: &Value) -> (u16, Value) {
    ask_as(port, secret, "POST /v1/tokens", &json!({ "name": name, "grant": grant }).to_string())
}

pub(super) fn secret_of((status, answer): (u16, Value)) -> String {
    assert!(status < 300, "{answer}");
    answer["secret"].as_str().expect("a secret").to_owned()
}

fn status(port: u16, secret: &str) -> u16 {
    ask_as(port, secret, "GET /v1/series/ticket", "").0
}

fn wait_for(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

#[test]
fn a_token_opens_every_node_until_it_is_revoked_and_its_connections_end() {
    let cluster = cluster();
    let (one, two) = (cluster.node(), cluster.node());
    let secret = secret_of(add(one.http, SHARED, "mail", &json!({ "may": ["read", "take"] })));
    assert_eq!(secret.len(), "bates_".len() + 43, "256 bits: {secret}");
    assert_eq!(status(one.http, &secret), 200, "at once where it was made");
    wait_for(|| status(two.http, &secret) == 200);
    let mut clients = [&one, &two].map(|node| {
        let mut client = Client::connect(node.port).unwrap();
        assert_eq!(client.send(&["AUTH", "mail", &secret]).unwrap(), "+OK");
        assert!(client.incr("ticket:a").is_some());
        client
    });
    // What a store keeps does not open it.
    let stored = cluster.query("SELECT encode(digest, 'hex') || permissions FROM bates.token");
    assert!(!stored.contains(&secret) && stored.contains(r#"{"may":["read","take"]}"#), "{stored}");
    let answer = ask_as(two.http, SHARED, "DELETE /v1/tokens/mail", "");
    assert_eq!((answer.0, answer.1["name"].as_str()), (200, Some("mail")));
    assert_eq!(status(two.http, &secret), 401, "at once where it was revoked");
    wait_for(|| status(one.http, &secret) == 401);
    for client in &mut clients {
        assert!(
            client.incr_raw("ticket:a").unwrap().starts_with("-NOAUTH"),
            "the connection lost its caller"
        );
        assert!(client.send(&["AUTH", "mail", &secret]).unwrap().starts_with("-WRONGPASS"));
    }
}

/// Sends a pipeline, and revokes the secret before it reads the answers, so that the server has most commands before it.
fn take_until_revoked(server: &Server, count: &str) {
    const COMMANDS: usize = 400;
    let secret = secret_of(add(server.http, SHARED, "mail", &json!({ "may": ["take"] })));
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.send(&["AUTH", "mail", &secret]).unwrap(), "+OK");
    let length = count.len();
    let command = format!("*3\r\n$4\r\nLPOP\r\n$4\r\nlong\r\n${length}\r\n{count}\r\n");
    let pipeline = command.repeat(COMMANDS) + "*1\r\n$4\r\nPING\r\n";
    client.stream.get_mut().write_all(pipeline.as_bytes()).unwrap();
    assert_eq!(client.line(), Some(format!("*{count}")));
    assert_eq!(ask_as(server.http, SHARED, "DELETE /v1/tokens/mail", "").0, 200);
    let mut answered = 1;
    let refused = loop {
        match client.line().unwrap() {
            line if line.starts_with('*') => answered += 1,
            line if line.starts_with(['-', '+']) => break line,
            _ => {}
        }
    };
    assert!(refused.starts_with("-NOAUTH"), "{refused} after {answered} answers");
    assert!(answered < COMMANDS / 2, "{answered} of {COMMANDS} commands for {count} were answered");
}

#[test]
fn a_pipeline_ends_with_its_secret() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    let limits = json!({ "lease_min": 1_000_000, "lease_max": 1_000_000 });
    let body = json!({ "pattern": "{seq:60}", "key": "long", "limits": limits }).to_string();
    let created = ask_as(server.http, SHARED, "PUT /v1/series/long", &body);
    assert_eq!(created.0, 201, "{}", created.1);
    // Commands for many numbers wait for the store; the others are answered from memory.
    take_until_revoked(&server, "20000");
    take_until_revoked(&server, "1000");
}

#[test]
fn a_node_without_postgres_goes_on_with_the_tokens_that_it_knows() {
    let mut cluster = cluster();
    let node = cluster.node();
    let secret = secret_of(add(node.http, SHARED, "mail", &json!({ "may": ["read", "take"] })));
    assert_eq!(node.redis_cli(&["--no-auth-warning", "-a", &secret, "INCR", "ticket:a"]), "1");
    cluster.postgres.stop().unwrap();
    assert_eq!(node.redis_cli(&["--no-auth-warning", "-a", &secret, "INCR", "ticket:a"]), "2", "from memory");
    let (status, refused) = add(node.http, SHARED, "other", &json!({ "may": ["read"] }));
    assert_eq!((status, refused["code"].as_str()), (503, Some("store_unavailable")));
    cluster.postgres.restart().unwrap();
}

#[test]
fn a_rotation_accepts_two_secrets_and_without_overlap_only_the_new_one() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    let rotate = |overlap: u64| {
        let body = json!({ "overlap_s": overlap }).to_string();
        secret_of(ask_as(server.http, SHARED, "POST /v1/tokens/acme/rotate", &body))
    };
    let works = |secret: &str| ask_as(server.http, secret, "GET /v1/series/short", "").0 == 200;
    let first = secret_of(add(server.http, SHARED, "acme", &json!({ "may": ["read"] })));
    let second = rotate(3_600);
    assert!(works(&first) && works(&second));
    let third = rotate(3_600);
    assert!(!works(&first) && works(&second) && works(&third), "at most two at once");
    let fourth = rotate(0);
    assert!(!works(&second) && !works(&third) && works(&fourth));
    server.stop();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    assert_eq!(ask_as(server.http, &fourth, "GET /v1/series/short", "").0, 200, "the store keeps it");
}

#[test]
fn an_expired_token_is_refused() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    let body = json!({ "name": "acme", "grant": { "may": ["read"] }, "expires_in_s": 1 }).to_string();
    let secret = secret_of(ask_as(server.http, SHARED, "POST /v1/tokens", &body));
    wait_for(|| ask_as(server.http, &secret, "GET /v1/series/short", "").0 == 401);
    let (_, refused) = ask_as(server.http, &secret, "GET /v1/series/short", "");
    assert!(
        refused["detail"].as_str().unwrap().contains("may have been revoked, or have expired"),
        "{refused}"
    );
    let (status, refused) = ask_as(server.http, SHARED, "POST /v1/tokens/acme/rotate", "");
    assert!(status == 409 && refused["detail"].as_str().unwrap().contains("expired at"), "{refused}");
}

#[test]
fn a_caller_gives_at_most_the_rights_that_it_has_and_sees_only_such_tokens() {
    let rig = Rig::start();
    let add = |caller: &str, name: &str, grant: Value| {
        let body = json!({ "name": name, "grant": grant }).to_string();
        rig.ask(caller, "POST /v1/tokens", &body)
    };
    let all = json!(["read", "take", "define", "operate", "admin"]);
    for grant in [
        json!({ "may": ["read"] }),
        json!({ "may": ["read"], "series": ["other.*"] }),
        json!({ "may": ["read"], "series": ["acme.*", "other.letter"] }),
        json!({ "may": all, "series": ["acme.*"], "series_max": 101 }),
    ] {
        assert_eq!(add(ACME, "acme.more", grant.clone()).0, 403, "{grant}");
    }
    assert_eq!(
        add("admin", "admin.more", json!({ "may": ["read"], "series": ["acme.*"] })).0,
        403,
        "it cannot read"
    );
    let metered = json!({ "may": ["take"], "series": ["acme.*"], "quota": 10 });
    assert_eq!(add("metered", "metered.more", metered).0, 403, "ten tokens would have ten quotas");
    let definer = json!({ "may": ["define"], "series": ["acme.*"] });
    assert_eq!(add(ACME, "acme.more", definer).0, 403, "it would have limits of its own");
    let own = json!({ "may": ["read", "admin"], "series": ["acme.letter", "acme.a.*"], "rate": 5 });
    let secret = secret_of(add(ACME, "acme.helper", own));
    let ask = |secret: &str, request: &str| ask_with(rig.server.http, secret, "", request, "");
    assert_eq!(ask(&secret, "GET /v1/series/acme.letter").0, 200);
    assert_eq!(ask(&secret, "GET /v1/series/acme.count").0, 404);
    assert_eq!(
        add(ACME, "acme.helper", json!({ "may": ["read"], "series": ["acme.*"] })).0,
        409,
        "the name is taken"
    );
    for name in ["other", "acme", "acme2.x", "free", "mail.helper"] {
        let (status, answer) = add(ACME, name, json!({ "may": ["read"], "series": ["acme.*"] }));
        assert_eq!((status, answer["code"].as_str()), (422, Some("bad_token")), "{name}: {answer}");
    }
    let taken = add("shared", "other", json!({ "may": ["read"] }));
    assert_eq!(taken.0, 409, "a token of the file has the name");
    let (_, names) = rig.ask_text(ACME, "GET /v1/tokens", "");
    assert!(names.contains("\"acme.helper\"") && !names.contains("other"), "{names}");
    let (_, seen) = rig.ask_text("other", "GET /v1/tokens", "");
    assert!(!seen.contains("acme.helper") && !seen.contains("acme"), "{seen}");
    for request in ["DELETE /v1/tokens/acme.helper", "POST /v1/tokens/acme.helper/rotate"] {
        let (status, answer) = rig.ask("other", request, "");
        assert_eq!((status, answer["code"].as_str()), (404, Some("unknown_token")), "{answer}");
    }
    assert_eq!(rig.ask(ACME, "DELETE /v1/tokens/acme.helper", "").0, 200);
    assert_eq!(rig.ask(ACME, "DELETE /v1/tokens/other", "").0, 404, "a token of the file");
}

#[test]
fn a_server_without_a_secret_makes_no_tokens() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start(data.path());
    let body = r#"{"name":"acme","grant":{"may":["read"]}}"#;
    let (status, answer) = ask(server.http, "POST", "/v1/tokens", body);
    assert_eq!(status, 403, "{answer}");
    assert!(answer.to_string().contains("configure `secret`"), "{answer}");
}

#[test]
fn a_reservation_is_ended_only_by_the_token_that_made_it() {
    let rig = Rig::start();
    let reserve = || {
        let (status, answer) = rig.ask("take", "POST /v1/series/acme.letter/reservations", "");
        assert_eq!(status, 201, "{answer}");
        answer["token"].as_str().expect("a token").to_owned()
    };
    for action in ["confirm", "void"] {
        let token = reserve();
        let end = |caller: &str| rig.ask(caller, &format!("POST /v1/reservations/{token}/{action}"), "");
        for stranger in [ACME, "other"] {
            let (status, answer) = end(stranger);
            assert_eq!(
                (status, answer["code"].as_str()),
                (404, Some("unknown_document")),
                "{stranger}: {answer}"
            );
        }
        assert_eq!(end("take").0, 200);
        let token = reserve();
        assert_eq!(rig.ask("shared", &format!("POST /v1/reservations/{token}/{action}"), "").0, 200);
    }
}

/// What a person types.
#[test]
fn tokens_are_managed_from_the_command_line() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    let bates = |secret: &str, words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_bates"))
            .args(words)
            .args(["--url", &format!("http://127.0.0.1:{}", server.http)])
            .env("BATES_SECRET", secret)
            .output()
            .unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        (output.status.code(), text)
    };
    let add = [
        "token",
        "add",
        "acme",
        "--may",
        "read,take,define",
        "--series",
        "acme.*,short",
        "--rate",
        "5000/s",
        "--quota",
        "1000/day",
        "--scope",
        "project=A,B",
        "--expires",
        "90d",
        "--secret-only",
    ];
    let (code, secret) = bates(SHARED, &add);
    assert_eq!(code, Some(0), "{secret}");
    let secret = secret.trim();
    assert_eq!(bates(secret, &["series"]).0, Some(0));
    let (_, list) = bates(SHARED, &["token", "list"]);
    for cell in ["acme", "read,take,define", "acme.*,short", "project=A,B", "5000/s", "1000/day", "store"] {
        assert!(list.contains(cell), "{cell}: {list}");
    }
    let (code, refused) = bates(secret, &["token", "list"]);
    assert_eq!(code, Some(2), "{refused}");
    let (_, rotated) = bates(SHARED, &["token", "rotate", "acme", "--overlap", "1h"]);
    assert!(rotated.contains("is accepted until"), "{rotated}");
    let (code, _) = bates(SHARED, &["token", "revoke", "acme"]);
    assert_eq!((code, bates(secret, &["series"]).0), (Some(0), Some(2)));
    let (code, missing) = bates(SHARED, &["token", "revoke", "acme"]);
    assert!(code == Some(1) && missing.contains("unknown_token"), "{missing}");
}

#[test]
fn a_child_of_an_expiring_token_expires_with_it() {
    let data = tempfile::tempdir().unwrap();
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_SECRET", SHARED)]);
    let add = |secret: &str, name: &str, expires: Value| {
        let grant = json!({ "may": ["read", "admin"], "series": ["acme.*"] });
        let body = json!({ "name": name, "grant": grant, "expires_in_s": expires }).to_string();
        ask_as(server.http, secret, "POST /v1/tokens", &body)
    };
    let parent = add(SHARED, "acme", json!(1_000));
    let (expires, secret) = (parent.1["expires"].clone(), secret_of(parent));
    for (name, wanted) in [("acme.a", Value::Null), ("acme.b", json!(100_000))] {
        assert_eq!(add(&secret, name, wanted).1["expires"], expires, "{name}");
    }
    let (_, own) = ask_as(server.http, &secret, "GET /v1/tokens", "");
    assert_eq!(own["tokens"].as_array().map(Vec::len), Some(3), "{own}");
}

#[test]
fn a_tenant_has_a_limit_of_tokens_and_of_the_bytes_of_a_grant() {
    let rig = Rig::start();
    let add = |name: String, value: String| {
        let grant = json!({ "may": ["read"], "series": ["acme.*"], "scope": { "project": [value] } });
        let (status, answer) =
            rig.ask(ACME, "POST /v1/tokens", &json!({ "name": name, "grant": grant }).to_string());
        (status, answer["code"].as_str().unwrap_or_default().to_owned())
    };
    assert_eq!(add("acme.large".to_owned(), "x".repeat(5_000)), (422, "bad_token".to_owned()));
    for at in 0..100 {
        assert_eq!(add(format!("acme.t{at}"), "x".to_owned()).0, 201, "{at}");
    }
    assert_eq!(add("acme.more".to_owned(), "x".to_owned()), (429, "too_many_tokens".to_owned()));
}

#[test]
fn a_tenant_changes_things_only_so_often() {
    let rig = Rig::start();
    let change = || rig.ask(ACME, "PATCH /v1/series/acme.missing", "{}");
    let first = (0..1_000).find(|_| change().0 == 429).unwrap();
    assert!((299..=330).contains(&first), "{first} changes at once");
    assert_eq!(change().1["code"].as_str(), Some("rate_exceeded"));
    assert_eq!(rig.ask(ACME, "GET /v1/series/acme.letter", "").0, 200, "looking is free");
    assert_eq!(rig.ask("other", "PATCH /v1/series/other.missing", "{}").0, 404, "another tenant goes on");
}

#[test]
fn a_token_that_is_limited_to_scopes_defines_nothing() {
    let rig = Rig::start();
    let grant = json!({ "may": ["read", "define"], "scope": { "project": ["P1"] } });
    let body = json!({ "name": "scoped", "grant": grant }).to_string();
    let secret = secret_of(rig.ask("shared", "POST /v1/tokens", &body));
    assert_eq!(rig.ask("shared", "PUT /v1/series/plain", r#"{"pattern":"{project}-{seq}"}"#).0, 201);
    for (request, body) in [
        ("PATCH /v1/series/plain", r#"{"limits":{"scopes_max":1}}"#),
        ("PUT /v1/series/fresh", r#"{"pattern":"{seq}"}"#),
        ("DELETE /v1/series/plain", ""),
    ] {
        assert_eq!(ask_as(rig.server.http, &secret, request, body).0, 403, "{request}");
    }
}
