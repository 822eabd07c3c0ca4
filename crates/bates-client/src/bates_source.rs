//! The calls of a pool to Bates: numbers, and the epoch of a list.

use std::time::Duration;

use bates_api::{AttachRequest, Attachment, PoolNumberRequest, PoolNumbers};

use crate::client::Client;
use crate::error::{Error, OpenError};
use crate::pool::Settings;
use crate::redis_list::Server;
use crate::series::Series;
use crate::transport::{Call, Retry};

const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// Longer than a healthy server needs: Redis is tried meanwhile.
const NEXT_TIMEOUT: Duration = Duration::from_secs(30);
/// No call waits for this, unless Bates is unreachable as well.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(1);
/// Numbers in one answer.
const COUNT_MAX: usize = 10_000;

pub(crate) struct BatesSource(Series);

impl BatesSource {
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        let builder = Client::builder(&*settings.bates).connect_timeout(CONNECT_TIMEOUT);
        let builder = builder.total_time(NEXT_TIMEOUT).answer_timeout(NEXT_TIMEOUT);
        // Retries once without a pause if the connection failed. Numbers that the first attempt took become gaps.
        let mut builder = builder.attempts(2).pause(Duration::ZERO, Duration::ZERO);
        if let Some(secret) = &settings.secret {
            builder = builder.secret(&**secret);
        }
        let client = builder.build().map_err(|error| match error {
            Error::BadArgument { what: "secret", reason } => OpenError::Secret(reason),
            Error::BadArgument { reason, .. } => OpenError::Bates(reason),
            error => OpenError::Bates(error.to_string().into()),
        })?;
        Ok(Self(client.series(&*settings.series).scope(settings.scope.clone())))
    }

    /// Numbers that Redis never had, and why there are fewer than `count`.
    pub(crate) async fn take(&self, count: usize) -> (Vec<String>, Option<Error>) {
        let mut numbers = Vec::new();
        while numbers.len() < count {
            match self.next(count - numbers.len()).await {
                Ok(more) => numbers.extend(more),
                Err(error) => return (numbers, Some(error)),
            }
        }
        (numbers, None)
    }

    /// One answer: at least one number, fewer than `count` at the limit of an answer or the end of the scope.
    async fn next(&self, count: usize) -> Result<Vec<String>, Error> {
        let Series { client, scope, .. } = &self.0;
        let request = PoolNumberRequest { scope: scope.clone(), count: count.min(COUNT_MAX) as u64 };
        let call = Call::post(self.0.path(["pool", "next"])?, Retry::IfBroken).json(&request)?;
        let PoolNumbers { values } = client.transport.call(call).await?;
        let unexpected = || client.transport.unexpected("the answer has no numbers", false);
        if values.is_empty() { Err(unexpected()) } else { Ok(values) }
    }

    /// The list and its epoch on this Redis server. A server that Bates does not know starts a new epoch.
    pub(crate) async fn attach(&self, server: &Server) -> Result<Attachment, Error> {
        let Series { client, scope, .. } = &self.0;
        let (run_id, replication_id) = (server.run.clone(), server.replication.clone());
        let request = AttachRequest { scope: scope.clone(), run_id, replication_id };
        let call = Call::post(self.0.path(["pool", "attach"])?, Retry::IfBroken).json(&request)?;
        client.transport.call(call.within(ATTACH_TIMEOUT)).await
    }
}
