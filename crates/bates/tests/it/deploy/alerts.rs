//! Alerts and the dashboard: proved by promtool, and made of metrics that a server really has.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::super::documents::{Home, send};
use super::super::http::ask;
use super::super::metrics::samples;
use super::super::pools::Redis;
use super::{Rendered, list, program, read, root, text, yaml};

const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const PROOF: &str = "deploy/prometheus/alerts_test.yaml";
const DASHBOARD: &str = "deploy/grafana/bates.json";

fn alerts() -> Vec<Value> {
    let alerts = yaml(&read(ALERTS));
    list(&alerts["groups"]).iter().flat_map(|group| list(&group["rules"])).cloned().collect()
}

/// The panels, and what they ask.
fn questions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = list(&dashboard["panels"]).iter().flat_map(|panel| list(&panel["targets"]));
    let variables =
        list(&dashboard["templating"]["list"]).iter().filter(|variable| variable["type"] == "query");
    let asked =
        panels.map(|target| &target["expr"]).chain(variables.map(|variable| &variable["query"]["query"]));
    asked.map(|expression| text(expression).to_owned()).collect()
}

/// The metrics that an expression is made of, each with the labels that it is chosen by.
fn used(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = expression.match_indices("bates_").filter(|(at, _)| !expression[..*at].ends_with(is_inner));
    let of = |at: usize| {
        let rest = &expression[at..];
        let (name, rest) = rest.split_at(rest.find(|c| !is_inner(c)).unwrap_or(rest.len()));
        let chosen =
            rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inner, _)| inner);
        let labels = chosen.split(',').filter(|matcher| !matcher.is_empty());
        let labels = labels.map(|matcher| matcher.trim().chars().take_while(|c| is_inner(*c)).collect());
        (name.to_owned(), labels.collect())
    };
    starts.map(|(at, _)| of(at)).collect()
}

/// The labels that an expression groups by.
fn grouped(expression: &str) -> Vec<String> {
    let groups = expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    groups
        .flat_map(|(labels, _)| labels.split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>())
        .collect()
}

/// The metrics of a server that has everything there is a metric for, each with its labels, and the states of documents.
fn of_a_server() -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let (home, redis) = (Home::folder(), Redis::start());
    let sink = r#"{ webhook: { url: "http://127.0.0.1:1/", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true } }"#;
    let pool = super::super::pools::series(&redis.url(), "size: 10", "{ p: a }");
    let series = format!("{pool}  filed: {{ pattern: \"F-{{seq:3}}\", sink: {sink} }}\n");
    let server = home.start_with(&series, &[("BATES_OUTBOX_TRIES", "1")]);
    let (status, said) =
        send(server.http, "/v1/series/filed/documents", "application/json", None, r#"{"document":1}"#);
    assert_eq!(status, 202, "{said}");
    ask(server.http, "POST", "/v1/series/ticket/next?p=a", "");
    redis.wait_for_level("pool:a", 10);
    let dead = "bates_documents{series=\"filed\",state=\"dead\"}";
    while !samples(&server).contains_key(dead) {
        std::thread::yield_now();
    }
    let (mut metrics, mut states): (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) =
        Default::default();
    for sample in samples(&server).keys() {
        let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
        let labels = labels.trim_end_matches('}').split(',').filter_map(|label| label.split_once('='));
        let known = metrics.entry(name.to_owned()).or_default();
        for (label, value) in labels {
            known.insert(label.to_owned());
            if label == "state" {
                states.insert(value.trim_matches('"').to_owned());
            }
        }
    }
    (metrics, states)
}

#[test]
fn alerts_and_dashboard_ask_for_metrics_and_labels_that_a_server_has() {
    let (metrics, states) = of_a_server();
    let alerts = alerts();
    let expressions: Vec<String> =
        alerts.iter().map(|alert| text(&alert["expr"]).to_owned()).chain(questions()).collect();
    assert!(expressions.len() > 25);
    // Prometheus adds where a sample is from.
    let has = |labels: &BTreeSet<String>, label: &String| labels.contains(label) || label == "instance";
    for expression in &expressions {
        let used = used(expression);
        assert!(!used.is_empty(), "{expression}");
        for (name, labels) in &used {
            let known = metrics.get(name).unwrap_or_else(|| panic!("no metric {name}: {expression}"));
            assert!(labels.iter().all(|label| has(known, label)), "{name} has {known:?}: {expression}");
            for label in grouped(expression) {
                assert!(has(known, &label), "{name} has {known:?}, not {label}: {expression}");
            }
        }
        for (_, value) in
            expression.match_indices("state=\"").map(|(at, found)| (at, &expression[at + found.len()..]))
        {
            assert!(states.contains(value.split('"').next().unwrap()), "{states:?}: {expression}");
        }
    }
    let operations = read("docs/operations.md");
    for name in metrics.keys() {
        let name =
            ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        assert!(operations.contains(&format!("`{name}")), "{name} is not in docs/operations.md");
    }
    let asked: BTreeSet<String> =
        questions().iter().flat_map(|question| used(question)).map(|(name, _)| name).collect();
    let missing: Vec<&String> = metrics.keys().filter(|name| !asked.contains(*name)).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

#[test]
fn promtool_proves_every_alert() {
    program("promtool", &["check", "rules", root().join(ALERTS).to_str().unwrap()]);
    program("promtool", &["test", "rules", root().join(PROOF).to_str().unwrap()]);
    let proof = yaml(&read(PROOF));
    let proved = list(&proof["tests"]).iter().flat_map(|test| list(&test["alert_rule_test"]));
    let told = proved.filter(|case| !list(&case["exp_alerts"]).is_empty());
    let told: BTreeSet<&str> = told.map(|case| text(&case["alertname"])).collect();
    let operations = read("docs/operations.md");
    for alert in alerts() {
        let name = text(&alert["alert"]);
        assert!(told.contains(name), "{name} is not proved");
        assert!(["warning", "critical"].contains(&text(&alert["labels"]["severity"])), "{name}");
        let annotations = &alert["annotations"];
        let subject = |what: &str| text(&annotations[what]).contains("{{ $labels.");
        assert!(subject("summary") && subject("description"), "{name} does not say of what");
        assert_eq!(text(&annotations["runbook"]), format!("docs/operations.md#{}", name.to_lowercase()));
        assert!(
            operations.lines().any(|line| line == format!("### {name}")),
            "{name}: nobody is told what to do"
        );
    }
}

#[test]
fn what_the_dashboard_asks_can_be_read_by_prometheus() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = list(&dashboard["panels"]);
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each has an id of its own");
    assert!(
        panels.iter().all(|panel| panel["type"] == "row" || panel["datasource"]["uid"] == "${datasource}")
    );
    let asked = questions();
    let asked = asked.iter().filter(|question| !question.starts_with("label_values")).enumerate();
    let rules = asked.map(|(at, question)| {
        let question =
            question.replace("$__rate_interval", "5m").replace("$series", ".*").replace("$instance", ".*");
        assert!(!question.contains('$'), "a variable that nobody sets: {question}");
        json!({"record": format!("asked:{at}"), "expr": question})
    });
    let rules = json!({"groups": [{"name": "asked", "rules": rules.collect::<Vec<_>>()}]});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("asked.yaml");
    fs::write(&file, rules.to_string()).unwrap();
    program("promtool", &["check", "rules", file.to_str().unwrap()]);
}

#[test]
fn the_chart_has_the_same_alerts_and_the_same_dashboard() {
    let rendered = Rendered::of("full");
    assert_eq!(rendered.one("PrometheusRule")["spec"], yaml(&read(ALERTS)));
    let dashboard =
        rendered.all("ConfigMap").find(|map| map["metadata"]["labels"]["grafana_dashboard"] == "1");
    let shown: Value = serde_json::from_str(text(&dashboard.unwrap()["data"]["bates.json"])).unwrap();
    assert_eq!(shown, serde_json::from_str::<Value>(&read(DASHBOARD)).unwrap());
}
