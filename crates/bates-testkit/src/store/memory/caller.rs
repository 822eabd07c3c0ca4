//! The callers of a store in memory.

use std::time::Duration;

use bates_core::{
    CallerStore, CallerToken, DrawnQuota, Operation, QuotaDraw, QuotaRequest, StoreError, TokenChange,
};

use super::MemoryStore;

const DAY_SECONDS: i64 = 24 * 60 * 60;

impl CallerStore for MemoryStore {
    async fn tokens(&self) -> Result<Vec<CallerToken>, StoreError> {
        Ok(self.data().tokens.values().cloned().collect())
    }

    async fn change_token(&self, change: TokenChange, operation: Operation) -> Result<bool, StoreError> {
        let mut data = self.data();
        if !change.fits(data.tokens.get(&change.name)) {
            return Ok(false);
        }
        match change.after {
            Some(token) => drop(data.tokens.insert(change.name, token)),
            None => drop(data.tokens.remove(&change.name)),
        }
        data.revision += 1;
        data.append(Some(operation));
        Ok(true)
    }

    async fn draw_quota(&self, request: QuotaRequest) -> Result<QuotaDraw, StoreError> {
        let now = self.runtime.now().as_second();
        let mut data = self.data();
        let today = now.div_euclid(DAY_SECONDS);
        let (day, drawn) = data.quotas.entry(request.caller).or_insert((today, 0));
        if *day < today {
            (*day, *drawn) = (today, 0);
        }
        let granted = QuotaDraw::decide(*drawn, request.quota, request.needed, request.slice);
        *drawn += granted;
        let ends = u64::try_from((*day + 1) * DAY_SECONDS - now).unwrap_or_default();
        Ok(QuotaDraw { granted, day_ends_in: Duration::from_secs(ends) })
    }

    async fn drawn_quotas(&self) -> Result<Vec<DrawnQuota>, StoreError> {
        let data = self.data();
        let mut drawn_quotas = Vec::new();
        for (caller, (day, drawn)) in &data.quotas {
            drawn_quotas.push(DrawnQuota { caller: caller.clone(), day: *day, drawn: *drawn });
        }
        Ok(drawn_quotas)
    }
}
