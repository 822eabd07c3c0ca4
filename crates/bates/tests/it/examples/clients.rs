//! Example clients in other languages.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use bates_testkit::clients::{IOREDIS, REDIS_PY};
use bates_testkit::programs;
use serde_json::Value;
use tempfile::tempdir;

use super::{folder, words_after};
use crate::running::Server;

fn text(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn are_distinct(numbers: &[&str]) -> bool {
    numbers.iter().collect::<HashSet<_>>().len() == numbers.len()
}

fn document(project: &str, position: u64) -> String {
    format!("{project}-9012-{position}")
}

#[test]
fn redis_py_takes_consecutive_numbers() {
    let data = tempdir().unwrap();
    let server = Server::start(data.path());
    let run = || {
        let mut command = REDIS_PY.run(&folder().join("redis-py.py")).unwrap();
        text(command.arg(server.port.to_string()).output().unwrap())
    };
    let both = [run(), run()];
    // The second run continues after the first: eight documents and three messages each.
    for (run, output) in (0..).zip(&both) {
        let documents = [words_after(output, "document"), words_after(output, "by name")].concat();
        assert!(
            documents.into_iter().eq((0..8).map(|nth| document("PROJ", 1001 + run * 8 + nth))),
            "{output}"
        );
        let messages = words_after(output, "message");
        assert!(messages.into_iter().eq((1..=3).map(|nth| (run * 3 + nth).to_string())), "{output}");
        assert_eq!(words_after(output, "first of each").join(" "), format!("{0} {0} {0}", run + 1));
        assert!(words_after(output, "refused").join(" ").contains("once and for all"), "{output}");
    }
    for (name, length, count) in [("short", 6, 3), ("farmer", 12, 2)] {
        let all: Vec<&str> = both.iter().flat_map(|output| words_after(output, name)).collect();
        assert_eq!(all.len(), 2 * count);
        assert!(are_distinct(&all) && all.iter().all(|number| number.len() == length), "{all:?}");
    }
}

#[test]
fn ioredis_takes_consecutive_numbers() {
    let data = tempdir().unwrap();
    let server = Server::start(data.path());
    // Node looks for modules beside the program.
    let project = tempdir().unwrap();
    assert!(IOREDIS.is_installed(), "ioredis; run `cargo xtask test`, which installs it");
    symlink(
        IOREDIS.folder().canonicalize().unwrap().join("node_modules"),
        project.path().join("node_modules"),
    )
    .unwrap();
    let program = project.path().join("ioredis.mjs");
    fs::copy(folder().join("ioredis.mjs"), &program).unwrap();
    let output = Command::new("node").arg(program).arg(server.port.to_string()).output().unwrap();
    let output = text(output);
    let documents = [words_after(&output, "document"), words_after(&output, "by name")].concat();
    assert!(documents.into_iter().eq((1001..1009).map(|position| document("NODE", position))), "{output}");
    assert!(
        words_after(&output, "messages").into_iter().eq((1..=100).map(|nth: u64| nth.to_string())),
        "{output}"
    );
    assert_eq!(words_after(&output, "exact"), ["true"]);
    let short = words_after(&output, "short");
    assert!(short.len() == 3 && are_distinct(&short), "{output}");
    assert!(words_after(&output, "refused").join(" ").contains("once and for all"), "{output}");
}

#[test]
fn curl_takes_numbers_and_reserves_one() {
    let data = tempdir().unwrap();
    let server = Server::start(data.path());
    assert!(programs::find("curl").is_some(), "curl; run `cargo xtask test`, which installs it");
    let run = || {
        let mut command = Command::new("bash");
        command.arg(folder().join("curl.sh")).arg(format!("http://127.0.0.1:{}", server.http));
        text(command.output().unwrap())
    };
    let (first, second) = (run(), run());
    let both = format!("{first}{second}");
    let answers: Vec<Value> = both.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // Six JSON answers and five keys per run.
    assert_eq!((answers.len(), both.lines().count()), (12, 22), "{both}");
    let keys: Vec<&str> = both.lines().filter(|line| !line.starts_with('{')).collect();
    assert!(are_distinct(&keys) && keys.iter().all(|key| key.len() == 6), "{keys:?}");
    let ids = |nth: usize| -> Vec<String> {
        let ids = answers[nth]["ids"].as_array().unwrap();
        ids.iter().map(|id| id.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((ids(0), ids(6)), (vec![document("CURL", 1001)], vec![document("CURL", 1002)]));
    assert_eq!([ids(1), ids(7)].concat(), ["1", "2", "3", "4", "5", "6"]);
    assert_eq!([ids(4), ids(10)].concat(), ["T-000001", "T-000002", "T-000004", "T-000005"]);
    for (nth, number) in [(5, "T-000003"), (11, "T-000006")] {
        assert_eq!((&answers[nth]["id"], &answers[nth]["state"]), (&number.into(), &"confirmed".into()));
    }
}
