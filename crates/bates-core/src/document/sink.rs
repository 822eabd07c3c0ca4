//! The port to the receivers of documents.

use std::future::Future;
use std::pin::Pin;

use bates_pattern::Position;
use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::scope::ScopeId;

/// Receives the documents of a series, each at least once and always with the same id.
///
/// Invariant: `Ok` means that the document survives a crash of the receiver, as far as the sink can tell.
pub trait Sink: Send + Sync + 'static {
    /// Delivers documents, and returns one outcome for each, in their order. After a failure it still attempts the others.
    /// A sink that implements `deliver_each` calls [`deliver_through_each`] here.
    fn deliver<'a>(&'a self, deliveries: &'a [Delivery]) -> DeliverFuture<'a>;

    /// Delivers documents, and reports each outcome at once: it counts even if the rest of the batch takes too long.
    fn deliver_each<'a>(
        &'a self,
        deliveries: &'a [Delivery],
        outcomes: &'a DeliveryOutcomes,
    ) -> DeliverEachFuture<'a> {
        Box::pin(async {
            for (index, outcome) in self.deliver(deliveries).await.into_iter().enumerate() {
                outcomes.report(index, outcome);
            }
        })
    }

    /// Max documents in one call.
    fn batch_max(&self) -> usize;

    /// Its destination, for people. Must not contain a secret.
    fn describe(&self) -> String;
}

/// Implements [`Sink::deliver`] by [`Sink::deliver_each`].
pub fn deliver_through_each<'a>(sink: &'a impl Sink, deliveries: &'a [Delivery]) -> DeliverFuture<'a> {
    Box::pin(async move {
        let outcomes = DeliveryOutcomes::unknown(deliveries.len());
        sink.deliver_each(deliveries, &outcomes).await;
        outcomes.into_results("the sink reported no outcome")
    })
}

pub type DeliverFuture<'a> = Pin<Box<dyn Future<Output = Vec<DeliveryResult>> + Send + 'a>>;

pub type DeliverEachFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// The outcomes of a batch that are known so far.
#[derive(Debug)]
pub struct DeliveryOutcomes(Mutex<Vec<Option<DeliveryResult>>>);

impl DeliveryOutcomes {
    pub fn unknown(deliveries: usize) -> Self {
        Self(Mutex::new(vec![None; deliveries]))
    }

    pub fn report(&self, index: usize, outcome: DeliveryResult) {
        if let Some(slot) = self.0.lock().get_mut(index) {
            *slot = Some(outcome);
        }
    }

    pub fn reported_count(&self) -> usize {
        self.0.lock().iter().flatten().count()
    }

    /// All outcomes. A delivery without one counts as unanswered, for this reason.
    pub fn into_results(self, reason: &str) -> Vec<DeliveryResult> {
        let unanswered = || Err(DeliveryError::Unanswered(reason.into()));
        self.0.into_inner().into_iter().map(|outcome| outcome.unwrap_or_else(unanswered)).collect()
    }
}

/// A claimed document. The verdict on it must name its attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same for every attempt.
    pub document_id: Uuid,
    pub scope_id: ScopeId,
    pub position: Position,
    pub number: Box<str>,
    /// JSON.
    pub body: Box<str>,
    pub created: Timestamp,
    /// Counted from 1.
    pub attempt: u32,
}

pub(crate) type DeliveryResult = Result<(), DeliveryError>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeliveryError {
    /// The sink does not take this document.
    #[error("refused: {0}")]
    Refused(Box<str>),
    /// The sink takes no documents now.
    #[error("unavailable: {0}")]
    Unavailable(Box<str>),
    /// The sink did not answer, and may have taken the document.
    #[error("no answer: {0}")]
    Unanswered(Box<str>),
}
