//! One tenant's token tries what belongs to another, and a token that is limited to some scopes tries the others.

use serde_json::{Value, json};

use super::super::audit::ask_as;
use super::super::cluster::Cluster;
use super::super::running::{Client, Server};
use super::{ACME, Rig};

const SHARED: &str = "the shared secret";

fn code(answer: &Value) -> &str {
    answer["code"].as_str().unwrap_or_default()
}

#[test]
fn a_series_of_another_tenant_is_answered_like_one_that_does_not_exist() {
    let rig = Rig::start();
    for request in [
        "GET /v1/series/NAME",
        "GET /v1/series/NAME/peek",
        "GET /v1/series/NAME/scopes",
        "GET /v1/series/NAME/validate/1",
        "GET /v1/gaps?series=NAME",
        "GET /v1/audit?series=NAME",
        "GET /v1/leases?series=NAME",
        "GET /v1/outbox?series=NAME",
        "GET /v1/pools?series=NAME",
        "POST /v1/reconcile?series=NAME",
        "POST /v1/series/NAME/next",
        "POST /v1/outbox/retry?series=NAME",
        "DELETE /v1/series/NAME",
    ] {
        let foreign = rig.ask("other", &request.replace("NAME", "acme.count"), "");
        let missing = rig.ask("other", &request.replace("NAME", "acme.missing"), "");
        let swapped = serde_json::to_string(&foreign.1).unwrap().replace("acme.count", "acme.missing");
        assert_eq!(foreign.0, missing.0, "{request}: {foreign:?} {missing:?}");
        assert_eq!(swapped, serde_json::to_string(&missing.1).unwrap(), "{request}");
    }
    for command in
        [&["INCR", "KEY"][..], &["LPOP", "KEY"], &["EXISTS", "KEY"], &["TYPE", "KEY"], &["LLEN", "KEY"]]
    {
        let answer = |key: &str| {
            let arguments: Vec<&str> =
                command.iter().map(|word| if *word == "KEY" { key } else { word }).collect();
            rig.command("other", &arguments).replace(key, "KEY")
        };
        assert_eq!(answer("acme:count"), answer("acme:missing"), "{command:?}");
    }
    assert_eq!(rig.command(ACME, &["INCR", "acme:count"]), ":1", "nothing was taken");
}

/// Whether a node learns of a series that another node has just created, when a caller asks for it. A look-up in the store
/// takes much longer than an answer from memory, so it must not depend on what other callers have.
fn looks_up(nodes: &[Server; 2], name: &str, ask: impl Fn(&Server, &str)) -> bool {
    let knows = |node: &Server, name: &str| {
        let (_, series) = ask_as(node.http, SHARED, "GET /v1/series?limit=1000", "");
        series["series"].as_array().expect("a list").iter().any(|series| series["name"] == name)
    };
    // Nodes synchronize each second: if that happens in between, try again.
    (0..20).all(|attempt| {
        let name = format!("{name}_{attempt}");
        let body = json!({
            "pattern": "{seq:9}{check:verhoeff}", "order": "shuffled", "key": name.replace('.', ":"),
        });
        let (status, answer) =
            ask_as(nodes[0].http, SHARED, &format!("PUT /v1/series/{name}"), &body.to_string());
        assert_eq!(status, 201, "{answer}");
        ask(&nodes[1], &name);
        knows(&nodes[1], &name)
    })
}

/// A request: its name, and how it is sent with a secret and the name of a series.
type Ask<'a> = (&'a str, &'a dyn Fn(&Server, &str, &str));

#[test]
fn a_name_or_key_of_another_tenant_is_never_looked_up_in_the_store() {
    let cluster = Cluster::start_with(
        "secret: the shared secret\ntokens:\n  \
         acme: { secret: the acme one, may: [read, take], series: [\"acme.*\"] }\n  \
         other: { secret: the other one, may: [read, take], series: [\"other.*\"] }\n",
    );
    let nodes = [cluster.node(), cluster.node()];
    let command = |node: &Server, secret: &str, words: &[&str]| {
        let mut client = Client::connect(node.port).expect("a connection");
        client.send(&["AUTH", secret]).expect("an answer");
        client.send(words).expect("an answer");
    };
    let get =
        |node: &Server, secret: &str, path: &str| drop(ask_as(node.http, secret, &format!("GET {path}"), ""));
    let key = |name: &str| name.replace('.', ":");
    let asks: [Ask<'_>; 5] = [
        ("incr", &|node, secret, name| command(node, secret, &["INCR", &key(name)])),
        ("lpop", &|node, secret, name| command(node, secret, &["LPOP", &key(name), "2"])),
        ("exists", &|node, secret, name| command(node, secret, &["EXISTS", &key(name)])),
        ("peek", &|node, secret, name| command(node, secret, &["BATES.PEEK", name])),
        ("http", &|node, secret, name| get(node, secret, &format!("/v1/series/{name}/peek"))),
    ];
    for (what, ask) in asks {
        let name = |of: &str| format!("acme.{what}_{of}");
        assert!(looks_up(&nodes, &name("own"), |node, name| ask(node, "the acme one", name)), "{what}");
        assert!(!looks_up(&nodes, &name("other"), |node, name| ask(node, "the other one", name)), "{what}");
    }
    // The name of an ID type has no dots.
    let id_type = |node: &Server, secret: &str, name: &str| {
        get(node, secret, &format!("/v1/idgenerator/{name}/id/validate/1234567890"));
    };
    assert!(looks_up(&nodes, "citizen_own", |node, name| id_type(node, SHARED, name)));
    assert!(!looks_up(&nodes, "citizen_other", |node, name| id_type(node, "the other one", name)));
}

#[test]
fn lists_and_metrics_show_only_the_series_of_the_caller() {
    let rig = Rig::start();
    rig.ask("shared", "POST /v1/series/acme.letter/documents", r#"{"document":{"title":"Plan"}}"#);
    rig.ask("shared", "POST /v1/series/acme.letter/lease", r#"{"count":3}"#);
    for path in
        ["/v1/series", "/v1/outbox", "/v1/outbox/counts", "/v1/leases", "/v1/gaps", "/v1/audit", "/metrics"]
    {
        let (status, answer) = rig.ask_text("other", &format!("GET {path}"), "");
        assert!(status == 200 && !answer.contains("acme"), "{path}: {answer}");
    }
    let (_, metrics) = rig.ask_text("other", "GET /metrics", "");
    assert!(metrics.contains("bates_issued_total{series=\"other.letter\"}"), "{metrics}");
    let of_server =
        ["bates_store_grant_seconds", "bates_connections", "bates_memory_bytes", "bates_refused_total"];
    for name in of_server {
        assert!(!metrics.contains(name), "other callers change {name}: {metrics}");
    }
    let (_, all) = rig.ask_text("shared", "GET /metrics", "");
    assert!(of_server.iter().all(|name| all.contains(name)), "{all}");
    let names = |text: &str| -> Vec<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.filter(|line| !line.contains("series=")).map(str::to_owned).collect()
    };
    let shown = names(&metrics);
    assert!(
        shown.len() == 2 && shown[0] == "bates_store_up 1",
        "nothing else is without a series: {shown:?}"
    );
    let (_, series) = rig.ask(ACME, "GET /v1/series", "");
    assert_eq!(series["series"].as_array().map(Vec::len), Some(4), "{series}");
}

#[test]
fn positions_of_a_shuffled_series_are_shown_only_with_the_right_operate() {
    let rig = Rig::start();
    for (order, pattern) in [("shuffled", "S{seq:6}"), ("counting", "C{seq:6}")] {
        let series = format!("acme.{order}");
        let body = json!({ "pattern": pattern, "order": order, "audit": true }).to_string();
        assert_eq!(rig.ask("shared", &format!("PUT /v1/series/{series}"), &body).0, 201);
        let (_, made) = rig.ask("take", &format!("POST /v1/series/{series}/reservations"), "");
        let (id, token) = (made["id"].as_str().expect("a number"), made["token"].as_str().expect("a token"));
        let (_, done) = rig.ask("take", &format!("POST /v1/reservations/{token}/confirm"), "");
        let is_counting = order == "counting";
        assert_eq!(done["position"].is_u64(), is_counting, "{done}");
        for (caller, is_shown) in [("read", is_counting), (ACME, true), ("shared", true)] {
            for (path, pointers) in [
                (format!("/v1/audit?id={id}"), &["/entries/0/from", "/entries/0/to"][..]),
                (format!("/v1/audit?series={series}"), &["/entries/0/from", "/entries/0/to"]),
                (format!("/v1/documents/{id}"), &["/position"]),
                (format!("/v1/outbox?series={series}"), &["/documents/0/position"]),
                (format!("/v1/ids/{id}"), &["/matches/0/position"]),
            ] {
                let (status, answer) = rig.ask(caller, &format!("GET {path}"), "");
                assert_eq!(status, 200, "{path}: {answer}");
                for pointer in pointers {
                    let shown = answer.pointer(pointer).is_some_and(Value::is_u64);
                    assert_eq!(shown, is_shown, "{caller} {path}: {answer}");
                }
            }
        }
    }
}

#[test]
fn a_tenant_defines_only_below_its_prefix_and_claims_no_key_of_another() {
    let rig = Rig::start();
    let put = |caller: &str, name: &str, body: Value| {
        rig.ask(caller, &format!("PUT /v1/series/{name}"), &body.to_string())
    };
    let (status, answer) = put("other", "acme.stolen", json!({ "pattern": "{seq}" }));
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    assert_eq!(put("other", "acme.count", json!({ "pattern": "{seq}" })).0, 403, "the same if it exists");
    let (status, answer) = put("other", "other.trap", json!({ "pattern": "{seq}", "key": "acme:trap" }));
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains("\"other:\"")), "{answer}");
    assert_eq!(put("other", "other.bill", json!({ "pattern": "B-{seq}", "key": "other:bill" })).0, 201);
    assert_eq!(rig.command("other", &["LPOP", "other:bill"]), "$3");
    let body = json!({ "name": "exact", "grant": { "may": ["define"], "series": ["other"] } }).to_string();
    let (_, token) = rig.ask("shared", "POST /v1/tokens", &body);
    let exact = |body: Value| {
        let secret = token["secret"].as_str().expect("a secret");
        ask_as(rig.server.http, secret, "PUT /v1/series/other", &body.to_string())
    };
    let (status, answer) = exact(json!({ "pattern": "{seq}", "key": "other:mine" }));
    assert_eq!((status, code(&answer)), (403, "forbidden"), "the prefix belongs to other.*: {answer}");
    assert_eq!(exact(json!({ "pattern": "{seq}" })).0, 201);
    let (status, answer) =
        rig.ask("other", "PATCH /v1/series/other.bill", r#"{"limits":{"scopes_max":99000000}}"#);
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
}

#[test]
fn a_tenant_gets_its_limit_of_scopes_and_no_series_more_however_many_it_asks_for_at_once() {
    let rig = Rig::start();
    let grant = json!({ "may": ["read", "define"], "series": ["ten.*"], "scopes_max": 5, "series_max": 3 });
    let token = json!({ "name": "ten", "grant": grant }).to_string();
    let (_, token) = rig.ask("shared", "POST /v1/tokens", &token);
    let (secret, port) = (token["secret"].as_str().expect("a secret"), rig.server.http);
    let put = |at: usize| {
        let body = json!({ "pattern": "{seq}" }).to_string();
        ask_as(port, secret, &format!("PUT /v1/series/ten.a{at}"), &body)
    };
    let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..12).map(|at| scope.spawn(move || put(at))).collect();
        callers.into_iter().map(|caller| caller.join().expect("an answer")).collect()
    });
    let created: Vec<&Value> =
        answers.iter().filter(|(status, _)| *status == 201).map(|(_, series)| series).collect();
    assert_eq!(created.len(), 3, "{answers:?}");
    assert!(created.iter().all(|series| series["limits"]["scopes_max"] == 5), "{created:?}");
}

#[test]
fn a_refused_key_does_not_name_a_series_that_the_caller_may_not_read() {
    let rig = Rig::start();
    let hidden = json!({ "pattern": "{x}-{seq}", "key": "other:deep:{x}" }).to_string();
    assert_eq!(rig.ask("shared", "PUT /v1/series/operators", &hidden).0, 201);
    let refused = |caller: &str| {
        let body = json!({ "pattern": "{y}-{seq}", "key": "other:deep:{y}" }).to_string();
        rig.ask(caller, "PUT /v1/series/other.deep", &body)
    };
    let (status, answer) = refused("other");
    assert_eq!((status, code(&answer)), (409, "keys_meet"), "{answer}");
    let detail = answer["detail"].as_str().expect("a text");
    assert!(!detail.contains("operators") && detail.contains("other:deep:{y}"), "{detail}");
    assert!(!detail.contains("{x}"), "{detail}");
    let (_, answer) = refused("shared");
    assert!(answer["detail"].as_str().is_some_and(|detail| detail.contains("operators")), "{answer}");
}

#[test]
fn a_lease_is_returned_only_by_its_caller() {
    let rig = Rig::start();
    let (_, lease) = rig.ask(ACME, "POST /v1/series/acme.letter/lease", r#"{"count":3}"#);
    let id = lease["lease"].as_str().expect("an id").to_owned();
    let give_back =
        |caller: &str| rig.ask(caller, &format!("POST /v1/leases/{id}/return"), r#"{"unused":[]}"#);
    for stranger in ["other", "take"] {
        let (status, answer) = give_back(stranger);
        assert_eq!((status, code(&answer)), (404, "unknown_lease"), "{stranger}: {answer}");
        let used = json!({ "count": 1, "used": [id] }).to_string();
        rig.ask(stranger, "POST /v1/series/acme.letter/lease", &used);
    }
    let (_, leases) = rig.ask(ACME, "GET /v1/leases", "");
    assert!(leases.to_string().contains(&id), "it is still open: {leases}");
    assert_eq!(give_back(ACME).0, 200);
}

#[test]
fn a_token_that_is_limited_to_scopes_uses_and_sees_only_these() {
    let rig = Rig::start();
    for project in ["PROJ", "X9", "SECRET"] {
        assert_eq!(
            rig.ask("shared", &format!("POST /v1/series/acme.file/next?project={project}"), "").0,
            200
        );
        let body = json!({ "scope": { "project": project } }).to_string();
        assert_eq!(rig.ask("shared", "POST /v1/series/acme.file/reservations", &body).0, 201);
        let body = json!({ "scope": { "project": project }, "count": 1 }).to_string();
        assert_eq!(rig.ask("shared", "POST /v1/series/acme.file/lease", &body).0, 200);
    }
    let (status, answer) = rig.ask("project", "POST /v1/series/acme.file/next?project=SECRET", "");
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    assert_eq!(rig.ask("project", "POST /v1/series/acme.file/next?project=X9", "").0, 200);
    assert_eq!(rig.ask("project", "GET /v1/series/acme.file/peek?project=SECRET", "").0, 403);
    assert!(rig.command("project", &["LPOP", "acme:file:SECRET"]).starts_with("-NOPERM forbidden"));
    assert!(rig.command("project", &["LPOP", "acme:file:PROJ"]).starts_with('$'));
    assert!(rig.command("project", &["BATES.NEXT", "acme.file", "project", "SECRET"]).starts_with("-NOPERM"));
    for path in [
        "/v1/series/acme.file/scopes?limit=1",
        "/v1/outbox?limit=1",
        "/v1/leases",
        "/v1/ids/SECRET-1",
        "/metrics",
    ] {
        let (mut after, mut seen) = (String::new(), String::new());
        for _ in 0..4 {
            let (_, page) = rig.ask_text("project", &format!("GET {path}{after}"), "");
            seen += &page;
            let page: Value = serde_json::from_str(&page).unwrap_or_default();
            let Some(next) = page["after"].as_str() else { break };
            after = format!("&after={}", next.replace(' ', "%20").replace('=', "%3D"));
        }
        let is_lookup = path.contains("SECRET");
        assert!(is_lookup || !seen.contains("SECRET"), "{path}: {seen}");
        assert!(!is_lookup || seen.contains("unknown_id"), "{path}: {seen}");
        assert!(
            is_lookup || path == "/metrics" || seen.contains("X9"),
            "{path} shows the own scopes: {seen}"
        );
    }
}

#[test]
fn without_a_secret_only_loopback_names_and_listed_hosts_are_served() {
    let data = tempfile::tempdir().expect("a folder");
    let server = Server::start_with(data.path(), "127.0.0.1:0", &[("BATES_HOSTS", "bates.internal")]);
    let status = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        crate::http::exchange(server.http, request.as_bytes()).0
    };
    for host in [
        "localhost",
        "LOCALHOST:8080",
        "127.0.0.1",
        "127.0.0.1:1",
        "[::1]:8080",
        "[::1]",
        "bates.internal:80",
    ] {
        assert_eq!(status(host, "/v1/series"), 200, "{host}");
    }
    for host in [
        "attacker.example",
        "attacker.example:8080",
        "localhost.attacker.example",
        "10.0.0.1",
        "bates.internal.example",
        "",
        "localhost@x",
    ] {
        assert_eq!(status(host, "/v1/series"), 403, "{host}");
        assert_eq!(status(host, "/metrics"), 403, "{host}");
        assert_eq!(status(host, "/healthz"), 200, "a probe names the address of a pod: {host}");
    }
}

#[test]
fn a_scope_that_a_token_may_not_read_is_answered_like_one_that_does_not_exist() {
    let rig = Rig::start();
    assert_eq!(rig.ask("shared", "POST /v1/series/acme.file/next?project=OTHER", "").0, 200);
    for list in ["/v1/gaps", "/v1/audit"] {
        let answer = |project: &str| {
            let (status, answer) =
                rig.ask_text("project", &format!("GET {list}?series=acme.file&project={project}"), "");
            (status, answer.replace(project, "PROJECT"))
        };
        assert_eq!(answer("OTHER").0, 404, "{list}");
        assert_eq!(answer("OTHER"), answer("NEVER"), "{list}");
    }
}

#[test]
fn an_error_suggests_only_names_that_the_caller_may_read() {
    let rig = Rig::start();
    for request in ["GET /v1/gaps?series=acme.cuont", "GET /v1/audit?series=acme_di", "GET /v1/gaps?projct=A"]
    {
        let (_, own) = rig.ask(ACME, request, "");
        assert!(own["detail"].as_str().expect("a text").contains("did you mean"), "{request}: {own}");
        let (_, foreign) = rig.ask("other", request, "");
        assert!(
            !foreign["detail"].as_str().expect("a text").contains("did you mean"),
            "{request}: {foreign}"
        );
    }
}
