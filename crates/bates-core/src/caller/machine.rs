//! Adds, rotates and revokes tokens, and keeps the set that this node knows.

use std::sync::Arc;
use std::time::Duration;

use super::token::check_count;
use super::{
    Allowance, AllowanceError, CallerToken, SecretDigest, Shortage, TakenAllowance, TokenChange, TokenError,
};
use crate::audit::Actor;
use crate::machine::Machine;
use crate::operation::OperationKind;
use crate::store::{Store, StoreResult};

/// The tokens of the store, as this node last read them. While the store is away, they stay as they are.
pub type TokenSet = Arc<[CallerToken]>;

impl<S: Store> Machine<S> {
    pub fn tokens(&self) -> TokenSet {
        self.tokens.load().as_ref().clone()
    }

    /// Reads the tokens of the store. A shared store raises its revision with each change of them.
    pub async fn load_tokens(&self) -> StoreResult<()> {
        // Invariant: a set that was read earlier never replaces one that was read later.
        let _loading = self.tokens_loading.lock().await;
        let tokens = self.store().tokens().await?;
        self.tokens.store(Arc::new(tokens.into()));
        Ok(())
    }

    /// A caller with limited rights may add fewer.
    pub async fn add_token(
        &self,
        token: CallerToken,
        is_limited: bool,
        actor: Actor<'_>,
    ) -> Result<(), TokenError> {
        // One after the other, so that the count is exact on this node.
        let _adding = self.tokens_adding.lock().await;
        check_count(&self.store().tokens().await?, &token.name, is_limited)?;
        let name = token.name.clone();
        let change = TokenChange { name: name.clone(), before: None, after: Some(token) };
        match self.change_token(change, OperationKind::TokenAdded, actor).await {
            Err(TokenError::ChangedMeanwhile(name)) => Err(TokenError::Exists(name)),
            outcome => outcome,
        }
    }

    /// Replaces the secret of a token. Returns the token as it is then.
    pub async fn rotate_token(
        &self,
        before: CallerToken,
        digest: SecretDigest,
        overlap: Duration,
        actor: Actor<'_>,
    ) -> Result<CallerToken, TokenError> {
        let now = self.runtime.now();
        if let Some(at) = before.expires.filter(|expires| *expires <= now) {
            return Err(TokenError::Expired { name: before.name, at });
        }
        let after = before.rotated(digest, actor.stamp(now).at, overlap);
        let name = before.name.clone();
        let change = TokenChange { name, before: Some(before), after: Some(after.clone()) };
        self.change_token(change, OperationKind::TokenRotated, actor).await?;
        Ok(after)
    }

    pub async fn revoke_token(&self, before: CallerToken, actor: Actor<'_>) -> Result<(), TokenError> {
        let change = TokenChange { name: before.name.clone(), before: Some(before), after: None };
        self.change_token(change, OperationKind::TokenRevoked, actor).await
    }

    /// The token of this name, as the store has it now.
    pub async fn find_token(&self, name: &str) -> Result<CallerToken, TokenError> {
        let tokens = self.store().tokens().await?;
        tokens.into_iter().find(|token| *token.name == *name).ok_or_else(|| TokenError::Unknown(name.into()))
    }

    /// Takes numbers off the allowance of a caller, without the store; `None` if memory does not allow it.
    pub fn try_take_allowance(&self, allowance: &Allowance, count: u64) -> Option<TakenAllowance> {
        allowance.try_take(count, self.elapsed()).ok()
    }

    /// How many numbers a caller could take now one by one, without the store.
    pub fn allowance_left(&self, allowance: &Allowance) -> u64 {
        allowance.left(self.elapsed())
    }

    /// Takes numbers off the allowance of a caller, drawing from its quota if this node's slice is used up.
    pub async fn take_allowance(
        &self,
        allowance: &Allowance,
        caller: &str,
        count: u64,
    ) -> Result<TakenAllowance, AllowanceError> {
        let limits = allowance.limits();
        let (rate, quota) = (limits.rate.unwrap_or_default(), limits.quota.unwrap_or_default());
        // `None`: the store must be asked for a slice.
        let take = || match allowance.try_take(count, self.elapsed()) {
            Ok(taken) => Some(Ok(taken)),
            Err(Shortage::TooMany) => Some(Err(AllowanceError::TooMany { rate, count })),
            Err(Shortage::BeyondQuota) => Some(Err(AllowanceError::BeyondQuota { quota, count })),
            Err(Shortage::Rate(retry_after)) => Some(Err(AllowanceError::Rate { rate, retry_after })),
            Err(Shortage::Quota) => None,
        };
        if let Some(answer) = take() {
            return answer;
        }
        let _drawing = allowance.drawing.lock().await;
        loop {
            // Another caller may have drawn meanwhile, and others may take those numbers.
            if let Some(answer) = take() {
                return answer;
            }
            let request = allowance.draw_request(caller, count, self.elapsed());
            let draw = self.store().draw_quota(request).await?;
            if draw.granted == 0 {
                return Err(AllowanceError::Quota { quota, count, retry_after: draw.day_ends_in });
            }
            allowance.add_slice(draw, self.elapsed());
        }
    }

    async fn change_token(
        &self,
        change: TokenChange,
        kind: OperationKind,
        actor: Actor<'_>,
    ) -> Result<(), TokenError> {
        let describe = |token: &CallerToken| match token.expires {
            Some(expires) => format!("{} until {expires}", token.grant),
            None => token.grant.to_string(),
        };
        let (before, after) = (change.before.as_ref().map(describe), change.after.as_ref().map(describe));
        let operation = self.operation(actor, kind, None).on(&change.name);
        let operation = operation.between(before.as_deref(), after.as_deref());
        let name = change.name.clone();
        let is_changed = self.store().change_token(change, operation).await?;
        self.load_tokens().await?;
        if is_changed { Ok(()) } else { Err(TokenError::ChangedMeanwhile(name)) }
    }
}
