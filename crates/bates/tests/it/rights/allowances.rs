//! Rates and quotas of callers on server processes.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::super::audit::ask_as;
use super::super::cluster::Cluster;
use super::super::running::{Client, Server};

const SHARED: &str = "the shared secret";

const CONFIGURATION: &str = r#"
secret: the shared secret
tokens:
  slow: { secret: the slow one, may: [take], rate: 10/s }
  small: { secret: the small one, may: [take], quota: 100/day }
series:
  ticket: { pattern: "{seq}", key: "ticket:{name}" }
  bill: { pattern: "B-{seq}", promise: gapless }
  bulk: { pattern: "{seq}", key: "bulk", limits: { lease_min: 2000000, lease_max: 2000000 } }
"#;

/// How many of these many requests for one number were answered, over both protocols in turn.
fn take(server: &Server, secret: &str, requests: usize) -> usize {
    let mut client = Client::connect(server.port).unwrap();
    assert_eq!(client.send(&["AUTH", secret]).unwrap(), "+OK");
    let mut take = |at: usize| match at % 4 {
        0 => client.incr("ticket:a").is_some(),
        1 => {
            let answer = client.send(&["BATES.NEXT", "bill"]).unwrap();
            // The number follows its length; an error is one line.
            answer.starts_with('$') && client.line().is_some()
        }
        2 => ask_as(server.http, secret, "POST /v1/series/bill/next", "").0 == 200,
        _ => ask_as(server.http, secret, "POST /v1/series/bill/reservations", "").0 == 201,
    };
    (0..requests).map(&mut take).filter(|is_answered| *is_answered).count()
}

#[test]
fn a_quota_holds_over_all_nodes_protocols_and_restarts() {
    let cluster = Cluster::start_with(CONFIGURATION);
    let (one, two) = (cluster.node(), cluster.node());
    let secret = "the small one";
    let (status, answer) = ask_as(one.http, secret, "POST /v1/series/bill/next?count=101", "");
    assert_eq!(
        (status, answer["code"].as_str()),
        (422, Some("bad_count")),
        "no wait would let it pass: {answer}"
    );
    assert_eq!(ask_as(one.http, secret, "POST /v1/series/bill/next?count=30", "").0, 200);
    let (status, answer) = ask_as(one.http, secret, "POST /v1/series/bill/next?count=71", "");
    assert_eq!((status, answer["code"].as_str()), (429, Some("rate_exceeded")), "{answer}");
    let taken = take(&two, secret, 20) + take(&one, secret, 20);
    assert_eq!(taken, 40);
    one.stop();
    let one = cluster.node();
    let rest = std::iter::from_fn(|| (take(&one, secret, 1) + take(&two, secret, 1)).checked_sub(1)).count();
    assert!(rest <= 30, "{rest} answered after 70 of 100");
    let refused = ask_as(two.http, secret, "POST /v1/series/bill/next", "");
    assert_eq!(refused.0, 429, "{}", refused.1);
    assert!(refused.1["detail"].as_str().unwrap().contains("quota of 100"), "{}", refused.1);
    assert_eq!(ask_as(two.http, SHARED, "POST /v1/series/bill/next", "").0, 200, "others go on");
}

#[test]
fn a_rate_refuses_with_busy_and_a_time_to_wait() {
    let cluster = Cluster::start_with(CONFIGURATION);
    let node = cluster.node();
    let secret = "the slow one";
    let (status, answer) = ask_as(node.http, secret, "POST /v1/series/bill/next?count=1000", "");
    assert_eq!(status, 200, "a large request passes and is paid off afterwards: {answer}");
    assert_eq!(take(&node, secret, 8), 0, "nothing for the next 99 seconds");
    let mut client = Client::connect(node.port).unwrap();
    client.send(&["AUTH", secret]).unwrap();
    let refused = client.incr_raw("ticket:a").unwrap();
    assert!(refused.starts_with("-BUSY rate_exceeded"), "{refused}");
    let request = "POST /v1/series/bill/next HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Authorization: Bearer the slow one\r\nContent-Length: 0\r\n\r\n";
    let (_, head, _) = super::super::http::exchange(node.http, request.as_bytes());
    let header =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("retry-after: ")?.parse().ok());
    let seconds: u64 = header.expect("Retry-After");
    assert!((90..=100).contains(&seconds), "{seconds}");
    // A refusal takes no number: the gapless series goes on without a hole.
    let (_, next): (_, Value) = ask_as(node.http, SHARED, "POST /v1/series/bill/next", "");
    assert_eq!(next, json!({ "ids": ["B-1001"] }));
}

#[test]
fn numbers_in_memory_are_refused_beyond_an_hour_of_the_rate_too() {
    let cluster = Cluster::start_with(CONFIGURATION);
    let node = cluster.node();
    assert_eq!(node.redis_cli(&["--no-auth-warning", "-a", SHARED, "INCR", "bulk"]), "1");
    let mut client = Client::connect(node.port).unwrap();
    client.send(&["AUTH", "the slow one"]).unwrap();
    let refused = client.send(&["INCRBY", "bulk", "1000000"]).unwrap();
    assert!(refused.contains("more than an hour's at this caller's rate of 10"), "{refused}");
    assert_eq!(client.send(&["INCRBY", "bulk", "36000"]).unwrap(), ":36001");
}

#[test]
fn refused_commands_of_a_pipeline_create_no_scopes() {
    let cluster = Cluster::start_with(CONFIGURATION);
    let node = cluster.node();
    for (secret, answered_max) in [("the slow one", 100), ("the small one", 100)] {
        let mut client = Client::connect(node.port).unwrap();
        client.send(&["AUTH", secret]).unwrap();
        let mark = secret.replace(' ', "-");
        let commands: Vec<String> = (0..600).map(|at| format!("INCR ticket:{mark}-{at}\r\n")).collect();
        let pipeline = commands.concat();
        client.stream.get_mut().write_all(pipeline.as_bytes()).unwrap();
        let answers: Vec<String> = (0..600).map(|_| client.line().unwrap()).collect();
        let answered = answers.iter().filter(|answer| answer.starts_with(':')).count();
        assert!((10..=answered_max).contains(&answered), "{secret}: {answered} of 600");
        let sql = format!("SELECT count(*) FROM bates.cursor WHERE scope LIKE 'name={mark}-%'");
        let scopes: usize = cluster.query(&sql).parse().unwrap();
        assert_eq!(scopes, answered, "{secret}");
    }
}

#[test]
fn numbers_that_a_caller_did_not_get_cost_nothing() {
    let cluster = Cluster::start_with(
        "secret: the shared secret\ntokens:\n  t: { secret: the t one, may: [take], rate: 100/s, quota: 1000/day }\nseries:\n  \
         few: { pattern: \"F{seq:2}\" }\n  bill: { pattern: \"{seq}\", promise: gapless, key: bill }\n",
    );
    let (node, secret) = (cluster.node(), "the t one");
    let ask = |request: &str, body: &str| ask_as(node.http, secret, request, body).0;
    assert_eq!(ask("POST /v1/series/bill/next?count=500&wrong=1", ""), 422, "refused for its scope");
    assert_eq!(ask("POST /v1/series/bill/next?count=1", ""), 200, "no debt is left");
    let accept = "Accept: text/plain\r\n";
    let (status, lines) =
        super::super::audit::ask_with(node.http, secret, accept, "POST /v1/series/few/next?count=400", "");
    let count = lines.lines().filter(|line| line.starts_with('F')).count();
    assert_eq!((status, count), (200, 99), "the stream ends with the scope");
    // 1,000 of the day, without the 100 that were taken.
    let mut client = Client::connect(node.port).unwrap();
    client.send(&["AUTH", secret]).unwrap();
    let mut run = || client.send(&["INCRBY", "bill", "450"]).unwrap();
    assert_eq!(run(), ":451", "a run that is larger than the rate passes, and is charged once");
    let paid_off = (0..1_000_000).map(|_| run()).find(|answer| !answer.contains("its rate of"));
    assert_eq!(paid_off.as_deref(), Some(":901"), "all of the quota can be used");
    let (status, refused) = ask_as(node.http, secret, "POST /v1/series/bill/next", "");
    assert_eq!(status, 429, "{refused}");
}

#[test]
fn a_repeated_request_gets_its_number_after_the_quota_is_used_up() {
    let cluster = Cluster::start_with(
        "secret: the shared secret\ntokens:\n  t: { secret: the t one, may: [take], quota: 2/day }\nseries:\n  \
         bill: { pattern: \"{seq}\", promise: gapless }\n",
    );
    let node = cluster.node();
    let reserve = |key: &str, seconds: u64| {
        let headers = format!("Idempotency-Key: {key}\r\nContent-Type: application/json\r\n");
        let body = json!({ "seconds": seconds }).to_string();
        let request = "POST /v1/series/bill/reservations";
        let (status, answer) =
            super::super::audit::ask_with(node.http, "the t one", &headers, request, &body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (status, answer["id"].as_str().or(answer["code"].as_str()).unwrap().to_owned())
    };
    assert_eq!(reserve("a", 900), (201, "1".into()));
    assert_eq!(reserve("b", 900), (201, "2".into()));
    for _ in 0..3 {
        assert_eq!(reserve("a", 900), (200, "1".into()));
        assert_eq!(reserve("new", 900), (429, "rate_exceeded".into()));
    }
    assert_eq!(reserve("a", 800).1, "key_reused");
    let (_, next) = ask_as(node.http, SHARED, "POST /v1/series/bill/next", "");
    assert_eq!(next, json!({ "ids": ["3"] }), "a refused key took no number");
    assert_eq!(cluster.query("SELECT count(*) FROM bates.idempotency"), "2");
}

#[test]
fn a_stream_that_its_client_leaves_costs_all_numbers_that_it_took() {
    let cluster = Cluster::start_with(
        "secret: the shared secret\ntokens:\n  leaver: { secret: the leaving one, may: [take], quota: 60000/day }\nseries:\n  \
         bill: { pattern: \"{seq}\", promise: gapless }\n",
    );
    let node = cluster.node();
    let request = "POST /v1/series/bill/next?count=20000 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
                   Accept: text/plain\r\nAuthorization: Bearer the leaving one\r\nContent-Length: 0\r\n\r\n";
    // Leaves with the first lines, while the server takes the next chunk.
    let begin_and_leave = || {
        let mut stream = TcpStream::connect(("127.0.0.1", node.http)).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line.contains("200")
    };
    let streams = (0..100).filter(|_| begin_and_leave()).count();
    assert!((3..100).contains(&streams), "{streams} streams began, and then the quota was used");
    let (_, level) = ask_as(node.http, SHARED, "GET /v1/series/bill/peek", "");
    let taken = level["next"].as_u64().unwrap() - 1;
    assert!(taken <= 60_000, "{taken} numbers taken with a quota of 60,000, in {streams} streams");
}
