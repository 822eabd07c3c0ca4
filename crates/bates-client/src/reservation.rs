//! Reservations: a number for a document that the caller saves itself, confirmed within a time or voided.

use std::time::Duration;

use bates_api::{KnownDocument, Path, Reservation, ReservationRequest};

use crate::client::Client;
use crate::document::{checked_key, fresh_key};
use crate::error::Error;
use crate::series::Series;
use crate::transport::{Call, Retry};

impl Series {
    /// Reserves a number for so long, in whole seconds, up to 30 days. Confirm it once its document is saved, or void it.
    /// What is not confirmed in time is voided.
    ///
    /// ```no_run
    /// # async fn first(client: bates_client::Client) -> Result<(), bates_client::Error> {
    /// use std::time::Duration;
    ///
    /// let reserved = client.series("invoice").reserve(Duration::from_mins(15)).await?;
    /// // Save the document under reserved.id, then:
    /// client.confirm(&reserved.token).await?;
    /// # Ok(()) }
    /// ```
    pub async fn reserve(&self, lasts: Duration) -> Result<Reservation, Error> {
        self.reserve_as(fresh_key(), lasts).await
    }

    /// The same with an idempotency key: the same request gets the same number, for ever.
    pub async fn reserve_once(&self, key: impl Into<String>, lasts: Duration) -> Result<Reservation, Error> {
        self.reserve_as(checked_key(key.into())?, lasts).await
    }

    async fn reserve_as(&self, key: String, lasts: Duration) -> Result<Reservation, Error> {
        if lasts.subsec_nanos() > 0 {
            return Err(Error::wrong("time of a reservation", format!("{lasts:?} are no whole seconds")));
        }
        let seconds = Some(lasts.as_secs());
        let request = ReservationRequest { scope: self.scope.clone(), date: self.date, seconds };
        let call = Call::post(self.path(["reservations"])?, Retry::Freely).json(&request)?.key(&key)?;
        self.client.transport.call(call).await
    }
}

impl Client {
    /// The document of a reservation is saved. Twice is once.
    pub async fn confirm(&self, token: &str) -> Result<KnownDocument, Error> {
        self.post(Path::v1(["reservations", token, "confirm"])?).await
    }

    /// The document of a reservation will not be saved: its number is a gap from now on. Twice is once.
    pub async fn void(&self, token: &str) -> Result<KnownDocument, Error> {
        self.post(Path::v1(["reservations", token, "void"])?).await
    }
}
