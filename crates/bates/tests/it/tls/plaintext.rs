//! Plain text on an address that others can reach: refused unless the operator allows it.

use std::process::Command;

use bates_testkit::certificates;

use super::super::running::Server;

fn serve(port: &str, environment: &[(&str, &str)]) -> Result<Server, String> {
    let data = tempfile::tempdir().unwrap();
    let other = if port == "--http" { "--resp" } else { "--http" };
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.args(["serve", other, "127.0.0.1:0", port, "0.0.0.0:0", "--new", "--data"]).arg(data.path());
    command.env("BATES_SECRET", "open sesame, open sesame").envs(environment.iter().copied());
    Server::run(command)
}

#[test]
fn plain_text_off_loopback_is_refused_with_both_remedies() {
    for port in ["--http", "--resp"] {
        let refusal = serve(port, &[]).err().expect("it is refused");
        let key = port.trim_start_matches("--");
        for words in
            [&*format!("{port}: {key}: "), "0.0.0.0:0", "tls_certificate and tls_key", "plaintext: allowed"]
        {
            assert!(refusal.contains(words), "{words}: {refusal}");
        }
        serve(port, &[("BATES_PLAINTEXT", "allowed")]).unwrap().stop();
        let folder = certificates();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let (certificate, key) = (path("server.pem"), path("server.key"));
        serve(port, &[("BATES_TLS_CERTIFICATE", &certificate), ("BATES_TLS_KEY", &key)]).unwrap().stop();
    }
}

#[test]
fn incomplete_or_unusable_settings_are_refused_with_their_key() {
    let (ours, theirs) = (certificates(), certificates());
    let path = |folder: &tempfile::TempDir, name: &str| folder.path().join(name).display().to_string();
    let (certificate, key, other_key) =
        (path(&ours, "server.pem"), path(&ours, "server.key"), path(&theirs, "server.key"));
    let pair = [("BATES_TLS_CERTIFICATE", &*certificate), ("BATES_TLS_KEY", &*key)];
    for (environment, words) in [
        (vec![pair[0]], "tls_certificate needs tls_key"),
        (vec![pair[1]], "tls_key needs tls_certificate"),
        (vec![("BATES_TLS_CLIENT_CA", &*certificate)], "tls_client_ca needs tls_certificate"),
        (vec![("BATES_PLAINTEXT", "yes")], "plaintext: expected allowed"),
        (
            vec![pair[0], pair[1], ("BATES_TOKENS__A__CERTIFICATE", "a"), ("BATES_TOKENS__A__MAY", "read")],
            "certificate needs tls_client_ca",
        ),
        (vec![pair[0], ("BATES_TLS_KEY", "/nowhere")], "tls_key: cannot read /nowhere"),
        (vec![pair[0], ("BATES_TLS_KEY", &*certificate)], "tls_key: cannot read"),
        (vec![pair[0], ("BATES_TLS_KEY", &*other_key)], "the certificate and its key cannot be used"),
        (vec![("BATES_TLS_CERTIFICATE", &*key), pair[1]], "it has no certificate in PEM"),
    ] {
        let refusal = serve("--resp", &environment).err().expect(words);
        assert!(refusal.contains(words), "{words}: {refusal}");
    }
}
