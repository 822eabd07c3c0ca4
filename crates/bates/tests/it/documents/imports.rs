//! `bates import`: stopped, killed and run again, it numbers each document once. `bates adopt`: numbers of an earlier
//! system are never issued.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::process::{Command, Output, Stdio};

use bates_pattern::{Options, Pattern, Position};
use serde_json::{Value, json};

use super::Home;
use crate::running::Server;

const DOCUMENTS: usize = 6_000;

fn import(home: &Home, port: u16, file: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.current_dir(home.path("")).env("BATES_URL", format!("http://127.0.0.1:{port}"));
    command.args(["import", file, "--series", "document"]).args(arguments);
    command
}

fn series(home: &Home) -> String {
    format!("  document: {{ pattern: \"{{project}}-{{seq}}\", sink: {} }}\n", home.sink())
}

#[test]
fn a_killed_import_resumes_and_gives_no_document_a_second_number() {
    for home in [Home::folder(), Home::postgres()] {
        let server = home.start(&series(&home));
        let lines: Vec<String> =
            (0..DOCUMENTS).map(|at| json!({"code": format!("P{}", at % 3), "at": at}).to_string()).collect();
        fs::write(home.path("letters.ndjson"), lines.join("\n")).unwrap();
        let arguments = ["--scope-from", "project=code", "--wait"];
        let mut killed =
            import(&home, server.http, "letters.ndjson", &arguments).stdout(Stdio::null()).spawn().unwrap();
        let written = || fs::read_to_string(home.path("letters.numbered.ndjson")).unwrap_or_default();
        while written().lines().count() < DOCUMENTS / 4 && killed.try_wait().unwrap().is_none() {}
        killed.kill().unwrap();
        killed.wait().unwrap();
        // As if the last lines had not reached the disk.
        let on_disk: Vec<String> = written().lines().take(500).map(str::to_owned).collect();
        fs::write(home.path("letters.numbered.ndjson"), on_disk.join("\n") + "\n{\"id\":\"P0-").unwrap();
        let output = import(&home, server.http, "letters.ndjson", &arguments).output().unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{output:?}");
        assert!(stdout.contains("6,000 documents numbered, 0 failed"), "{stdout}");
        assert!(stdout.contains("6,000 delivered, 0 pending, 0 dead"), "one delivery each: {stdout}");
        let numbers: BTreeSet<String> = written()
            .lines()
            .enumerate()
            .map(|(at, line)| {
                let line: Value = serde_json::from_str(line).unwrap();
                assert_eq!(line["document"]["at"], at, "in the order of the file");
                line["id"].as_str().unwrap().to_owned()
            })
            .collect();
        assert_eq!(numbers.len(), DOCUMENTS);
        assert!((0..3).all(|p| numbers.contains(&format!("P{p}-2000"))), "no number was skipped");
        let again = import(&home, server.http, "letters.ndjson", &arguments).output().unwrap();
        assert!(again.status.success() && home.delivered().len() == DOCUMENTS);
    }
}

#[test]
fn an_import_of_a_changed_file_is_refused_and_appended_lines_are_imported() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    fs::write(home.path("letters.ndjson"), "{\"n\":1}\n{\"n\":2}\n").unwrap();
    let run = || import(&home, server.http, "letters.ndjson", &["project=P"]).output().unwrap();
    assert!(run().status.success());
    let numbered = fs::read(home.path("letters.numbered.ndjson")).unwrap();
    fs::write(home.path("letters.ndjson"), "{\"n\":0}\n{\"n\":1}\n{\"n\":2}\n").unwrap();
    let refused = run();
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && stderr.contains("document 1 is not the one numbered before"),
        "{stderr}"
    );
    assert_eq!(fs::read(home.path("letters.numbered.ndjson")).unwrap(), numbered, "the output is unchanged");
    fs::write(home.path("letters.ndjson"), "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n").unwrap();
    assert!(run().status.success(), "lines may be appended");
    let written = fs::read_to_string(home.path("letters.numbered.ndjson")).unwrap();
    assert!(written.lines().nth(2).is_some_and(|line| line.contains("P-3")), "{written}");
}

#[test]
fn an_import_keeps_every_digit_of_a_document() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    let document = r#"{"z":1.10,"big":12345678901234567890123,"a":0.10000000000000000000000001}"#;
    fs::write(home.path("letters.ndjson"), document).unwrap();
    let output = import(&home, server.http, "letters.ndjson", &["project=P", "--wait"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let delivered = fs::read_to_string(home.path("delivered/document/project=P/P-1.json")).unwrap();
    let numbered = fs::read_to_string(home.path("letters.numbered.ndjson")).unwrap();
    assert!(delivered.contains(document) && numbered.contains(document), "{delivered}{numbered}");
}

#[test]
fn csv_rows_are_documents_and_a_bad_row_is_reported_with_its_line() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    fs::write(home.path("rows.csv"), "project,title\nP,\"a, b\"\n,no project\nQ,c\n").unwrap();
    let output = import(&home, server.http, "rows.csv", &["--wait"]).output().unwrap();
    let printed =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("2 documents numbered, 1 failed") && printed.contains("line 2: bad_scope"),
        "{printed}"
    );
    assert_eq!(home.delivered(), ["P-1", "Q-1"]);
    let wrong =
        import(&home, server.http, "rows.csv", &["--scope-from", "projekt=project"]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("has no parameter \"projekt\""), "{wrong:?}");
}

fn adopt(home: &Home, series: &str, file: &str, arguments: &[&str]) -> Output {
    let store = match &home.postgres {
        Some(postgres) => postgres.url(),
        None => format!("sqlite:{}", home.path("data").display()),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_bates"));
    command.env("BATES_CONFIG", home.path("bates.yaml")).env("BATES_STORE", &store);
    command.args(["adopt", "--series", series]).arg(home.path(file)).args(arguments).output().unwrap()
}

/// Takes every number that a key still has.
fn drain(server: &Server, key: &str) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        match server.redis_cli(&["LPOP", key, "100"]) {
            // Nodes stop issuing while numbers are adopted.
            answer if answer.contains("store_poisoned") => {}
            answer if answer.contains("exhausted") => return all,
            answer => all.extend(answer.lines().map(str::to_owned)),
        }
    }
}

#[test]
fn a_shuffled_series_skips_adopted_numbers_and_issues_all_others() {
    for home in [Home::folder(), Home::postgres()] {
        let series = "  id: { pattern: \"{seq:3}{check:verhoeff}\", order: shuffled, key: \"id\" }\n";
        let server = home.start(series);
        let first: Vec<String> = server.redis_cli(&["LPOP", "id", "20"]).lines().map(str::to_owned).collect();
        let mut running = Some(server);
        if home.postgres.is_none() {
            running.take().unwrap().stop();
        }
        let all = all_ids();
        let old: Vec<&str> = all
            .iter()
            .map(String::as_str)
            .filter(|id| !first.iter().any(|issued| issued == id))
            .step_by(2)
            .collect();
        fs::write(home.path("old.txt"), old.join("\n")).unwrap();
        let done = adopt(&home, "id", "old.txt", &[]);
        let stdout = String::from_utf8_lossy(&done.stdout);
        assert!(stdout.contains("490 numbers in 1 scope adopted; each is skipped"), "{done:?}");
        let server = running.unwrap_or_else(|| home.start(series));
        let mut seen = first;
        seen.extend(drain(&server, "id"));
        let twice = seen.iter().collect::<HashSet<_>>().len() != seen.len();
        assert!(!twice && seen.iter().all(|id| !old.contains(&id.as_str())), "{seen:?}");
        // A running node discards the rest of its range; a stopped one returned it.
        let lost = 1000 - old.len() - seen.len();
        assert!(lost == 0 || home.postgres.is_some() && lost <= 300, "{lost} are missing");
    }
}

/// Every number that the pattern can render.
fn all_ids() -> Vec<String> {
    let pattern = Pattern::compile("{seq:3}{check:verhoeff}", Options::default()).unwrap();
    let scope = pattern.scope(std::iter::empty::<(&str, &str)>(), None).unwrap();
    let rendered = (0..1000).map(|position| {
        let mut text = Vec::new();
        scope.render(Position::new(position).unwrap(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    });
    rendered.collect()
}

#[test]
fn adopted_numbers_are_never_issued_even_if_a_node_holds_their_range() {
    for home in [Home::folder(), Home::postgres()] {
        let series = "  document: { pattern: \"{project}-{seq}\", key: \"d:{project}\" }\n";
        let first = home.start(series);
        assert_eq!(first.redis_cli(&["LPOP", "d:P"]), "P-1");
        let mut running = Some(first);
        fs::write(home.path("old.csv"), "number,who\nP-20,a\nQ-7,b\nP-3,c\n").unwrap();
        fs::write(home.path("bad.txt"), "P-90\nno number\n").unwrap();
        let adopt = |file: &str, arguments: &[&str]| adopt(&home, "document", file, arguments);
        if home.postgres.is_none() {
            let refused = adopt("old.csv", &[]);
            assert!(
                String::from_utf8_lossy(&refused.stderr).contains("in use by another process"),
                "{refused:?}"
            );
            running.take().unwrap().stop();
        }
        let bad = adopt("bad.txt", &[]);
        assert!(String::from_utf8_lossy(&bad.stderr).contains("1 text that cannot be"), "{bad:?}");
        let done = adopt("old.csv", &["--column", "number"]);
        assert!(String::from_utf8_lossy(&done.stdout).contains("3 numbers in 2 scopes adopted"), "{done:?}");
        let server = running.unwrap_or_else(|| home.start(series));
        let next = loop {
            let answer = server.redis_cli(&["LPOP", "d:P"]);
            if !answer.contains("store_poisoned") {
                break answer;
            }
        };
        let position: u64 = next.strip_prefix("P-").unwrap().parse().unwrap();
        assert!(position > 20, "past the adopted numbers and the range of the node: {next}");
        assert_eq!(server.redis_cli(&["LPOP", "d:Q"]), "Q-8");
    }
}

#[test]
fn a_failed_line_can_be_corrected_but_not_removed_and_later_lines_keep_their_numbers() {
    let home = Home::folder();
    let server = home.start(&series(&home));
    let file = |lines: &[&str]| fs::write(home.path("l.ndjson"), lines.join("\n")).unwrap();
    let import = || import(&home, server.http, "l.ndjson", &[]).output().unwrap();
    let (one, bad, corrected, last) =
        (r#"{"project":"P","n":1}"#, r#"{"n":2}"#, r#"{"project":"P","n":2}"#, r#"{"project":"P","n":3}"#);
    file(&[one, bad, last]);
    assert_eq!(import().status.code(), Some(1));
    file(&[one, last]);
    let refused = String::from_utf8_lossy(&import().stderr).into_owned();
    assert!(refused.contains("the file"), "a line was removed: {refused}");
    file(&[one, corrected, last]);
    assert!(import().status.success());
    let written = fs::read_to_string(home.path("l.numbered.ndjson")).unwrap();
    let numbers: Vec<&str> = written.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(numbers, ["P-1", "P-3", "P-2"]);
}
