//! `cargo xtask bench sinks`: documents per second that a folder sink writes and syncs. Must never leave its files.

use std::time::Instant;

use bates_core::{Delivery, Position, ScopeId, ScopeKey};
use bates_sinks::{ObjectDescription, Secret, SinkDescription};
use uuid::Uuid;

const DOCUMENTS: usize = 200_000;
const BODY_BYTES: usize = 1_024;

fn delivery(position: u64, body: &str) -> Delivery {
    // A hundred scopes, like documents of several projects.
    let project = format!("P{}", position % 100);
    let scope = ScopeKey::new([("project", &*project)], None).expect("a scope");
    Delivery {
        document_id: Uuid::now_v7(),
        scope_id: ScopeId { series: "document".parse().expect("a name"), scope },
        position: Position::new(position).expect("a position"),
        number: format!("{project}-{position}").into(),
        body: body.into(),
        created: jiff::Timestamp::UNIX_EPOCH,
        attempt: 1,
    }
}

/// `folder [DOCUMENTS] [BATCH] [FOLDER]`. One run per process: some file systems discard the blocks of removed files during
/// later syncs, so a second run would pay for the first.
fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let count = |at: usize| arguments.get(at).map(|argument| argument.parse().expect("a count"));
    let documents = count(0).unwrap_or(DOCUMENTS);
    let folder = tempfile::tempdir_in(arguments.get(2).map_or(".", String::as_str)).expect("a folder");
    let root = folder.path().canonicalize().expect("a folder");
    let url = Secret::new(format!("file://{}", root.display()));
    let sink = SinkDescription::Object(ObjectDescription { url }).open().expect("a sink");
    let size = count(1).unwrap_or(sink.batch_max());
    let body = format!("{{\"text\":\"{}\"}}", "x".repeat(BODY_BYTES - 11));
    let deliveries: Vec<_> = (0..documents).map(|position| delivery(position as u64, &body)).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let started = Instant::now();
    for batch in deliveries.chunks(size) {
        assert!(runtime.block_on(sink.deliver(batch)).iter().all(Result::is_ok));
    }
    let seconds = started.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = documents as f64 / seconds;
    println!("{documents} documents in batches of {size}: {seconds:.1} s, {rate:.0} files/s");
}
