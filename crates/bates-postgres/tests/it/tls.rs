//! TLS to a real server, with each `sslmode`.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bates_postgres::{OpenError, OpenMode, PostgresStore, Settings};
use bates_testkit::{PrivatePostgres, certificates};

use super::{connect, open_store};

/// Turns TLS on, with files owned by the user of the server.
async fn turn_on_tls(server: &PrivatePostgres, certificates: &Path) {
    let client = connect(&server.url()).await;
    let folder: String = client.query_one("SHOW data_directory", &[]).await.unwrap().get(0);
    let owner = std::fs::metadata(&folder).unwrap();
    for name in ["server.key", "server.pem"] {
        let path = Path::new(&folder).join(name);
        std::fs::copy(certificates.join(name), &path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    }
    for sql in ["ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.key'", "ssl = on"] {
        client.batch_execute(&format!("ALTER SYSTEM SET {sql}")).await.unwrap();
    }
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

/// Opens a store with these URL parameters; returns whether the connection is encrypted.
async fn open(server: &PrivatePostgres, host: &str, query: &str) -> Result<bool, OpenError> {
    // A unique name, because connections of an earlier call may still be open.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let name = format!("call{}", CALLS.fetch_add(1, Ordering::Relaxed));
    let url =
        format!("postgres://postgres@{host}:{}/postgres?application_name={name}&{query}", server.port());
    let settings = Settings { timeout: Duration::from_secs(2), ..Settings::default() };
    let _store: PostgresStore = open_store(&url, settings, OpenMode::New).await?;
    let sql =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = $1";
    Ok(connect(&server.url()).await.query_one(sql, &[&name]).await.unwrap().get(0))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_sslmode_encrypts_and_verifies_as_documented() {
    let (server, certificates) = (PrivatePostgres::start().unwrap(), certificates());
    let file = certificates.path().join("ca.pem");
    let (file, other) = (file.display(), certificates.path().join("server.key"));
    assert_eq!(
        open(&server, "localhost", "sslmode=prefer").await,
        Ok(false),
        "the server does not offer TLS"
    );
    assert!(open(&server, "localhost", "sslmode=require").await.is_err(), "the server does not offer TLS");
    turn_on_tls(&server, certificates.path()).await;
    // The server reloads its configuration some time later.
    while open(&server, "localhost", "sslmode=require").await != Ok(true) {}
    for (host, query, encrypted) in [
        ("localhost", "sslmode=disable".to_owned(), Some(false)),
        ("localhost", "sslmode=prefer".to_owned(), Some(true)),
        ("127.0.0.1", "sslmode=require".to_owned(), Some(true)),
        ("localhost", format!("sslmode=verify-full&sslrootcert={file}"), Some(true)),
        // Refused: a name that is not in the certificate, an unknown authority, a file without a certificate.
        ("127.0.0.1", format!("sslmode=verify-full&sslrootcert={file}"), None),
        ("localhost", "sslmode=verify-full".to_owned(), None),
        ("localhost", format!("sslmode=verify-full&sslrootcert={}", other.display()), None),
    ] {
        let opened = open(&server, host, &query).await;
        assert_eq!(opened.clone().ok(), encrypted, "{host} {query}: {opened:?}");
    }
}
