//! The outcome of one attempt: an answer of Bates, or an error.

use std::time::Duration;

use bates_api::Problem;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::tls::is_distrust;
use crate::error::{Error, is_temporary};

/// Max answer size: a hundred thousand long identifiers.
const BYTES_MAX: usize = 64 * 1024 * 1024;

#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) host: &'a str,
    pub(super) takes_numbers: bool,
}

pub(super) struct Failed {
    pub(super) error: Error,
    pub(super) can_retry: bool,
    pub(super) after: Option<Duration>,
}

impl Attempt<'_> {
    pub(super) async fn read(self, mut answer: reqwest::Response) -> Result<Vec<u8>, Failed> {
        let (status, after) = (answer.status(), after(answer.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.unread(&error))? {
            if body.len() + chunk.len() > BYTES_MAX {
                let reason = format!("more than {BYTES_MAX} bytes");
                let error = unexpected(self.host, status.as_u16(), &reason, self.takes_numbers);
                return Err(Failed { error, can_retry: false, after: None });
            }
            body.extend_from_slice(&chunk);
        }
        if status.is_success() {
            return Ok(body);
        }
        let status = status.as_u16();
        let Ok(problem) = serde_json::from_slice::<Problem>(&body) else {
            // From a proxy without an answer from Bates, which may have processed the call.
            let may_burn = self.takes_numbers && status >= 500;
            let error = unexpected(self.host, status, "the answer is not a problem of Bates", may_burn);
            return Err(Failed {
                error,
                can_retry: is_temporary(status) || matches!(status, 502 | 504),
                after,
            });
        };
        let error = Error::from_problem(Problem { status, ..problem });
        Err(Failed { error, can_retry: is_temporary(status), after })
    }

    /// A call that could not connect sent nothing, and burned nothing.
    pub(super) fn unsent(self, error: &reqwest::Error) -> Failed {
        match error.is_connect() {
            true if is_distrust(error) => {
                let error = Error::Untrusted { host: self.host.into(), cause: cause(error).into() };
                Failed { error, can_retry: false, after: None }
            }
            true => Attempt { takes_numbers: false, ..self }.unread(error),
            false => self.unread(error),
        }
    }

    pub(super) fn unread(self, error: &reqwest::Error) -> Failed {
        self.no_answer(cause(error))
    }

    pub(super) fn late(self, until: Duration) -> Failed {
        self.no_answer(format!("nothing within {until:.1?}"))
    }

    /// The number of attempts is filled in after the last.
    fn no_answer(self, cause: String) -> Failed {
        let (host, cause, may_burn) = (self.host.into(), cause.into(), self.takes_numbers);
        Failed { error: Error::NoAnswer { host, cause, attempts: 0, may_burn }, can_retry: true, after: None }
    }
}

pub(super) fn unexpected(host: &str, status: u16, reason: &str, may_burn: bool) -> Error {
    Error::Unexpected { host: host.into(), status, reason: reason.into(), may_burn }
}

/// The innermost error, which says most.
fn cause(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).last().unwrap_or(error).to_string()
}

/// In seconds, as Bates sends it. A date is ignored: it would need a clock that agrees with the server's.
fn after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
