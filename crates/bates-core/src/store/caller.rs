//! The port to callers: their tokens and quotas.

use super::StoreResult;
use crate::caller::{CallerToken, DrawnQuota, QuotaDraw, QuotaRequest, TokenChange};
use crate::operation::Operation;

#[trait_variant::make(Send)]
pub trait CallerStore: Send + Sync + 'static {
    /// All tokens, by name.
    async fn tokens(&self) -> StoreResult<Vec<CallerToken>>;

    /// Adds, replaces or removes a token, with its operation. Answers `false`, and changes nothing, unless
    /// [`TokenChange::fits`]. A shared store raises its revision, so that every node reads the tokens again.
    async fn change_token(&self, change: TokenChange, operation: Operation) -> StoreResult<bool>;

    /// Draws from the quota of a caller for the current day (UTC), as [`QuotaDraw::decide`] says.
    ///
    /// Invariant: the draws of a day never exceed the quota. A draw whose answer is lost counts.
    async fn draw_quota(&self, request: QuotaRequest) -> StoreResult<QuotaDraw>;

    /// Of every caller that ever drew, by name.
    async fn drawn_quotas(&self) -> StoreResult<Vec<DrawnQuota>>;
}
