//! Why a sink cannot be opened. Must never hold a secret, nor an address that may hold one.

/// A description that makes no sink: the field, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct SinkError {
    /// The field, as in `webhook.url`.
    pub field: &'static str,
    /// What is wrong with it.
    pub problem: Box<str>,
}

impl SinkError {
    pub(crate) fn new(field: &'static str, problem: impl Into<Box<str>>) -> Self {
        Self { field, problem: problem.into() }
    }
}
