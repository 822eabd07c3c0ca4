//! The upload service: each file has one number, and each number one file.

use std::collections::BTreeSet;
use std::{fs, thread};

use tempfile::tempdir;

use super::process::Example;
use crate::http;
use crate::running::Server;

const PEOPLE: usize = 4;
const FILES: usize = 25;

fn upload(example: &Example, path: &str, key: Option<&str>, file: &str) -> (u16, String) {
    let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
    let (status, _, answer) = example.ask(&format!("POST /{path}"), &key, file);
    (status, answer.trim_end().to_owned())
}

fn download(example: &Example, id: &str) -> (u16, String) {
    let (status, _, file) = example.ask(&format!("GET /{id}"), "", "");
    (status, file)
}

#[test]
fn every_file_has_a_number_and_a_retry_gets_the_same_one() {
    let (data, folder) = (tempdir().unwrap(), tempdir().unwrap());
    let bates = Server::start(data.path());
    let arguments = [format!("http://127.0.0.1:{}", bates.http), folder.path().display().to_string()];
    let example = Example::start("upload", &arguments);
    let numbers: Vec<String> = thread::scope(|threads| {
        let people: Vec<_> = (0..PEOPLE)
            .map(|person| {
                let example = &example;
                threads.spawn(move || {
                    let each = (0..FILES).map(|nth| {
                        let (key, file) = (format!("{person}-{nth}"), format!("file {nth} of {person}"));
                        let (status, id) = upload(example, "PROJ/9012", Some(&key), &file);
                        assert_eq!(status, 200, "{id}");
                        assert_eq!(
                            upload(example, "PROJ/9012", Some(&key), &file),
                            (200, id.clone()),
                            "a retry"
                        );
                        assert_eq!(download(example, &id), (200, file));
                        id
                    });
                    each.collect::<Vec<_>>()
                })
            })
            .collect();
        people.into_iter().flat_map(|person| person.join().unwrap()).collect()
    });
    let distinct: BTreeSet<String> = numbers.iter().cloned().collect();
    let expected = (1001..).take(PEOPLE * FILES).map(|seq| format!("PROJ-9012-{seq}"));
    assert_eq!(distinct, expected.collect(), "each number once, and none is missing");
    let saved: BTreeSet<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(saved, distinct, "no file without a number, and no number without a file");
    assert_eq!(upload(&example, "PROJ/9012", Some("0-0"), "another file").0, 200);
    let (_, first) = upload(&example, "PROJ/9012", Some("0-0"), "another file");
    assert_eq!(download(&example, &first).1, "file 0 of 0", "a confirmed file is not overwritten");
    assert_eq!(upload(&example, "PROJ/9012", None, "x").0, 400);
    assert_eq!(upload(&example, "PR%2FOJ/9012", Some("k"), "x").0, 502);
    assert_eq!(download(&example, "..%2Fbates.db").0, 404);
    // The file cannot be saved, so the service voids the number and the gap has a reason.
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(upload(&example, "PROJ/9012", Some("unsaved"), "x").0, 507);
    fs::create_dir_all(folder.path()).unwrap();
    assert_eq!(
        upload(&example, "PROJ/9012", Some("unsaved"), "x").0,
        410,
        "no file is saved under a voided number"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    http::ask(bates.http, "POST", "/v1/reconcile", "");
    let (_, gaps) = http::ask(bates.http, "GET", "/v1/gaps?series=document", "");
    let gaps: Vec<_> =
        gaps["gaps"].as_array().unwrap().iter().map(|gap| gap["reason"].as_str().unwrap()).collect();
    assert_eq!(gaps, ["voided"]);
}
