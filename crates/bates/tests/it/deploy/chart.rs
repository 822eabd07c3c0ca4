//! The rendered chart: Kubernetes accepts its manifests, they fit together, and bad values get clear errors.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use bates_testkit::clients::{self, KUBERNETES_VALIDATE};
use serde_json::Value;

use super::{Rendered, SETS, helm, list, run, text};

/// The oldest Kubernetes version that the chart supports, and the newest with known schemas.
const OLDEST: &str = "1.25";
const NEWEST: &str = "1.37";

fn validate(manifests: &str, version: &str) -> Result<(), String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/kubernetes.py");
    let mut command = KUBERNETES_VALIDATE.run(&script).unwrap();
    let mut child = command.arg(version).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(manifests.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stdout).unwrap()) }
}

#[test]
fn every_value_file_renders_manifests_that_kubernetes_accepts() {
    for set in SETS {
        let rendered = Rendered::of(set);
        let mut names = BTreeSet::new();
        for document in &rendered.documents {
            let (version, kind) = (text(&document["apiVersion"]), text(&document["kind"]));
            assert!(!version.is_empty(), "{kind}");
            assert_eq!(document["metadata"]["namespace"], "numbers", "{set}: {kind}");
            assert!(names.insert((kind, text(&document["metadata"]["name"]))), "{set}: {kind} twice");
        }
        assert!(names.len() > 3, "{set}: {names:?}");
        for version in [OLDEST, NEWEST] {
            let mut command = helm(set);
            command.args(["--kube-version", version]);
            validate(&run(command).unwrap(), version)
                .unwrap_or_else(|error| panic!("{set:?} on {version}: {error}"));
        }
    }
    let broken = Rendered::of("").text.replace("replicas: 3", "replicas: three");
    assert!(validate(&broken, NEWEST).unwrap_err().contains("three"), "the check finds a wrong value");
    let chart = super::yaml(&super::read("deploy/helm/bates/Chart.yaml"));
    assert_eq!(chart["kubeVersion"], format!(">={OLDEST}.0-0"));
    assert_eq!(
        (text(&chart["version"]), text(&chart["appVersion"])),
        (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn the_full_values_render_every_kind_of_object() {
    let rendered = Rendered::of("full");
    let kinds: Vec<&str> = rendered.documents.iter().map(|document| text(&document["kind"])).collect();
    for kind in [
        "ConfigMap",
        "Deployment",
        "HorizontalPodAutoscaler",
        "Ingress",
        "Job",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "PrometheusRule",
        "Service",
        "ServiceAccount",
        "ServiceMonitor",
    ] {
        assert!(kinds.contains(&kind), "{kind} is not in {kinds:?}");
    }
    assert!(Rendered::of("embedded").all("Deployment").next().is_none());
}

/// Whether the selector matches an object with these labels.
fn selects(selector: &Value, labels: &Value) -> bool {
    selector.as_object().unwrap().iter().all(|(name, value)| labels[name] == *value)
}

#[test]
fn selectors_match_the_nodes_and_no_migration_job() {
    for set in SETS {
        let rendered = Rendered::of(set);
        let node = &rendered.nodes()["spec"]["template"]["metadata"]["labels"];
        let pods =
            rendered.all("PodDisruptionBudget").map(|budget| &budget["spec"]["selector"]["matchLabels"]);
        let pods = pods
            .chain(rendered.all("NetworkPolicy").map(|policy| &policy["spec"]["podSelector"]["matchLabels"]));
        let pods = pods.chain(rendered.all("Service").map(|service| &service["spec"]["selector"]));
        let spread = list(&rendered.nodes()["spec"]["template"]["spec"]["topologySpreadConstraints"]);
        assert_eq!(spread.len(), 2, "{set}");
        let pods = pods.chain(spread.iter().map(|constraint| &constraint["labelSelector"]["matchLabels"]));
        let selectors: Vec<&Value> =
            pods.chain([&rendered.nodes()["spec"]["selector"]["matchLabels"]]).collect();
        assert!(selectors.len() >= 4, "{set}");
        for selector in selectors {
            assert!(selects(selector, node), "{set}: {selector} does not match {node}");
            for job in rendered.all("Job") {
                assert!(
                    !selects(selector, &job["spec"]["template"]["metadata"]["labels"]),
                    "{set}: a migration is not a node"
                );
            }
        }
        for monitor in rendered.all("ServiceMonitor") {
            let wanted = &monitor["spec"]["selector"]["matchLabels"];
            let found: Vec<_> = rendered
                .all("Service")
                .filter(|service| selects(wanted, &service["metadata"]["labels"]))
                .collect();
            assert_eq!(found.len(), 1, "{set}: each node is scraped once");
            let port = &monitor["spec"]["endpoints"][0]["port"];
            assert!(list(&found[0]["spec"]["ports"]).iter().any(|known| known["name"] == *port));
        }
    }
}

#[test]
fn every_referenced_port_name_and_account_exists() {
    for set in SETS {
        let rendered = Rendered::of(set);
        let spec = &rendered.nodes()["spec"]["template"]["spec"];
        let ports: Vec<&str> =
            list(&spec["containers"][0]["ports"]).iter().map(|port| text(&port["name"])).collect();
        for service in rendered.all("Service") {
            for port in list(&service["spec"]["ports"]) {
                assert!(ports.contains(&text(&port["targetPort"])), "{set}: {port}");
            }
        }
        for policy in rendered.all("NetworkPolicy") {
            for rule in list(&policy["spec"]["ingress"]) {
                assert!(ports.contains(&text(&rule["ports"][0]["port"])), "{set}: {rule}");
            }
        }
        for account in rendered.all("ServiceAccount") {
            assert_eq!(
                (&account["metadata"]["name"], &account["automountServiceAccountToken"]),
                (&spec["serviceAccountName"], &false.into())
            );
        }
        for scaler in rendered.all("HorizontalPodAutoscaler") {
            assert_eq!(scaler["spec"]["scaleTargetRef"]["name"], rendered.nodes()["metadata"]["name"]);
            assert_eq!(
                rendered.nodes()["spec"]["replicas"],
                Value::Null,
                "the autoscaler alone sets the number of nodes"
            );
        }
        for ingress in rendered.all("Ingress") {
            let backend = &ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"];
            let service = rendered.one("Service");
            assert_eq!(backend["name"], service["metadata"]["name"]);
            assert!(
                list(&service["spec"]["ports"]).iter().any(|port| port["name"] == backend["port"]["name"])
            );
        }
        if rendered.nodes()["kind"] == "StatefulSet" {
            let name = &rendered.nodes()["spec"]["serviceName"];
            assert!(rendered.all("Service").any(
                |service| service["metadata"]["name"] == *name && service["spec"]["clusterIP"] == "None"
            ));
        }
    }
}

#[test]
fn bad_values_are_refused_with_a_clear_error() {
    for (set, values, message) in [
        ("embedded", "replicas=2", "its folder is opened by one node at a time, so replicas must be 1"),
        ("embedded", "autoscaling.enabled=true", "so autoscaling.enabled must be false"),
        ("", "secret.secretName=", "secret.secretName: name the Secret with the secret that clients send"),
        ("", "store.postgres.secretName=", "store.postgres.secretName: name the Secret"),
        ("", "replica=2", "Additional property replica is not allowed"),
        ("", "store.postgres.conections=2", "Additional property conections is not allowed"),
        ("", "replicas=many", "replicas: Invalid type"),
        ("", "store.kind=mysql", "store.kind must be one of"),
        ("", "config.secret=x", "Additional property secret is not allowed"),
        ("", "series.Bad.pattern=x", "does not match"),
        ("", "series.a.promise=unique", "pattern is required"),
        (
            "full",
            "pools.unknown.key=a,pools.unknown.redis.secretName=a,pools.unknown.redis.secretKey=b",
            "pools.unknown: there is no series of this name",
        ),
        ("full", "pools.document.redis=redis://:password@redis", "Invalid type"),
        (
            "full",
            "series.document.sink.webhook.secret=whsec_x",
            "series.document.sink.webhook.secret: a ConfigMap must not hold a secret",
        ),
        ("full", "series.invoice.sink.postgres.url=postgres://me:pass@db/x", "an address has a password"),
        ("full", "ingress.hosts=null", "name a host in ingress.hosts"),
        ("full", "autoscaling.minReplicas=7", "autoscaling.minReplicas is above"),
        ("full", "preStopSleepSeconds=60", "must be less than terminationGracePeriodSeconds"),
        ("full", "config.stop_timeout_s=55", "together must be less than terminationGracePeriodSeconds"),
    ] {
        let mut command = helm(set);
        command.args(["--set", values]);
        let error = run(command).expect_err(values);
        assert!(error.contains(message), "{set:?} {values}: {error}");
        assert!(!error.contains("pass@db") && !error.contains("whsec_"), "{error}");
    }
}

#[test]
fn helm_lint_accepts_the_chart() {
    let mut lint = Command::new(clients::helm().unwrap());
    lint.args(["lint", "--strict"]).arg(super::root().join("deploy/helm/bates"));
    run(lint).unwrap();
}

/// Helm renders the notes only at an installation, so the test adds them to the chart as an ordinary template.
#[test]
fn the_installation_notes_name_the_missing_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let chart = folder.path().join("bates");
    let copied = Command::new("cp")
        .arg("-rL")
        .arg(super::root().join("deploy/helm/bates"))
        .arg(&chart)
        .status()
        .unwrap();
    assert!(copied.success());
    let notes = super::read("deploy/helm/bates/templates/NOTES.txt");
    let template = format!(
        "{{{{- define \"notes\" }}}}{notes}{{{{ end }}}}\nkind: Notes\ntext: {{{{ include \"notes\" . | quote }}}}\n"
    );
    fs::write(chart.join("templates/notes.yaml"), template).unwrap();
    for (set, expected) in [
        (
            "full",
            [
                "2 to 6 nodes on PostgreSQL",
                "Secret numbers-redis, key address: the address of Redis for the pools of document",
            ],
        ),
        ("embedded", ["one node with a volume of its own", "Secret bates, key secret"]),
    ] {
        let mut command = Command::new(clients::helm().unwrap());
        command.args(["template", "bates", "--show-only", "templates/notes.yaml"]).arg(&chart);
        command.arg("--values").arg(chart.join(format!("ci/{set}.yaml")));
        let rendered = super::yaml(&run(command).unwrap());
        let notes = text(&rendered["text"]);
        for words in expected.into_iter().chain(["| base64decode}}'"]) {
            assert!(notes.contains(words), "{notes}");
        }
    }
}
