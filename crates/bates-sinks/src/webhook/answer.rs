//! Decides from an answer, or from the lack of one, whether a document is delivered, refused or tried again. Must never
//! read a large body completely, and never show the address, which may hold a token.

use std::error::Error as _;

use bates_core::DeliveryError;
use reqwest::{Response, StatusCode};

/// Enough for an error message; the rest of the body is not read.
const BODY_BYTES_MAX: usize = 4_096;
const EXCERPT_CHARS_MAX: usize = 200;

pub(super) async fn classify_response(mut response: Response) -> Result<(), DeliveryError> {
    let status = response.status();
    // Only the status decides. The body is read so that the connection can be reused.
    let body = read_start(&mut response).await;
    if status.is_success() {
        return Ok(());
    }
    let reason = match excerpt(&body) {
        excerpt if excerpt.is_empty() => format!("HTTP {status}"),
        excerpt => format!("HTTP {status}: {excerpt}"),
    };
    let to_error = match status {
        // A gateway got no answer from the receiver, which may have taken the document.
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => DeliveryError::Unanswered,
        status if is_final(status) => DeliveryError::Refused,
        _ => DeliveryError::Unavailable,
    };
    Err(to_error(reason.into()))
}

pub(super) fn classify_error(error: reqwest::Error) -> DeliveryError {
    let error = error.without_url();
    // Without a connection the receiver got nothing.
    let may_be_sent = !error.is_connect() && !error.is_builder();
    let to_error = if may_be_sent { DeliveryError::Unanswered } else { DeliveryError::Unavailable };
    if error.is_timeout() {
        return to_error("the receiver did not answer in time".into());
    }
    let sources = std::iter::successors(error.source(), |&error| error.source());
    to_error(sources.fold(error.to_string(), |reason, source| format!("{reason}: {source}")).into())
}

/// A redirect is not final: it says nothing about the document, and an operator may correct the address.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && !matches!(status.as_u16(), 408 | 425 | 429)
}

async fn read_start(response: &mut Response) -> Vec<u8> {
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

fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text: String = text.trim().chars().take(EXCERPT_CHARS_MAX).collect();
    text.replace(|c: char| c.is_control(), " ")
}
