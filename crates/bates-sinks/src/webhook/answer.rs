//! What an answer means for a document. Owns which statuses are worth another try. Must never read more of a body than
//! a person would, and never show the address, which may hold a token.

use std::error::Error as _;

use bates_core::Undelivered;
use reqwest::{Response, StatusCode};

/// Enough for any message to a person; the rest of the body is not waited for.
const BODY_BYTES_MAX: usize = 4_096;
const SHOWN_CHARS_MAX: usize = 200;

pub(super) async fn judge(mut response: Response) -> Result<(), Undelivered> {
    let status = response.status();
    // The status decides. A body is read even if nobody needs it: a connection whose answer was read is used again.
    let body = opening(&mut response).await;
    if status.is_success() {
        return Ok(());
    }
    let reason = match shown(&body) {
        shown if shown.is_empty() => format!("HTTP {status}"),
        shown => format!("HTTP {status}: {shown}"),
    };
    let undelivered = match status {
        // Between us and the receiver: it got no answer, and the receiver may have taken the document.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => Undelivered::Unanswered,
        status if is_final(status) => Undelivered::Refused,
        _ => Undelivered::Unavailable,
    };
    Err(undelivered(reason.into()))
}

/// A request that got no answer.
pub(super) fn unreached(error: reqwest::Error) -> Undelivered {
    let error = error.without_url();
    // What was not connected to has received nothing.
    let is_sent = !error.is_connect() && !error.is_builder();
    let undelivered = if is_sent { Undelivered::Unanswered } else { Undelivered::Unavailable };
    if error.is_timeout() {
        return undelivered("it did not answer in time".into());
    }
    let mut reason = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        reason = format!("{reason}: {error}");
        source = error.source();
    }
    undelivered(reason.into())
}

/// A redirect is not final: it says nothing of the document, and somebody may put the address right.
fn is_final(status: StatusCode) -> bool {
    let again =
        [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_EARLY, StatusCode::TOO_MANY_REQUESTS].contains(&status);
    status.is_client_error() && !again
}

async fn opening(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        let left = BODY_BYTES_MAX - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(left)]);
        if body.len() == BODY_BYTES_MAX {
            break;
        }
    }
    body
}

fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(SHOWN_CHARS_MAX).collect();
    text.replace(|c: char| c.is_control(), " ")
}
