//! The port to where documents go.

use std::future::Future;
use std::pin::Pin;

use bates_pattern::Position;
use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::scope::Place;

/// Where the documents of a series go: at least once, each with an id that stays. A sink has `deliver` or `deliver_each`; each
/// does by default what the other does.
///
/// Invariant: a document counts as delivered only if it outlasts a crash of whoever received it, as far as the sink
/// can tell.
pub trait Sink: Send + Sync + 'static {
    /// Delivers documents; answers for each, in their order. One that fails must not keep others from being tried.
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> Delivering<'a> {
        Box::pin(async move {
            let outcomes = Outcomes::unknown(deliveries.len());
            self.deliver_each(deliveries, &outcomes).await;
            outcomes.known("the sink told nothing of it")
        })
    }

    /// The same, but reports each outcome as soon as it is known. Outcomes that were reported count even if the rest of
    /// the batch takes too long.
    fn deliver_each<'a>(&'a self, deliveries: &'a [Delivery], outcomes: &'a Outcomes) -> DeliveringEach<'a> {
        Box::pin(async {
            for (at, outcome) in self.deliver(deliveries).await.into_iter().enumerate() {
                outcomes.tell(at, outcome);
            }
        })
    }

    /// How many documents it takes at once.
    fn batch_max(&self) -> usize;

    /// Where it delivers to, for people, without a secret.
    fn describe(&self) -> String;
}

/// Deliveries under way: an answer for each.
pub type Delivering<'a> = Pin<Box<dyn Future<Output = Vec<Result<(), Undelivered>>> + Send + 'a>>;

/// Deliveries under way, each reported by itself.
pub type DeliveringEach<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// What became of deliveries, as far as it is known.
#[derive(Debug)]
pub struct Outcomes(Mutex<Vec<Option<Result<(), Undelivered>>>>);

impl Outcomes {
    /// Of this many deliveries none is known yet.
    pub fn unknown(deliveries: usize) -> Self {
        Self(Mutex::new(vec![None; deliveries]))
    }

    /// Tells what became of a delivery, by its place in the batch.
    pub fn tell(&self, at: usize, outcome: Result<(), Undelivered>) {
        if let Some(told) = self.0.lock().get_mut(at) {
            *told = Some(outcome);
        }
    }

    /// How many were told.
    pub fn told(&self) -> usize {
        self.0.lock().iter().flatten().count()
    }

    /// All of them. Those without an outcome were not answered, for this reason.
    pub fn known(self, otherwise: &str) -> Vec<Result<(), Undelivered>> {
        let outcomes = self.0.into_inner().into_iter();
        outcomes
            .map(|outcome| outcome.unwrap_or_else(|| Err(Undelivered::Unanswered(otherwise.into()))))
            .collect()
    }
}

/// A document on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same for every try.
    pub event: Uuid,
    /// Where its number is from.
    pub place: Place,
    /// The position of its number.
    pub position: Position,
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
    /// The sink did not answer, and may have taken the document.
    #[error("no answer: {0}")]
    Unanswered(Box<str>),
}
