//! What came of one attempt: an answer as Bates gives it, or why there is none.

use std::time::Duration;

use bates_api::Problem;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};

use super::tls::is_distrust;
use crate::error::{Error, is_passing};

/// The largest answer that is read: a hundred thousand long identifiers.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// An attempt that brought nothing.
pub(super) struct Failed {
    pub(super) error: Error,
    /// Whether another attempt may bring more.
    pub(super) may_pass: bool,
    /// How long the server asks to be left alone.
    pub(super) after: Option<Duration>,
}

/// Why an answer was not read.
pub(super) enum Broken {
    Sending(reqwest::Error),
    Reading(reqwest::Error),
    TooLarge(StatusCode),
}

/// An answer, read whole.
pub(super) struct Answer {
    status: StatusCode,
    after: Option<Duration>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) async fn read(mut answer: reqwest::Response) -> Result<Self, Broken> {
        let (status, after) = (answer.status(), after(answer.headers()));
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(Broken::Reading)? {
            if body.len() + chunk.len() > BYTES_MAX {
                return Err(Broken::TooLarge(status));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Self { status, after, body })
    }

    /// What was answered, if that was yes.
    pub(super) fn body(self, host: &str, takes_numbers: bool) -> Result<Vec<u8>, Failed> {
        if self.status.is_success() {
            return Ok(self.body);
        }
        let (status, after) = (self.status.as_u16(), self.after);
        let Ok(problem) = serde_json::from_slice::<Problem>(&self.body) else {
            // A proxy that had no answer from Bates. Whether Bates had the call is not known.
            let (may_burn, may_pass) =
                (takes_numbers && status >= 500, is_passing(status) || [502, 504].contains(&status));
            let error = strange(host, status, "no reason that Bates gives", may_burn);
            return Err(Failed { error, may_pass, after });
        };
        let error = Error::of(Problem { status, ..problem });
        Err(Failed { error, may_pass: is_passing(status), after })
    }
}

impl Failed {
    /// Nobody answered in time.
    pub(super) fn late(host: &str, until: Duration, takes_numbers: bool) -> Self {
        let cause = format!("nothing within {until:.1?}");
        Self { error: away(host, &cause, takes_numbers), may_pass: true, after: None }
    }

    /// The way to the server failed.
    pub(super) fn broken(broken: Broken, host: &str, takes_numbers: bool) -> Self {
        let error = match broken {
            // What could not connect has sent nothing.
            Broken::Sending(error) if error.is_connect() => {
                let (cause, may_pass) = (cause(&error), !is_distrust(&error));
                let error = if may_pass {
                    away(host, &cause, false)
                } else {
                    Error::Distrusted { host: host.into(), cause: cause.into() }
                };
                return Self { error, may_pass, after: None };
            }
            Broken::Sending(error) | Broken::Reading(error) => error,
            Broken::TooLarge(status) => {
                let reason = format!("more than {BYTES_MAX} bytes");
                let error = strange(host, status.as_u16(), &reason, takes_numbers);
                return Self { error, may_pass: false, after: None };
            }
        };
        Self { error: away(host, &cause(&error), takes_numbers), may_pass: true, after: None }
    }
}

/// The number of attempts is told once they are over.
fn away(host: &str, cause: &str, may_burn: bool) -> Error {
    Error::Away { host: host.into(), cause: cause.into(), attempts: 0, may_burn }
}

pub(super) fn strange(host: &str, status: u16, reason: &str, may_burn: bool) -> Error {
    Error::Strange { host: host.into(), status, reason: reason.into(), may_burn }
}

/// The last of the errors behind one another, which is the one that tells.
fn cause(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}

/// In seconds, as Bates says it. A date is not understood: it would need a clock that agrees with the server's.
fn after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
