//! The pod of a node: its probes exist, the server understands its configuration, and it contains no secret.

use std::fs;
use std::path::Path;
use std::process::Command;

use bates_testkit::PrivatePostgres;
use serde_json::Value;
use tempfile::TempDir;

use super::super::http::exchange;
use super::super::running::Server;
use super::{Rendered, SETS, list, text};

const SECRET: &str = "open-sesame-open-sesame";
const WEBHOOK_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// The value of the Secret that a variable refers to.
fn secret_value(variable: &str) -> &'static str {
    match variable {
        "BATES_SECRET" => SECRET,
        "BATES_TOKENS__REGISTRY__SECRET" => "of the registry only",
        "BATES_TOKENS__FRONT_DESK__SECRET" => "of the front desk",
        "BATES_STORE" => "postgres://bates:password@127.0.0.1:5432/numbers",
        _ if variable.ends_with("__REDIS") => "redis://:password@127.0.0.1:6379/0",
        _ if variable.ends_with("__SECRET") => WEBHOOK_SECRET,
        _ => panic!("{variable} refers to an unknown Secret"),
    }
}

/// The environment of a container as Kubernetes would build it, with the files of the pod in `folder`.
fn environment(rendered: &Rendered, container: &Value, folder: &Path) -> Vec<(String, String)> {
    let pair = |variable: &Value| {
        let name = text(&variable["name"]);
        let value = match &variable["value"] {
            Value::Null => secret_value(name).to_owned(),
            value if name == "BATES_CONFIG" => {
                let file = folder.join("bates.yaml");
                let key = Path::new(text(value)).file_name().unwrap().to_str().unwrap();
                fs::write(&file, text(&rendered.one("ConfigMap")["data"][key])).unwrap();
                file.to_str().unwrap().to_owned()
            }
            value if name.starts_with("BATES_TLS_") => {
                let file = if text(value).ends_with("tls.crt") { "server.pem" } else { "server.key" };
                if !folder.join(file).exists() {
                    let pair = bates_testkit::certificates();
                    for name in ["server.pem", "server.key"] {
                        fs::copy(pair.path().join(name), folder.join(name)).unwrap();
                    }
                }
                folder.join(file).to_str().unwrap().to_owned()
            }
            value if name.ends_with("_FILE") => {
                let mounts = list(&container["volumeMounts"]);
                assert!(
                    mounts.iter().any(|mount| text(value).starts_with(text(&mount["mountPath"]))),
                    "{value} is mounted"
                );
                let file = folder.join(name);
                let is_webhook = name.contains("__WEBHOOK__");
                fs::write(&file, if is_webhook { WEBHOOK_SECRET } else { "password" }).unwrap();
                file.to_str().unwrap().to_owned()
            }
            value => text(value).to_owned(),
        };
        (name.to_owned(), value)
    };
    list(&container["env"]).iter().map(pair).collect()
}

/// The arguments of a container after the first, with the files of its `ConfigMap` in `folder`.
fn flags(rendered: &Rendered, container: &Value, folder: &Path) -> Vec<String> {
    let flag = |word: &Value| match text(word).strip_prefix("/etc/bates/") {
        Some(key) => {
            let mounts = list(&container["volumeMounts"]);
            assert!(
                mounts.iter().any(|mount| mount["mountPath"] == *word && mount["subPath"] == key),
                "{word}"
            );
            let file = folder.join(key);
            fs::write(&file, text(&rendered.one("ConfigMap")["data"][key])).unwrap();
            file.to_str().unwrap().to_owned()
        }
        None => text(word).to_owned(),
    };
    list(&container["args"]).iter().skip(1).map(flag).collect()
}

fn container(rendered: &Rendered) -> &Value {
    &rendered.nodes()["spec"]["template"]["spec"]["containers"][0]
}

#[test]
fn the_server_understands_every_configuration_and_every_variable() {
    for set in SETS {
        let (rendered, folder) = (Rendered::of(set), TempDir::new().unwrap());
        let environment = environment(&rendered, container(&rendered), folder.path());
        let output = Command::new(env!("CARGO_BIN_EXE_bates"))
            .arg("check")
            .args(flags(&rendered, container(&rendered), folder.path()))
            .env_clear()
            .envs(environment)
            .output()
            .unwrap();
        let printed = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.success(), "{set:?}: {printed}");
        assert!(!printed.contains("unknown variable"), "{set:?}: {printed}");
        assert_eq!(printed.contains("short-link"), set == "full", "{printed}");
        assert_eq!(printed.contains("household"), set == "full", "{printed}");
    }
}

#[test]
fn the_containers_run_as_they_are_rendered() {
    let (rendered, folder) = (Rendered::of(""), TempDir::new().unwrap());
    let postgres = PrivatePostgres::start().unwrap();
    let mut environment = environment(&rendered, container(&rendered), folder.path());
    let variables = |environment: &[(String, String)]| {
        let borrowed = environment.iter().map(|(name, value)| (name.clone(), value.clone()));
        borrowed.filter(|(name, _)| name != "BATES_STORE").collect::<Vec<_>>()
    };
    let node_variables = variables(&environment);
    let node_variables: Vec<(&str, &str)> =
        node_variables.iter().map(|(name, value)| (&**name, &**value)).collect();
    let before = Server::try_node(&postgres.url(), &[], &node_variables).err().unwrap();
    assert!(before.contains("migrate"), "a database without the schema is refused: {before}");
    let first = &rendered.nodes()["spec"]["template"]["spec"]["initContainers"][0];
    assert_eq!(list(&first["env"]).len(), 1, "the schema needs a store and nothing else");
    environment.clear();
    for _ in 0..2 {
        let mut migrate = Command::new(env!("CARGO_BIN_EXE_bates"));
        migrate.args(list(&first["args"]).iter().map(text)).env_clear().env("BATES_STORE", postgres.url());
        assert!(migrate.output().unwrap().status.success(), "each pod may migrate again");
    }
    assert_eq!(container(&rendered)["args"][0], "serve");
    let server =
        Server::try_node(&postgres.url(), &[], &node_variables).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(server.redis_cli(&["--no-auth-warning", "-a", SECRET, "INCR", "counter:a"]), "1");
}

fn get(server: &Server, path: &str, secret: Option<&str>) -> u16 {
    let authorization =
        secret.map(|secret| format!("Authorization: Bearer {secret}\r\n")).unwrap_or_default();
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}Connection: close\r\n\r\n");
    exchange(server.http, request.as_bytes()).0
}

#[test]
fn probes_use_paths_of_the_server_and_a_store_outage_restarts_no_pod() {
    let mut postgres = PrivatePostgres::start().unwrap();
    let server = Server::try_node(&postgres.url(), &["--new"], &[("BATES_SECRET", SECRET)])
        .unwrap_or_else(|error| panic!("{error}"));
    let rendered = SETS.map(Rendered::of);
    let probe = |rendered: &Rendered, kind: &str| {
        let request = &container(rendered)[kind]["httpGet"];
        assert_eq!(request["port"], "http");
        text(&request["path"]).to_owned()
    };
    for rendered in &rendered {
        for kind in ["startupProbe", "readinessProbe", "livenessProbe"] {
            assert_eq!(get(&server, &probe(rendered, kind), None), 200, "{kind}: probes send no secret");
        }
        for monitor in rendered.all("ServiceMonitor") {
            let endpoint = &monitor["spec"]["endpoints"][0];
            let path = text(&endpoint["path"]);
            assert_eq!((get(&server, path, None), get(&server, path, Some(SECRET))), (401, 200));
            let authorization = &endpoint["authorization"];
            assert_eq!(authorization["type"], "Bearer");
            let node_secret =
                list(&container(rendered)["env"]).iter().find(|variable| variable["name"] == "BATES_SECRET");
            assert_eq!(
                authorization["credentials"],
                node_secret.unwrap()["valueFrom"]["secretKeyRef"],
                "the secret of the nodes"
            );
        }
    }
    postgres.stop().unwrap();
    // The server caches the result of its store check for a second.
    while get(&server, "/readyz", None) != 503 {
        std::thread::yield_now();
    }
    for rendered in &rendered {
        for (kind, status) in [("startupProbe", 503), ("readinessProbe", 503), ("livenessProbe", 200)] {
            assert_eq!(get(&server, &probe(rendered, kind), None), status, "{kind}, without a store");
        }
    }
}

#[test]
fn the_chart_refers_to_secrets_and_contains_none() {
    for set in SETS {
        let rendered = Rendered::of(set);
        for pod in rendered.pods() {
            let spec = &pod["spec"];
            let containers = list(&spec["containers"]).iter().chain(list(&spec["initContainers"]));
            for container in containers {
                for variable in list(&container["env"]) {
                    let name = text(&variable["name"]);
                    let is_secret = ["SECRET", "PASSWORD", "REDIS"].iter().any(|end| name.ends_with(end))
                        || name == "BATES_STORE" && set != "embedded";
                    let reference = &variable["valueFrom"]["secretKeyRef"];
                    assert_eq!(is_secret, reference.is_object(), "{set}: {name}");
                    if is_secret {
                        assert!(
                            !text(&reference["name"]).is_empty() && !text(&reference["key"]).is_empty(),
                            "{variable}"
                        );
                    }
                }
                let volumes = list(&spec["volumes"])
                    .iter()
                    .chain(list(&rendered.nodes()["spec"]["volumeClaimTemplates"]));
                let volumes: Vec<&str> = volumes
                    .filter_map(|volume| volume["name"].as_str().or(volume["metadata"]["name"].as_str()))
                    .collect();
                for mount in list(&container["volumeMounts"]) {
                    assert!(
                        volumes.contains(&text(&mount["name"])),
                        "{set}: {mount} is not one of {volumes:?}"
                    );
                }
            }
        }
        assert!(rendered.all("Secret").next().is_none(), "the chart creates no Secret");
    }
    let full = Rendered::of("full");
    let volume = list(&full.nodes()["spec"]["template"]["spec"]["volumes"])
        .iter()
        .find(|volume| volume["name"] == "secret-1");
    assert_eq!(volume.unwrap()["secret"]["secretName"], "numbers-archive");
}

#[test]
fn pods_have_no_privilege_that_a_node_does_not_need() {
    for set in SETS {
        let rendered = Rendered::of(set);
        for pod in rendered.pods() {
            let spec = &pod["spec"];
            assert_eq!(
                (&spec["automountServiceAccountToken"], &spec["enableServiceLinks"]),
                (&false.into(), &false.into())
            );
            let pod_security = &spec["securityContext"];
            assert_eq!(
                (&pod_security["runAsNonRoot"], &pod_security["seccompProfile"]["type"]),
                (&true.into(), &"RuntimeDefault".into())
            );
            assert_eq!(pod_security["runAsUser"], 65532, "{set}: as the image");
            for container in list(&spec["containers"]).iter().chain(list(&spec["initContainers"])) {
                let security = &container["securityContext"];
                let (escalates, reads) =
                    (&security["allowPrivilegeEscalation"], &security["readOnlyRootFilesystem"]);
                assert_eq!(
                    (escalates, reads, &security["capabilities"]["drop"][0]),
                    (&false.into(), &true.into(), &"ALL".into())
                );
                assert!(
                    container["resources"]["requests"]["memory"].is_string()
                        && container["resources"]["limits"]["memory"].is_string()
                );
            }
        }
        let spec = &rendered.nodes()["spec"]["template"]["spec"];
        let pause = container(&rendered)["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap_or(0);
        // Ten seconds for open requests, and twenty to return unused ranges.
        assert!(spec["terminationGracePeriodSeconds"].as_u64().unwrap() >= pause + 30, "{set}");
    }
}

#[test]
fn only_a_change_of_the_configuration_replaces_pods() {
    let checksum = |rendered: &Rendered| {
        rendered.nodes()["spec"]["template"]["metadata"]["annotations"]["checksum/config"].clone()
    };
    let with = |values: &str| {
        let mut command = super::helm("full");
        command.args(["--set", values]);
        let text = super::run(command).unwrap();
        let documents =
            text.split("\n---\n").filter(|text| text.contains("kind:")).map(super::yaml).collect();
        checksum(&Rendered { text: String::new(), documents })
    };
    let unchanged = checksum(&Rendered::of("full"));
    assert_eq!(unchanged, with("service.httpPort=81"));
    assert_ne!(unchanged, with("series.document.start=2001"));
}
