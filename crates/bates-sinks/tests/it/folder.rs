//! Documents as files in a real folder.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use bates_core::{ScopeId, ScopeKey, Sink};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{delivery, expected, is_refused, is_unavailable, open_sink};

fn sink(folder: &Path) -> Box<dyn Sink> {
    open_sink(&json!({"object": {"url": format!("file://{}", folder.display())}})).unwrap()
}

fn read(root: &Path, path: &str) -> Value {
    serde_json::from_slice(&fs::read(root.join(path)).unwrap()).unwrap()
}

/// The names in a folder, without hidden files.
fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[tokio::test]
async fn a_document_is_stored_under_its_number_and_a_second_delivery_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let sink = sink(folder.path());
    let first = delivery(1001, r#"{"title":"é"}"#);
    let mut second = delivery(1, "2");
    second.scope_id = ScopeId { scope: ScopeKey::new([], None).unwrap(), ..second.scope_id };
    second.number = "../../etc/passwd".into();
    let mut batch = [first.clone(), second];
    assert_eq!(sink.deliver(&batch).await, [Ok(()), Ok(())]);
    let path = "document/project=PROJ/type=9012/PROJ-9012-1001.json";
    assert_eq!(read(folder.path(), path), expected(&first));
    assert_eq!(read(folder.path(), "document/%2E.%2F..%2Fetc%2Fpasswd.json")["document"], 2);

    let before = fs::read(folder.path().join(path)).unwrap();
    batch[0].attempt = 2;
    assert_eq!(sink.deliver(&batch).await, [Ok(()), Ok(())]);
    assert_eq!(fs::read(folder.path().join(path)).unwrap(), before);
    assert_eq!(names(&folder.path().join("document/project=PROJ/type=9012")).len(), 1);
}

#[tokio::test]
async fn a_document_that_cannot_be_written_blocks_no_other() {
    let folder = TempDir::new().unwrap();
    let sink = sink(folder.path());
    let scope = folder.path().join("document/project=PROJ/type=9012");
    fs::create_dir_all(scope.join("PROJ-9012-2.json/in-the-way")).unwrap();
    let batch: Vec<_> = (1..=200).map(|at| delivery(at, if at == 3 { "{" } else { "{}" })).collect();
    let answers = sink.deliver(&batch).await;
    for (delivery, answer) in batch.iter().zip(&answers) {
        match delivery.position.value() {
            2 | 3 => assert!(is_refused(answer), "{answer:?}"),
            _ => assert_eq!(answer, &Ok(())),
        }
    }
    assert_eq!(names(&scope).len(), 199);
    let staging = fs::read_dir(folder.path().join(".staging")).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_dir(staging.path()).unwrap().count(), 0, "a staged file was left behind");
}

#[test]
fn a_file_appears_whole_or_not_at_all() {
    let folder = TempDir::new().unwrap();
    let sink = sink(folder.path());
    let scope = folder.path().join("document/project=PROJ/type=9012");
    fs::create_dir_all(&scope).unwrap();
    let body = json!({"text": "x".repeat(1_000_000)}).to_string();
    let batch: Vec<_> = (0..60).map(|at| delivery(at, &body)).collect();
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                for name in names(&scope) {
                    let text = fs::read(scope.join(name)).unwrap();
                    serde_json::from_slice::<Value>(&text)
                        .expect("a partial file is visible under its final name");
                }
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let answers: Vec<_> = (0..2).flat_map(|_| runtime.block_on(sink.deliver(&batch))).collect();
        done.store(true, Ordering::SeqCst);
        assert!(answers.iter().all(Result::is_ok));
    });
}

#[tokio::test]
async fn a_folder_that_is_gone_is_unavailable_and_not_created_again() {
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("mounted");
    fs::create_dir(&root).unwrap();
    let sink = sink(&root);
    fs::rename(&root, folder.path().join("elsewhere")).unwrap();
    let answers = sink.deliver(&[delivery(1, "{}"), delivery(2, "{}")]).await;
    assert!(answers.iter().all(is_unavailable), "{answers:?}");
    assert!(!root.exists());
}

#[tokio::test]
async fn two_sinks_can_share_a_folder() {
    let folder = TempDir::new().unwrap();
    let (one, other) = (sink(folder.path()), sink(folder.path()));
    let batch: Vec<_> = (0..100).map(|at| delivery(at, "{}")).collect();
    let (first, second) = tokio::join!(one.deliver(&batch), other.deliver(&batch));
    assert!(first.iter().chain(&second).all(Result::is_ok));
    assert_eq!(names(&folder.path().join("document/project=PROJ/type=9012")).len(), 100);
    assert!(one.deliver(&[]).await.is_empty());
}
