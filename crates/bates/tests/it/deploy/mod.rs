//! The files in `deploy/`, checked as far as possible without a cluster: rendered by Helm, checked by the Kubernetes
//! schemas, promtool and systemd, and compared with a server process.

mod alerts;
mod chart;
mod image;
mod manifests;
mod pod;
mod systemd;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bates_testkit::{clients, programs};
use serde_json::Value;

/// The value files that the chart is rendered with; the empty name stands for the defaults.
const SETS: [&str; 4] = ["", "full", "embedded", "plain"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The command that renders the chart with a value file.
fn helm(set: &str) -> Command {
    let mut command = Command::new(clients::helm().unwrap());
    let chart = root().join("deploy/helm/bates");
    command.args(["template", "bates", "--namespace", "numbers"]).arg(&chart);
    if !set.is_empty() {
        command.arg("--values").arg(chart.join(format!("ci/{set}.yaml")));
    }
    command
}

/// Runs a Helm command and returns its output, or its error.
fn run(mut command: Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    // Helm logs every symbolic link into the rest of `deploy/`.
    let error: String = stderr.lines().filter(|line| !line.starts_with("walk.go")).collect();
    if output.status.success() { Ok(String::from_utf8(output.stdout).unwrap()) } else { Err(error) }
}

/// The manifests that the chart renders with a value file.
struct Rendered {
    text: String,
    documents: Vec<Value>,
}

impl Rendered {
    fn of(set: &str) -> Self {
        let text = run(helm(set)).unwrap_or_else(|error| panic!("{set:?}: {error}"));
        let documents = text.split("\n---\n").filter(|text| text.contains("kind:")).map(yaml).collect();
        Self { text, documents }
    }

    fn all(&self, kind: &'static str) -> impl Iterator<Item = &Value> {
        self.documents.iter().filter(move |document| document["kind"] == kind)
    }

    fn one(&self, kind: &'static str) -> &Value {
        let mut found = self.all(kind);
        found.next().unwrap_or_else(|| panic!("no {kind}"))
    }

    /// The Deployment or `StatefulSet` that runs the nodes.
    fn nodes(&self) -> &Value {
        self.all("Deployment").chain(self.all("StatefulSet")).next().unwrap()
    }

    /// All pod templates: those of the nodes and of the Job.
    fn pods(&self) -> impl Iterator<Item = &Value> {
        let owners = ["Deployment", "StatefulSet", "Job"].into_iter().flat_map(|kind| self.all(kind));
        owners.map(|owner| &owner["spec"]["template"])
    }
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is not a string"))
}

/// Runs an installed program, which must succeed, and returns its output.
fn program(name: &str, arguments: &[&str]) -> String {
    let found =
        programs::find(name).unwrap_or_else(|| panic!("{name}; run `cargo xtask test`, which installs it"));
    let output = Command::new(found).args(arguments).output().unwrap();
    let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{name} {arguments:?}: {printed}");
    printed
}
