//! Sinks that an operator offers by name to series which tenants create at run time.

use serde_json::{Value, json};

use super::super::audit::ask_with;
use super::{Home, Server};

const ACME: &str = "the acme one";
const OTHER: &str = "the other one";

/// Tokens of two tenants, and a sink that is offered to one of them.
fn settings(home: &Home) -> String {
    let token = |name, secret| {
        format!("  {name}: {{ secret: {secret}, may: [read, take, define], series: [\"{name}.*\"] }}\n")
    };
    let tokens = token("acme", ACME) + &token("other", OTHER);
    let sink = home.sink();
    let offered = sink.trim_start_matches('{').trim_end_matches('}');
    format!("tokens:\n{tokens}sinks:\n  letters: {{ offered_to: [\"acme.*\"], {offered} }}\n")
}

fn ask(server: &Server, secret: &str, request: &str, body: &Value) -> (u16, Value) {
    let (status, body) = ask_with(server.http, secret, "", request, &body.to_string());
    (status, serde_json::from_str(&body).unwrap_or_default())
}

fn create(server: &Server, secret: &str, name: &str, sink: &str) -> (u16, Value) {
    ask(server, secret, &format!("PUT /v1/series/{name}"), &json!({ "pattern": "L-{seq}", "sink": sink }))
}

/// Numbers a document, and waits until it has this state.
fn deliver(server: &Server, series: &str) {
    let body = json!({ "document": { "title": "Plan" } });
    let (status, numbered) = ask(server, ACME, &format!("POST /v1/series/{series}/documents"), &body);
    assert_eq!(status, 202, "{numbered}");
    let path = format!("GET /v1/documents/{}", numbered["event"].as_str().expect("an id"));
    while ask(server, ACME, &path, &Value::Null).1["state"] != "delivered" {}
}

fn series_of_a_tenant_delivers_to_the_sink_that_it_names(home: &Home) {
    let settings = settings(home);
    let server = home.start_beside(&settings, &[]);
    let (status, created) = create(&server, ACME, "acme.letter", "letters");
    assert_eq!((status, &created["sink"]), (201, &json!("letters")), "{created}");
    deliver(&server, "acme.letter");
    let (status, changed) =
        ask(&server, ACME, "PATCH /v1/series/acme.letter", &json!({ "restrict": ["13"] }));
    assert_eq!((status, &changed["sink"]), (200, &json!("letters")), "{changed}");
    deliver(&server, "acme.letter");
    server.kill();
    let server = home.start_beside(&settings, &[]);
    deliver(&server, "acme.letter");
    assert_eq!(home.delivered(), ["L-1", "L-2", "L-3"]);
}

#[test]
fn a_series_of_a_tenant_delivers_to_the_sink_that_it_names_on_a_data_folder() {
    series_of_a_tenant_delivers_to_the_sink_that_it_names(&Home::folder());
}

#[test]
fn a_series_of_a_tenant_delivers_to_the_sink_that_it_names_on_postgresql() {
    series_of_a_tenant_delivers_to_the_sink_that_it_names(&Home::postgres());
}

#[test]
fn a_sink_that_is_not_offered_is_refused_as_if_there_were_none() {
    let home = Home::folder();
    let server = home.start_beside(&settings(&home), &[]);
    let (status, answer) = create(&server, OTHER, "other.letter", "letters");
    assert_eq!((status, &answer["code"]), (403, &json!("forbidden")), "{answer}");
    let missing = create(&server, OTHER, "other.letter", "missing");
    let swapped = missing.1.to_string().replace("missing", "letters");
    assert_eq!((missing.0, swapped), (403, answer.to_string()), "the same words");
    let described = json!({ "pattern": "{seq}", "sink": { "webhook": { "url": "https://example.com" } } });
    let (status, _) = ask(&server, ACME, "PUT /v1/series/acme.letter", &described);
    assert_eq!(status, 422, "no request describes a sink");
    assert_eq!(ask(&server, ACME, "GET /v1/series/acme.letter", &Value::Null).0, 404, "nothing was created");
}

#[test]
fn a_node_without_the_sink_numbers_documents_and_another_node_delivers_them() {
    let home = Home::postgres();
    let with_sink = settings(&home);
    let tokens = with_sink.split("sinks:").next().expect("the part before").to_owned();
    let server = home.start_beside(&with_sink, &[]);
    assert_eq!(create(&server, ACME, "acme.letter", "letters").0, 201);
    server.stop();
    let mut bare = home.start_beside(&tokens, &[]);
    bare.wait_until_it_said("the configuration of this node does not offer it to the series");
    let body = json!({ "document": { "title": "Plan" } });
    assert_eq!(ask(&bare, ACME, "POST /v1/series/acme.letter/documents", &body).0, 202);
    assert_eq!(create(&bare, ACME, "acme.other", "letters").0, 403, "it offers nothing");
    let server = home.start_beside(&with_sink, &[]);
    while home.delivered() != ["L-1"] {}
    drop((server, bare));
}
