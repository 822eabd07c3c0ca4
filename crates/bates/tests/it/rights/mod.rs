//! Rights of callers, on a server process: what a token may see and do, and that nothing of another tenant is shown.

mod allowances;
mod matrix;
mod operations;
mod tenants;
mod tokens;
mod transactions;

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::audit::ask_with;
use super::running::{Client, Server};

/// The columns of the table: strangers, tokens with one right each, another tenant, and the owner.
const CALLERS: [&str; 9] =
    ["no secret", "wrong secret", "read", "take", "define", "operate", "admin", "other", ACME];
const STRANGERS: [&str; 2] = ["no secret", "wrong secret"];
const ACME: &str = "acme";

const SERIES: &str = r#"
  acme.letter: { pattern: "L-{seq}", key: "acme:letter", sink: { object: { url: "file://FOLDER/letters" } } }
  acme.count: { pattern: "{seq}", key: "acme:count" }
  acme.file: { pattern: "{project}-{seq}", key: "acme:file:{project}" }
  acme_id: { pattern: "{seq:9}{check:verhoeff}", order: shuffled }
  other.letter: { pattern: "O-{seq}", key: "other:letter" }
"#;

/// A server with two tenants.
struct Rig {
    server: Server,
    _folder: tempfile::TempDir,
}

impl Rig {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("bates.yaml");
        std::fs::create_dir(folder.path().join("letters")).expect("a folder");
        std::fs::write(&file, configuration(folder.path())).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
        command.env_remove("BATES_SECRET").env("BATES_CONFIG", &file);
        let server =
            Server::try_start(command, &folder.path().join("data"), "127.0.0.1:0").expect("a server");
        Self { server, _folder: folder }
    }

    fn ask_text(&self, caller: &str, request: &str, body: &str) -> (u16, String) {
        ask_with(self.server.http, secret(caller), "", request, body)
    }

    fn ask(&self, caller: &str, request: &str, body: &str) -> (u16, Value) {
        let (status, body) = self.ask_text(caller, request, body);
        (status, serde_json::from_str(&body).unwrap_or_default())
    }

    /// The first line of the answer to a command; of an array with one element, that of the element.
    fn command(&self, caller: &str, arguments: &[&str]) -> String {
        let mut client = Client::connect(self.server.port).expect("a connection");
        if caller != "no secret" {
            client.send(&["AUTH", secret(caller)]).expect("an answer");
        }
        let answer = client.send(arguments).expect("an answer");
        if answer == "*1" { client.line().expect("an element") } else { answer }
    }

    fn commands(&self) -> Vec<String> {
        let mut client = Client::connect(self.server.port).expect("a connection");
        client.send(&["AUTH", secret("shared")]).expect("an answer");
        let count = client.send(&["COMMAND", "LIST"]).expect("an answer");
        let count: usize = count.trim_start_matches('*').parse().expect("a count");
        let mut name = || {
            client.line().expect("a length");
            client.line().expect("a name")
        };
        (0..count).map(|_| name()).collect()
    }

    /// A fresh document, reservation, lease or series for an operation that needs one.
    fn target(&self, operation: &str, caller: &str) -> String {
        let text = |(status, answer): (u16, Value), field: &str| {
            assert!(status < 300, "{answer}");
            answer[field].as_str().expect("a text").to_owned()
        };
        match operation {
            "retire_series" => {
                self.ask("shared", "PUT /v1/series/acme.spare", r#"{"pattern":"S-{seq}"}"#);
                String::new()
            }
            "confirm_reservation" | "void_reservation" => {
                let owner = if caller == "take" { caller } else { ACME };
                text(self.ask(owner, "POST /v1/series/acme.letter/reservations", ""), "token")
            }
            "rotate_token" | "revoke_token" => {
                let owner = if caller == "admin" { caller } else { ACME };
                let body =
                    format!(r#"{{"name":"{owner}.spare","grant":{{"may":["admin"],"series":["acme.*"]}}}}"#);
                let (status, answer) = self.ask(owner, "POST /v1/tokens", &body);
                assert!(status == 201 || status == 409, "{answer}");
                format!("{owner}.spare")
            }
            "return_lease" => {
                let owner = if caller == "take" { caller } else { ACME };
                text(self.ask(owner, "POST /v1/series/acme.letter/lease", r#"{"count":1}"#), "lease")
            }
            "find_document" | "retry_document" | "abandon_document" => {
                let body = r#"{"document":{"title":"Plan"}}"#;
                text(self.ask("shared", "POST /v1/series/acme.letter/documents", body), "event")
            }
            "validate_id" => "1234567890".to_owned(),
            _ => "L-1".to_owned(),
        }
    }
}

fn configuration(folder: &Path) -> String {
    let own = r#"series: ["acme.*", acme_id]"#;
    let all = "may: [read, take, define, operate, admin]";
    let one_right = |right| format!("  {right}: {{ secret: the {right} one, may: [{right}], {own} }}\n");
    let tokens: String = ["read", "take", "define", "operate", "admin"].map(one_right).concat();
    let series = SERIES.replace("FOLDER", &folder.display().to_string());
    format!(
        "secret: the shared one
# The matrix is full of strangers and wrong secrets.
wrong_secrets_max: 1000000
stranger_requests_max: 1000000
tokens:
{tokens}
  acme: {{ secret: the acme one, {all}, {own} }}
  other: {{ secret: the other one, {all}, series: [\"other.*\"] }}
  metered: {{ secret: the metered one, {all}, {own}, quota: 10/day }}
  project: {{ secret: the project one, may: [read, take], series: [acme.file], scope: {{ project: [PROJ, X9] }} }}
series:{series}"
    )
}

fn secret(caller: &str) -> &'static str {
    match caller {
        "no secret" => "",
        "wrong secret" => "a wrong one",
        "shared" => "the shared one",
        "read" => "the read one",
        "take" => "the take one",
        "define" => "the define one",
        "operate" => "the operate one",
        "admin" => "the admin one",
        ACME => "the acme one",
        "other" => "the other one",
        "project" => "the project one",
        "metered" => "the metered one",
        _ => panic!("there is no caller {caller}"),
    }
}
