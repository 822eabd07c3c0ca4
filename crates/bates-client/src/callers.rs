//! Callers that are made at run time, and the log of what callers changed.

use bates_api::{
    ChainHead, ChainList, IssuedToken, OperationPage, Path, RotationRequest, Token, TokenPage, TokenRequest,
};

use crate::client::Client;
use crate::error::Error;
use crate::pages::Pages;
use crate::transport::{Call, Retry};

/// Tokens, by name.
pub type Tokens = Pages<TokenPage>;
/// The operations log, the oldest first.
pub type Operations = Pages<OperationPage>;

impl Client {
    /// The tokens that this caller manages.
    pub fn tokens(&self) -> Tokens {
        Pages::new(self, "tokens")
    }

    /// Adds a token. The answer has its secret, which is never shown again.
    pub async fn add_token(&self, request: &TokenRequest) -> Result<IssuedToken, Error> {
        // Sent again only if it did not arrive: the secret of a token that was added is lost with its answer.
        self.transport.post(Path::v1(["tokens"])?, request, Retry::IfBroken).await
    }

    /// Gives a token a new secret. The one before is accepted for `overlap_s` more; a day if `None`.
    pub async fn rotate_token(&self, name: &str, overlap_s: Option<u64>) -> Result<IssuedToken, Error> {
        let path = Path::v1(["tokens", name, "rotate"])?;
        self.transport.post(path, &RotationRequest { overlap_s }, Retry::IfBroken).await
    }

    /// Revokes a token, and answers with the token as it was.
    pub async fn revoke_token(&self, name: &str) -> Result<Token, Error> {
        self.transport.call(Call::delete(Path::v1(["tokens", name])?, Retry::IfBroken)).await
    }

    /// Who changed what.
    pub fn operations(&self) -> Operations {
        Pages::new(self, "operations")
    }

    /// The heads of the chains of the operations log.
    pub async fn chains(&self) -> Result<Vec<ChainHead>, Error> {
        let ChainList { chains } = self.transport.get(Path::v1(["operations", "chains"])?).await?;
        Ok(chains)
    }

    /// A page of the records of a chain; `after` is that of the page before.
    pub async fn chain_records(&self, chain: &str, after: Option<&str>) -> Result<OperationPage, Error> {
        let path = Path::v1(["operations", "chains", chain])?;
        let path = after.into_iter().fold(path, |path, after| path.with("after", after));
        self.transport.get(path.with("limit", "10000")).await
    }
}
