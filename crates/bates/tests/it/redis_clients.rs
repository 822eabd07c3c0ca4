//! Real, unmodified Redis clients against a server process: each connects with its defaults and in both versions of
//! the protocol, takes numbers, gets a refusal, and authenticates with a secret.

use std::path::Path;
use std::process::Command;

use bates_testkit::clients::{IOREDIS, Library, NODE_REDIS, REDIS_PY};
use bates_testkit::programs;
use redis::{
    Commands as _, ConnectionAddr, ErrorKind, IntoConnectionInfo as _, ProtocolVersion, RedisResult,
};
use tempfile::TempDir;

use super::running::Server;

const SECRET: &str = "open sesame";

/// A server without a secret, and one with a secret.
struct Servers {
    open: Server,
    guarded: Server,
    // Invariant: the last field, so that the servers end before their folders are removed.
    _data: [TempDir; 2],
}

impl Servers {
    fn start() -> Self {
        let data = [TempDir::new().unwrap(), TempDir::new().unwrap()];
        let open = Server::start(data[0].path());
        let guarded = Server::start_with(data[1].path(), "127.0.0.1:0", &[("BATES_SECRET", SECRET)]);
        Self { open, guarded, _data: data }
    }
}

fn run_script(library: &Library, script: &str) {
    let servers = Servers::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(script);
    let output = library
        .run(&script)
        .unwrap()
        .args([servers.open.port.to_string(), servers.guarded.port.to_string(), SECRET.to_owned()])
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout.trim(), "ok");
}

#[test]
fn unmodified_redis_py_gets_numbers() {
    run_script(&REDIS_PY, "redis_py.py");
}

#[test]
fn unmodified_ioredis_gets_numbers() {
    run_script(&IOREDIS, "ioredis.js");
}

#[test]
fn unmodified_node_redis_gets_numbers() {
    run_script(&NODE_REDIS, "node_redis.js");
}

fn connect(
    server: &Server,
    protocol: ProtocolVersion,
    user: Option<&str>,
    secret: Option<&str>,
) -> RedisResult<redis::Connection> {
    let mut settings = redis::RedisConnectionInfo::default().set_protocol(protocol);
    if let Some(secret) = secret {
        settings = settings.set_password(secret);
    }
    if let Some(user) = user {
        settings = settings.set_username(user);
    }
    let address = ConnectionAddr::Tcp("127.0.0.1".to_owned(), server.port);
    let info = address.into_connection_info()?.set_redis_settings(settings);
    redis::Client::open(info)?.get_connection()
}

fn take_numbers(connection: &mut redis::Connection, key: &str) -> RedisResult<()> {
    let (counter, pool) = (format!("counter:{key}"), format!("id-pool:{key}:9012"));
    assert_eq!(connection.incr::<_, _, u64>(&counter, 1)?, 1);
    assert_eq!(redis::cmd("INCR").arg(&counter).query::<u64>(connection)?, 2);
    assert_eq!(connection.incr::<_, _, u64>(&counter, 8)?, 10);
    assert_eq!(connection.get::<_, Option<u64>>(&counter)?, Some(10));
    assert_eq!(connection.get::<_, Option<u64>>("counter:never")?, None);
    assert_eq!(connection.lpop::<_, String>(&pool, None)?, format!("{key}-9012-1001"));
    let two: Vec<String> = connection.lpop(&pool, std::num::NonZero::new(2))?;
    assert_eq!(two, [format!("{key}-9012-1002"), format!("{key}-9012-1003")]);
    let mut pipeline = redis::pipe();
    for _ in 0..100 {
        pipeline.incr(&counter, 1);
    }
    let counted: Vec<u64> = pipeline.query(connection)?;
    assert!(counted.into_iter().eq(11..=110));
    let absent = "counter:never";
    let mut transaction = redis::pipe();
    transaction.atomic().incr(&counter, 1).get(absent).lpop(&pool, None);
    let expected = (111_u64, None::<u64>, format!("{key}-9012-1004"));
    assert_eq!(transaction.query::<(u64, Option<u64>, String)>(connection)?, expected);
    assert_eq!(connection.mget::<_, Vec<Option<u64>>>(&[&*counter, absent])?, [Some(111), None]);
    Ok(())
}

#[test]
fn the_unmodified_redis_crate_gets_numbers() {
    let servers = Servers::start();
    for (protocol, key) in [(ProtocolVersion::RESP2, "RUST2"), (ProtocolVersion::RESP3, "RUST3")] {
        let mut connection = connect(&servers.open, protocol, None, None).unwrap();
        take_numbers(&mut connection, key).unwrap();
        let refused = connection.set::<_, _, ()>(format!("counter:{key}"), 1).unwrap_err();
        assert!(refused.to_string().contains("once and for all"), "{refused}");
        assert_eq!(connection.incr::<_, _, u64>(format!("counter:{key}"), 1).unwrap(), 112);
        let mut authenticated = connect(&servers.guarded, protocol, None, Some(SECRET)).unwrap();
        take_numbers(&mut authenticated, key).unwrap();
        assert!(connect(&servers.guarded, protocol, Some("default"), Some(SECRET)).is_ok());
        for (user, secret) in [(None, "wrong"), (Some("root"), SECRET)] {
            let refused = connect(&servers.guarded, protocol, user, Some(secret)).err().unwrap();
            // The client passes on an error of `HELLO`, and has a kind of its own for an error of `AUTH`.
            let is_auth_error =
                refused.kind() == ErrorKind::AuthenticationFailed || refused.code() == Some("WRONGPASS");
            assert!(is_auth_error, "{refused}");
        }
        let unauthenticated = connect(&servers.guarded, protocol, None, None)
            .and_then(|mut unauthenticated| unauthenticated.incr::<_, _, u64>("counter:a", 1));
        assert!(unauthenticated.unwrap_err().to_string().contains("NOAUTH"));
    }
}

#[test]
fn redis_cli_gets_numbers_in_both_protocol_versions_and_with_a_secret() {
    let servers = Servers::start();
    for (version, key) in [("-2", "CLI2"), ("-3", "CLI3")] {
        let ask = |arguments: &[&str]| servers.open.redis_cli(&[&[version], arguments].concat());
        let (counter, pool) = (format!("counter:{key}"), format!("id-pool:{key}:9012"));
        assert_eq!(ask(&["INCR", &counter]), "1");
        assert_eq!(ask(&["INCRBY", &counter, "9"]), "10");
        assert_eq!(ask(&["GET", &counter]), "10");
        assert_eq!(ask(&["LPOP", &pool]), format!("{key}-9012-1001"));
        assert_eq!(ask(&["LPOP", &pool, "2"]), format!("{key}-9012-1002\n{key}-9012-1003"));
        assert!(ask(&["SET", &counter, "1"]).starts_with("ERR SET would set numbers"));
        let with_secret = ["--no-auth-warning", "-a", SECRET, version, "INCR", &counter];
        assert_eq!(servers.guarded.redis_cli(&with_secret), "1");
    }
}

#[test]
fn unmodified_redis_benchmark_runs() {
    let servers = Servers::start();
    let program = programs::find("redis-benchmark").expect("redis-benchmark; run `cargo xtask test`");
    for (server, secret) in [(&servers.open, &[][..]), (&servers.guarded, &["-a", SECRET])] {
        let output = Command::new(&program)
            .args(["-p", &server.port.to_string(), "-t", "incr", "-n", "10000", "-q"])
            .args(secret)
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && stdout.contains("INCR:"), "{stdout}");
        assert!(!stdout.contains("rror") && !stdout.contains("WARN"), "{stdout}");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
