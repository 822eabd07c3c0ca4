//! Pools that an operator offers by name to series which tenants create at run time.

use serde_json::{Value, json};

use super::super::audit::ask_with;
use super::super::running::Server;
use super::{Home, Redis, bates};

const ACME: &str = "the acme one";
const OTHER: &str = "the other one";

/// Tokens of two tenants, and a pool that is offered to one of them.
fn settings(redis: &Redis, more: &str) -> String {
    let token = |name, secret| {
        format!("  {name}: {{ secret: {secret}, may: [read, take, define], series: [\"{name}.*\"] }}\n")
    };
    let tokens = token("acme", ACME) + &token("other", OTHER);
    let pool = format!("{{ redis: \"{}\", size: 20, offered_to: [\"acme.*\"]{more} }}", redis.url());
    format!("secret: shared secret\ntokens:\n{tokens}pools:\n  lists: {pool}\n")
}

fn ask(server: &Server, secret: &str, request: &str, body: &Value) -> (u16, Value) {
    let (status, body) = ask_with(server.http, secret, "", request, &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or_default())
}

fn create(server: &Server, secret: &str, name: &str, description: &Value) -> (u16, Value) {
    ask(server, secret, &format!("PUT /v1/series/{name}"), description)
}

fn request_pool(server: &Server, series: &str, project: &str) -> (u16, Value) {
    let body = json!({ "scope": { "p": project } });
    ask(server, ACME, &format!("POST /v1/series/{series}/pool"), &body)
}

fn ticket() -> Value {
    json!({ "pattern": "{p}-{seq}", "pool": "lists" })
}

fn lists_of_a_tenant_are_filled(home: &Home) {
    let redis = Redis::start();
    let settings = settings(&redis, "");
    let server = home.start_beside(&settings, &[]);
    let (status, created) = create(&server, ACME, "acme.ticket", &ticket());
    assert_eq!((status, &created["pool"]), (201, &json!("lists")), "{created}");
    while request_pool(&server, "acme.ticket", "A").0 == 404 {}
    let (status, pool) = request_pool(&server, "acme.ticket", "A");
    assert_eq!((status, pool["key"].as_str()), (202, Some("acme:pool:acme.ticket:A")), "{pool}");
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);
    let first: Vec<String> = redis.command(&["LPOP", "acme:pool:acme.ticket:A", "20"]);
    let numbers = |from: u64| (from..from + 20).map(|at| format!("A-{at}")).collect::<Vec<_>>();
    assert_eq!(first, numbers(1));
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);

    let changed =
        ask(&server, ACME, "PATCH /v1/series/acme.ticket", &json!({ "limits": { "lease_min": 5 } }));
    assert_eq!((changed.0, &changed.1["pool"]), (200, &json!("lists")));
    let second: Vec<String> = redis.command(&["LPOP", "acme:pool:acme.ticket:A", "20"]);
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);
    server.kill();
    let server = home.start_beside(&settings, &[]);
    let third: Vec<String> = redis.command(&["LPOP", "acme:pool:acme.ticket:A", "20"]);
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);
    assert_eq!((second, third), (numbers(21), numbers(41)), "a changed series and another server go on");
    drop(server);
}

#[test]
fn lists_of_a_tenant_are_filled_on_a_data_folder() {
    lists_of_a_tenant_are_filled(&Home::folder());
}

#[test]
fn lists_of_a_tenant_are_filled_on_postgresql() {
    lists_of_a_tenant_are_filled(&Home::postgres());
}

#[test]
fn a_retired_series_leaves_no_numbers_in_its_lists_and_continues_behind_them() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let server = home.start_beside(&settings(&redis, ""), &[]);
        assert_eq!(create(&server, ACME, "acme.ticket", &ticket()).0, 201);
        while request_pool(&server, "acme.ticket", "A").0 != 202 {}
        redis.wait_for_level("acme:pool:acme.ticket:A", 20);
        assert_eq!(ask(&server, ACME, "DELETE /v1/series/acme.ticket", &Value::Null).0, 200);
        while redis.level("acme:pool:acme.ticket:A") > 0 {}
        // The list is empty before its epoch ends.
        while redis.epoch("acme:pool:acme.ticket:A") != 2 {}
        assert_eq!(create(&server, ACME, "acme.ticket", &ticket()).0, 201);
        redis.wait_for_level("acme:pool:acme.ticket:A", 20);
        let next: Vec<String> = redis.command(&["LPOP", "acme:pool:acme.ticket:A", "1"]);
        assert_eq!(next, ["A-21"], "the numbers of the old list are not given again");
    }
}

#[test]
fn a_pool_that_is_not_offered_is_refused_as_if_there_were_none() {
    let (home, redis) = (Home::folder(), Redis::start());
    let server = home.start_beside(&settings(&redis, ""), &[]);
    let (status, answer) = create(&server, OTHER, "other.ticket", &ticket());
    assert_eq!((status, &answer["code"]), (403, &json!("forbidden")), "{answer}");
    let missing = create(&server, OTHER, "other.ticket", &json!({ "pattern": "{seq}", "pool": "missing" }));
    let swapped = missing.1.to_string().replace("missing", "lists");
    assert_eq!((missing.0, swapped), (403, answer.to_string()), "the same words");
    let described = json!({ "pattern": "{seq}", "pool": { "redis": redis.url(), "key": "x", "size": 10 } });
    assert_eq!(create(&server, ACME, "acme.ticket", &described).0, 422, "no request describes a pool");
    let dated = json!({ "pattern": "{yyyy}-{seq}", "reset": "yearly", "pool": "lists" });
    let (status, answer) = create(&server, ACME, "acme.dated", &dated);
    assert_eq!((status, &answer["code"]), (422, &json!("bad_series")), "{answer}");
    assert_eq!(create(&server, ACME, "acme.ticket", &ticket()).0, 201);
    let change = json!({ "promise": "ordered" });
    let (status, answer) = ask(&server, ACME, "PATCH /v1/series/acme.ticket", &change);
    assert_eq!((status, &answer["code"]), (422, &json!("bad_series")), "{answer}");
}

#[test]
fn a_tenant_gets_as_many_lists_as_its_operator_allows() {
    for home in [Home::folder(), Home::postgres()] {
        let redis = Redis::start();
        let server = home.start_beside(&settings(&redis, ", lists_max: 2"), &[]);
        assert_eq!(create(&server, ACME, "acme.ticket", &ticket()).0, 201);
        while request_pool(&server, "acme.ticket", "A").0 != 202 {}
        assert_eq!(request_pool(&server, "acme.ticket", "B").0, 202);
        let (status, answer) = request_pool(&server, "acme.ticket", "C");
        assert_eq!((status, &answer["code"]), (429, &json!("too_many_pools")), "{answer}");
        let attach = json!({ "scope": { "p": "C" }, "run_id": "a", "replication_id": "b" });
        assert_eq!(ask(&server, ACME, "POST /v1/series/acme.ticket/pool/attach", &attach).0, 429);
        assert_eq!(request_pool(&server, "acme.ticket", "B").0, 202, "one that it has");
    }
}

#[test]
fn a_floor_empties_the_list_of_a_tenant_and_passes_it() {
    let (home, redis) = (Home::postgres(), Redis::start());
    let server = home.start_beside(&settings(&redis, ""), &[]);
    assert_eq!(create(&server, ACME, "acme.ticket", &ticket()).0, 201);
    while request_pool(&server, "acme.ticket", "A").0 != 202 {}
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);
    let raised = bates(&home, &["floor", "acme.ticket", "p=A", "10", "--wait", "60"]);
    assert!(raised.status.success(), "{}", String::from_utf8_lossy(&raised.stderr));
    redis.wait_for_level("acme:pool:acme.ticket:A", 20);
    let next: Vec<String> = redis.command(&["LPOP", "acme:pool:acme.ticket:A", "1"]);
    let next: u64 = next[0].trim_start_matches("A-").parse().unwrap();
    assert!(next > 20, "{next} was in the list before");
    drop(server);
}
