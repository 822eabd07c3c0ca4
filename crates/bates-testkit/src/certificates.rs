//! Certificates for tests of TLS. Must never be trusted outside tests.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::programs;

/// A folder with an authority, `ca.pem`, and a certificate that it signed for localhost: `server.pem` and
/// `server.key`. Panics if openssl is missing or fails.
pub fn certificates() -> TempDir {
    let folder = TempDir::with_prefix("bates-certificates-").expect("a temporary folder");
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout";
    openssl(folder.path(), &format!("req -x509 {key} ca.key -out ca.pem -days 2 -subj /CN=authority"));
    let names = "-addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE";
    openssl(folder.path(), &format!("req -new {key} server.key -out server.csr -subj /CN=localhost {names}"));
    let sign =
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -copy_extensions copyall";
    openssl(folder.path(), &format!("{sign} -out server.pem"));
    folder
}

fn openssl(folder: &Path, arguments: &str) {
    let openssl = programs::find("openssl").expect("openssl; run `cargo xtask test`, which installs it");
    let output = Command::new(openssl).current_dir(folder).args(arguments.split(' ')).output();
    let output = output.expect("openssl runs");
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}
