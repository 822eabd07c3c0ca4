//! The port to where documents go.

use std::future::Future;
use std::pin::Pin;

use jiff::Timestamp;
use uuid::Uuid;

use crate::place::Place;

/// Where the documents of a series go: at least once, each with an id that stays.
///
/// Invariant: a document counts as delivered only if it outlasts a crash of whoever received it, as far as the sink
/// can tell.
pub trait Sink: Send + Sync + 'static {
    /// Delivers documents; answers for each, in their order. One that fails must not keep others from being tried.
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> Delivering<'a>;

    /// How many documents it takes at once.
    fn batch_max(&self) -> usize;

    /// Where it delivers to, for people, without a secret.
    fn describe(&self) -> String;
}

/// Deliveries under way: an answer for each.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Vec<Result<(), Undelivered>>> + Send + 'a>>;

/// A document on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same for every try.
    pub event: Uuid,
    /// Where its number is from.
    pub place: Place,
    /// The position of its number.
    pub position: u64,
    /// Its number.
    pub number: Box<str>,
    /// The document, as JSON.
    pub body: Box<str>,
    /// When it was numbered.
    pub created: Timestamp,
    /// Which try it is, from 1.
    pub attempt: u32,
}

/// Why a document was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undelivered {
    /// The sink does not take this one.
    #[error("refused: {0}")]
    Refused(Box<str>),
    /// The sink takes nothing now.
    #[error("unavailable: {0}")]
    Unavailable(Box<str>),
}
