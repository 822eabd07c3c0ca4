//! Reads the certificate of a running server again when its files change.

use std::sync::Arc;
use std::time::Duration;

use bates_server::Tls;

use crate::background::ticks;
use crate::output;

const RELOAD_PERIOD: Duration = Duration::from_secs(1);

/// Compares the contents, not the times: a mounted Secret is replaced by a link to files that may be older.
pub(super) async fn reload(tls: Arc<Tls>) {
    let mut ticks = ticks(RELOAD_PERIOD);
    loop {
        ticks.tick().await;
        let tls = tls.clone();
        // Off the runtime: a network file system may block.
        match tokio::task::spawn_blocking(move || tls.reload()).await {
            Ok(Ok(true)) => output::print_note("the TLS certificate was replaced; new connections use it"),
            Ok(Err(error)) => {
                output::print_note(&format!(
                    "the TLS certificate was not replaced, the old one stays in use: {error}"
                ));
            }
            // A reading that panicked changes nothing.
            Ok(Ok(false)) | Err(_) => {}
        }
    }
}
