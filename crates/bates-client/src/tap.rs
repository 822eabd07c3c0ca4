//! The way to the list in Redis: a connection, the server behind it, and the epoch that Bates told for that server.

use std::time::Duration;

use bates_api::Attachment;
use redis::Client;

use crate::bates::Bates;
use crate::error::{OpenError, TapError};
use crate::list::{Link, Popped, Server};
use crate::settings::Settings;

/// A list is tried with what is known, and once more with what was learned.
const TRIES: usize = 2;

/// The way to a list.
pub(crate) struct Tap {
    client: Client,
    link: Option<Link>,
    /// Whether Bates was told which server is behind the link.
    is_attached: bool,
    /// The server that an epoch was learned for, and the list.
    known: Option<(Server, Attachment)>,
    ignores_server: bool,
}

impl Tap {
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let refused = |problem: redis::RedisError| OpenError::Redis(problem.to_string().into());
        let client = Client::open(&*settings.redis).map_err(refused)?;
        #[cfg(feature = "planted-bugs")]
        let ignores_server = settings.ignores_server;
        #[cfg(not(feature = "planted-bugs"))]
        let ignores_server = false;
        Ok(Self { client, link: None, is_attached: false, known: None, ignores_server })
    }

    /// Takes numbers from the list; none if it is empty, or if none were asked for. The script has so long to answer.
    ///
    /// Invariant: after an error there is no link, so that an answer that comes later finds nobody.
    pub(crate) async fn draw(
        &mut self,
        bates: &Bates,
        count: usize,
        patience: Duration,
    ) -> Result<Vec<String>, TapError> {
        // While this waits, the link is not in its place: whoever gives up waiting has dropped it.
        let mut link = match self.link.take() {
            Some(link) => link,
            None => {
                self.is_attached = false;
                Link::connect(&self.client, self.ignores_server).await?
            }
        };
        let mut why = Box::default();
        for _ in 0..TRIES {
            if !self.is_attached {
                self.attach(bates, &mut link).await?;
            }
            let popped = match &self.known {
                Some((server, list)) if count > 0 => link.pop(list, server, count, patience).await?,
                _ => Popped::Numbers(Vec::new()),
            };
            match popped {
                Popped::Numbers(numbers) => {
                    self.link = Some(link);
                    return Ok(numbers);
                }
                Popped::Other(reason) => (self.is_attached, why) = (false, reason),
            }
        }
        Err(TapError::Other(why))
    }

    /// Learns the epoch for the server behind the link.
    async fn attach(&mut self, bates: &Bates, link: &mut Link) -> Result<(), TapError> {
        let server = link.server().await?;
        match bates.attach(&server).await {
            Ok(list) => self.known = Some((server, list)),
            // Invariant: without Bates, only a server whose memory is the one that the epoch was learned for.
            Err(error)
                if error.is_away() && self.known.as_ref().is_some_and(|(known, _)| *known == server) => {}
            Err(error) => return Err(TapError::Attach(error)),
        }
        self.is_attached = true;
        Ok(())
    }
}
