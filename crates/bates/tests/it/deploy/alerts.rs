//! Alerts and the dashboard: tested by promtool, and built only from metrics that a server exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};

use super::super::documents::{Home, send};
use super::super::http::ask;
use super::super::metrics::samples;
use super::super::pools::Redis;
use super::{Rendered, list, program, read, root, text, yaml};

const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const ALERT_TESTS: &str = "deploy/prometheus/alerts_test.yaml";
const DASHBOARD: &str = "deploy/grafana/bates.json";

fn alerts() -> Vec<Value> {
    let alerts = yaml(&read(ALERTS));
    list(&alerts["groups"]).iter().flat_map(|group| list(&group["rules"])).cloned().collect()
}

/// The queries of the panels and variables of the dashboard.
fn dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = list(&dashboard["panels"]).iter().flat_map(|panel| list(&panel["targets"]));
    let variables =
        list(&dashboard["templating"]["list"]).iter().filter(|variable| variable["type"] == "query");
    let expressions =
        panels.map(|target| &target["expr"]).chain(variables.map(|variable| &variable["query"]["query"]));
    expressions.map(|expression| text(expression).to_owned()).collect()
}

/// The metrics in an expression, each with the labels that it is filtered by.
fn used_metrics(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts = expression.match_indices("bates_").filter(|(at, _)| !expression[..*at].ends_with(is_inner));
    let metric_at = |at: usize| {
        let rest = &expression[at..];
        let (name, rest) = rest.split_at(rest.find(|c| !is_inner(c)).unwrap_or(rest.len()));
        let matchers =
            rest.strip_prefix('{').and_then(|rest| rest.split_once('}')).map_or("", |(inner, _)| inner);
        let labels = matchers.split(',').filter(|matcher| !matcher.is_empty());
        let labels = labels.map(|matcher| matcher.trim().chars().take_while(|c| is_inner(*c)).collect());
        (name.to_owned(), labels.collect())
    };
    starts.map(|(at, _)| metric_at(at)).collect()
}

/// The labels that an expression groups by.
fn grouping_labels(expression: &str) -> Vec<String> {
    let groups = expression.split("by (").skip(1).filter_map(|rest| rest.split_once(')'));
    groups
        .flat_map(|(labels, _)| labels.split(',').map(|label| label.trim().to_owned()).collect::<Vec<_>>())
        .collect()
}

/// All metrics of a server, each with its labels, and the document states. The server uses every feature that has a
/// metric.
fn server_metrics() -> (BTreeMap<String, BTreeSet<String>>, BTreeSet<String>) {
    let (home, redis) = (Home::folder(), Redis::start());
    let sink = r#"{ webhook: { url: "http://127.0.0.1:1/", secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw, allow_private: true } }"#;
    let pool = super::super::pools::series(&redis.url(), "size: 10", "{ p: a }");
    let series = format!("{pool}  filed: {{ pattern: \"F-{{seq:3}}\", sink: {sink} }}\n");
    let server = home.start_with(&series, &[("BATES_OUTBOX_TRIES", "1")]);
    let (status, answer) =
        send(server.http, "/v1/series/filed/documents", "application/json", None, r#"{"document":1}"#);
    assert_eq!(status, 202, "{answer}");
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
fn alerts_and_dashboard_use_only_metrics_and_labels_of_a_server() {
    let (metrics, states) = server_metrics();
    let alerts = alerts();
    let expressions: Vec<String> =
        alerts.iter().map(|alert| text(&alert["expr"]).to_owned()).chain(dashboard_queries()).collect();
    assert!(expressions.len() > 25);
    // Prometheus adds the label `instance` to each sample.
    let has = |labels: &BTreeSet<String>, label: &String| labels.contains(label) || label == "instance";
    for expression in &expressions {
        let used = used_metrics(expression);
        assert!(!used.is_empty(), "{expression}");
        for (name, labels) in &used {
            let known = metrics.get(name).unwrap_or_else(|| panic!("no metric {name}: {expression}"));
            assert!(labels.iter().all(|label| has(known, label)), "{name} has {known:?}: {expression}");
            for label in grouping_labels(expression) {
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
    let shown: BTreeSet<String> =
        dashboard_queries().iter().flat_map(|query| used_metrics(query)).map(|(name, _)| name).collect();
    let missing: Vec<&String> = metrics.keys().filter(|name| !shown.contains(*name)).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

#[test]
fn promtool_tests_every_alert() {
    program("promtool", &["check", "rules", root().join(ALERTS).to_str().unwrap()]);
    program("promtool", &["test", "rules", root().join(ALERT_TESTS).to_str().unwrap()]);
    let tests = yaml(&read(ALERT_TESTS));
    let cases = list(&tests["tests"]).iter().flat_map(|test| list(&test["alert_rule_test"]));
    let firing = cases.filter(|case| !list(&case["exp_alerts"]).is_empty());
    let firing: BTreeSet<&str> = firing.map(|case| text(&case["alertname"])).collect();
    let operations = read("docs/operations.md");
    for alert in alerts() {
        let name = text(&alert["alert"]);
        assert!(firing.contains(name), "no test makes {name} fire");
        assert!(["warning", "critical"].contains(&text(&alert["labels"]["severity"])), "{name}");
        let annotations = &alert["annotations"];
        let names_subject = |field: &str| text(&annotations[field]).contains("{{ $labels.");
        assert!(names_subject("summary") && names_subject("description"), "{name} does not name its subject");
        assert_eq!(text(&annotations["runbook"]), format!("docs/operations.md#{}", name.to_lowercase()));
        assert!(
            operations.lines().any(|line| line == format!("### {name}")),
            "docs/operations.md has no section {name}"
        );
    }
}

#[test]
fn prometheus_parses_every_query_of_the_dashboard() {
    let dashboard: Value = serde_json::from_str(&read(DASHBOARD)).unwrap();
    let panels = list(&dashboard["panels"]);
    let ids: BTreeSet<u64> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each panel has its own id");
    assert!(
        panels.iter().all(|panel| panel["type"] == "row" || panel["datasource"]["uid"] == "${datasource}")
    );
    let queries = dashboard_queries();
    let queries = queries.iter().filter(|query| !query.starts_with("label_values")).enumerate();
    let rules = queries.map(|(at, query)| {
        let query =
            query.replace("$__rate_interval", "5m").replace("$series", ".*").replace("$instance", ".*");
        assert!(!query.contains('$'), "an undefined variable: {query}");
        json!({"record": format!("dashboard:{at}"), "expr": query})
    });
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("queries.yaml");
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
