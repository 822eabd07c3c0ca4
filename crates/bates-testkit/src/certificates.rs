//! Certificates for tests of TLS. Must never be trusted outside tests.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::programs;

/// New keys are on this curve: fast to make, and accepted by every client.
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout";

/// A folder with an authority, `ca.pem`, and a certificate that it signed for localhost: `server.pem` and
/// `server.key`. Panics if openssl is missing or fails.
pub fn certificates() -> TempDir {
    let folder = TempDir::with_prefix("bates-certificates-").expect("a temporary folder");
    openssl(folder.path(), &format!("req -x509 {NEW_KEY} ca.key -out ca.pem -days 2 -subj /CN=authority"));
    sign_certificate(folder.path(), "server", "localhost", "DNS:localhost");
    folder
}

/// Makes a key and a certificate of the folder's authority, `file.key` and `file.pem`, with a common name and
/// alternative names such as `DNS:a,URI:b`.
pub fn sign_certificate(folder: &Path, file: &str, common_name: &str, alternative_names: &str) {
    let names =
        format!("-addext subjectAltName={alternative_names} -addext basicConstraints=critical,CA:FALSE");
    openssl(
        folder,
        &format!("req -new {NEW_KEY} {file}.key -out {file}.csr -subj /CN={common_name} {names}"),
    );
    let sign = "x509 -req -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copyall";
    openssl(folder, &format!("{sign} -in {file}.csr -out {file}.pem"));
}

fn openssl(folder: &Path, arguments: &str) {
    let openssl = programs::find("openssl").expect("openssl; run `cargo xtask test`, which installs it");
    let output = Command::new(openssl).current_dir(folder).args(arguments.split(' ')).output();
    let output = output.expect("openssl runs");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
