//! How many documents a folder takes in a second, each on disk. Must never leave its files behind.

use std::time::Instant;

use bates_core::{Delivery, Place, ScopeKey};
use bates_sinks::{Description, ObjectDescription, Secret};
use uuid::Uuid;

const DOCUMENTS: u64 = 200_000;
const BODY_BYTES: usize = 1_024;

fn delivery(position: u64, body: &str) -> Delivery {
    // A hundred scopes, as documents of several projects come mixed.
    let project = format!("P{}", position % 100);
    let scope = ScopeKey::new([("project", &*project)], None).expect("a scope");
    Delivery {
        event: Uuid::now_v7(),
        place: Place { series: "document".parse().expect("a name"), scope },
        position,
        number: format!("{project}-{position}").into(),
        body: body.into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        attempt: 1,
    }
}

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let folder = tempfile::tempdir_in(folder.unwrap_or_else(|| ".".to_owned())).expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    let url = Secret::new(format!("file://{}", root.display()));
    let sink = Description::Object(ObjectDescription { url }).open().expect("a sink");
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(BODY_BYTES - 11));
    let documents: Vec<_> = (0..DOCUMENTS).map(|position| delivery(position, &body)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for size in [500, sink.batch_max(), 20_000] {
        let started = Instant::now();
        for batch in documents.chunks(size) {
            assert!(runtime.block_on(sink.deliver(batch)).iter().all(Result::is_ok));
        }
        let seconds = started.elapsed().as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = DOCUMENTS as f64 / seconds;
        println!("{DOCUMENTS} documents in batches of {size}: {seconds:.1} s, {rate:.0} files/s");
        std::fs::remove_dir_all(root.join("document")).expect("removed");
    }
}
