//! The documents of a store in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use bates_core::ledger::{Key, Request};
use bates_core::{
    Assign, AssignError, Assigned, Claim, Claimed, Content, Decided, Decision, DecisionRule, DecisionTime,
    Document, DocumentStore, Filter, Numbered, SeriesName, Settled, Settlement, State, StoreError,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{Data, MemoryStore, page};

/// A document as it is kept.
pub(super) struct DocumentRow {
    pub(super) document: Document,
    pub(super) body: Option<Box<str>>,
    /// Whether its last try was not settled.
    pub(super) is_claimed: bool,
}

/// A request that was numbered, by its idempotency key.
pub(super) struct KeyRow {
    pub(super) digest: [u8; 32],
    pub(super) assigned: Assigned,
    pub(super) scope: bates_core::ScopeKey,
    pub(super) pruned_as: State,
}

impl DocumentStore for MemoryStore {
    async fn assign(&self, assign: Assign) -> Result<Assigned, AssignError> {
        let place = assign.place.clone();
        self.data().ask(self, &place, &Request::Assign(Box::new(assign))).into_assign()
    }

    async fn documents(
        &self,
        filter: Filter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        Ok(page(&self.data().documents, after, limit, |(_, row)| {
            row.is_of(&filter).then(|| row.document.clone())
        }))
    }

    async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let mut due: Vec<&mut DocumentRow> = data.documents.values_mut().collect();
        due.retain(|row| row.document.place.series == claim.series && row.is_due(now));
        due.sort_by_key(|row| (row.document.tries, row.document.due, row.document.event));
        let (mut claimed, mut bytes) = (Vec::new(), 0);
        for row in due.into_iter().take(claim.limit) {
            if bytes >= claim.bytes.max(1) {
                break;
            }
            let document = &mut row.document;
            document.tries += 1;
            document.due = Some(later(now, claim.lasts));
            document.in_doubt |= row.is_claimed;
            row.is_claimed = true;
            let body = row.body.clone().unwrap_or_default();
            bytes += body.len();
            claimed.push(Claimed {
                event: document.event,
                place: document.place.clone(),
                position: document.position,
                number: document.number.clone(),
                body,
                created: document.created,
                attempt: document.tries,
            });
        }
        Ok(claimed)
    }

    async fn settle(&self, settled: Vec<Settlement>) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let mut accepted = 0;
        for Settlement { event, attempt, verdict } in settled {
            let Some(row) = data.documents.get_mut(&event) else { continue };
            if row.document.tries != attempt || row.document.state != State::Pending || !row.is_claimed {
                continue;
            }
            let Settled { state, after, error, in_doubt } = verdict.settled();
            let document = &mut row.document;
            document.state = state;
            document.due = after.map(|after| later(now, after));
            document.last_error = error.map(Into::into);
            document.updated = now;
            document.in_doubt |= in_doubt;
            row.is_claimed = false;
            if state == State::Delivered {
                row.body = None;
            }
            accepted += 1;
        }
        Ok(accepted)
    }

    async fn decide(&self, event: Uuid, decision: Decision) -> Result<Decided, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let Some(row) = data.documents.get_mut(&event) else { return Ok(decision.decided(None, false)) };
        let is_changed = row.decide(decision, now);
        Ok(decision.decided(Some(row.document.clone()), is_changed))
    }

    async fn decide_all(&self, filter: Filter, decision: Decision) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let meant = data.documents.values_mut().filter(|row| row.is_of(&filter));
        Ok(meant.map(|row| u64::from(row.decide(decision, now))).sum())
    }

    async fn expire(&self, limit: usize) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let rows = data.documents.values_mut();
        let over = rows.filter(|row| row.document.state == State::Reserved && row.document.due <= Some(now));
        let mut expired = 0;
        for row in over.take(limit) {
            (row.document.state, row.document.due, row.document.updated) = (State::Voided, None, now);
            expired += 1;
        }
        Ok(expired)
    }

    async fn prune(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let is_old = |row: &DocumentRow| {
            matches!(row.document.state, State::Delivered | State::Confirmed)
                && now.duration_since(row.document.updated)
                    >= jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::MAX)
        };
        let old: Vec<Uuid> = data
            .documents
            .iter()
            .filter(|(_, row)| is_old(row))
            .map(|(event, _)| *event)
            .take(limit)
            .collect();
        for event in &old {
            data.documents.remove(event);
        }
        Ok(old.len() as u64)
    }

    async fn tally(&self) -> Result<Vec<(SeriesName, State, u64)>, StoreError> {
        let mut tally: BTreeMap<(SeriesName, State), u64> = BTreeMap::new();
        for DocumentRow { document, .. } in self.data().documents.values() {
            *tally.entry((document.place.series.clone(), document.state)).or_default() += 1;
        }
        Ok(tally.into_iter().map(|((series, state), count)| (series, state, count)).collect())
    }
}

impl Data {
    /// Writes a document that was numbered, with its key and its audit record.
    pub(super) fn put_document(&mut self, numbered: Numbered<'_>, now: Timestamp) {
        let Numbered { assign, assigned } = numbered;
        let (body, due) = match &assign.content {
            Content::Document(body) => (Some(body.clone()), Some(now)),
            Content::Reservation(lasts) => (None, Some(later(now, *lasts))),
        };
        let document = Document {
            event: assigned.event,
            place: assign.place.clone(),
            position: assigned.position,
            number: assigned.number.clone(),
            state: assigned.state,
            tries: 0,
            last_error: None,
            created: now,
            updated: now,
            due,
            in_doubt: false,
        };
        self.documents.insert(assigned.event, DocumentRow { document, body, is_claimed: false });
        if let Some(idempotency) = &assign.idempotency {
            let key = Key {
                caller: idempotency.caller.clone(),
                series: assign.place.series.clone(),
                text: idempotency.key.clone(),
            };
            let pruned_as = assigned.state.pruned_as();
            let (digest, scope) = (idempotency.digest, assign.place.scope.clone());
            self.keys.insert(key, KeyRow { digest, assigned: assigned.clone(), scope, pruned_as });
        }
        self.records.extend(numbered.record().map(|record| ((record.taking.at, record.id), record)));
    }
}

impl DocumentRow {
    fn is_due(&self, now: Timestamp) -> bool {
        self.document.state == State::Pending && self.document.due.is_some_and(|due| due <= now)
    }

    fn is_of(&self, filter: &Filter) -> bool {
        let Document { event, place, state, number, .. } = &self.document;
        filter.event.is_none_or(|wanted| wanted == *event)
            && filter.series.as_ref().is_none_or(|wanted| *wanted == place.series)
            && filter.scope.as_ref().is_none_or(|wanted| *wanted == place.scope)
            && filter.state.is_none_or(|wanted| wanted == *state)
            && filter.number.as_ref().is_none_or(|wanted| wanted == number)
    }

    /// Whether the document was changed.
    fn decide(&mut self, decision: Decision, now: Timestamp) -> bool {
        let DecisionRule { from, to, when, tries_again } = decision.rule();
        let is_before_due = self.document.due > Some(now);
        let is_in_time = match when {
            DecisionTime::Always => true,
            DecisionTime::BeforeDue => is_before_due,
            DecisionTime::Unclaimed => !(self.is_claimed && is_before_due),
        };
        if !from.contains(&self.document.state) || !is_in_time {
            return false;
        }
        let document = &mut self.document;
        document.state = to;
        document.updated = now;
        document.in_doubt |= self.is_claimed;
        document.due = None;
        if tries_again {
            document.due = Some(Timestamp::UNIX_EPOCH);
            document.tries = if self.is_claimed { document.tries } else { 0 };
        }
        self.is_claimed = false;
        true
    }
}

/// A moment past all others is the last one.
fn later(now: Timestamp, after: Duration) -> Timestamp {
    now.checked_add(after).unwrap_or(Timestamp::MAX)
}
