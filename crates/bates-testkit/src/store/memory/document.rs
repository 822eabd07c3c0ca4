//! The documents of a store in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use bates_core::ledger::{IdempotencyKey, Request};
use bates_core::{
    ActionCondition, ActionOutcome, ActionRule, AssignError, AssignRequest, Assignment, ClaimRequest,
    Delivery, Document, DocumentAction, DocumentContent, DocumentFilter, DocumentState, DocumentStore,
    GapReason, MissingRange, NewDocument, Operation, PositionRange, PruneGroup, SeriesName, Settlement,
    StoreError, VerdictChange,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::{Data, MemoryStore, page};

/// A stored document.
pub(super) struct DocumentRow {
    pub(super) document: Document,
    pub(super) body: Option<Box<str>>,
    /// Whether its last attempt is not settled yet.
    pub(super) is_claimed: bool,
}

/// A request that got a number, stored by its idempotency key.
pub(super) struct KeyRow {
    pub(super) digest: [u8; 32],
    pub(super) assignment: Assignment,
    pub(super) scope: bates_core::ScopeKey,
    pub(super) pruned_as: DocumentState,
}

impl DocumentStore for MemoryStore {
    async fn assign(&self, assign: AssignRequest) -> Result<Assignment, AssignError> {
        let scope_id = assign.scope_id.clone();
        self.data().decide_and_apply(self, &scope_id, &Request::Assign(Box::new(assign))).into_assign()
    }

    async fn documents(
        &self,
        filter: DocumentFilter,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Document>, StoreError> {
        Ok(page(&self.data().documents, after, limit, |(_, row)| {
            row.is_match(&filter).then(|| row.document.clone())
        }))
    }

    async fn claim(&self, claim: ClaimRequest) -> Result<Vec<Delivery>, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let mut due: Vec<&mut DocumentRow> = data.documents.values_mut().collect();
        due.retain(|row| row.document.scope_id.series == claim.series && row.is_due(now));
        due.sort_by_key(|row| (row.document.attempts, row.document.due, row.document.id));
        let (mut claimed, mut bytes) = (Vec::new(), 0);
        for row in due.into_iter().take(claim.limit) {
            if bytes >= claim.stop_at_bytes.max(1) {
                break;
            }
            let document = &mut row.document;
            document.attempts += 1;
            document.due = Some(later(now, claim.ttl));
            document.in_doubt |= row.is_claimed;
            row.is_claimed = true;
            let body = row.body.clone().unwrap_or_default();
            bytes += body.len();
            claimed.push(Delivery {
                document_id: document.id,
                scope_id: document.scope_id.clone(),
                position: document.position,
                number: document.number.clone(),
                body,
                created: document.created,
                attempt: document.attempts,
            });
        }
        Ok(claimed)
    }

    async fn settle_claims(&self, settled: Vec<Settlement>) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let mut accepted = 0;
        for Settlement { document_id, attempt, verdict } in settled {
            let Some(row) = data.documents.get_mut(&document_id) else { continue };
            if row.document.attempts != attempt
                || row.document.state != DocumentState::Pending
                || !row.is_claimed
            {
                continue;
            }
            let VerdictChange { state, retry_after, error, in_doubt } = verdict.change();
            let document = &mut row.document;
            document.state = state;
            document.due = retry_after.map(|after| later(now, after));
            document.last_error = error.map(Into::into);
            document.updated = now;
            document.in_doubt |= in_doubt;
            row.is_claimed = false;
            if state == DocumentState::Delivered {
                row.body = None;
            }
            accepted += 1;
        }
        Ok(accepted)
    }

    async fn apply_action(
        &self,
        document_id: Uuid,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> Result<ActionOutcome, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let Some(row) = data.documents.get_mut(&document_id) else {
            return Ok(action.outcome(None, false));
        };
        let before = row.document.clone();
        let is_changed = row.apply_action(action, now);
        let document = row.document.clone();
        let operation = operation.filter(|_| is_changed);
        data.append(operation.map(|operation| action.operation_on_one(operation, &before)));
        Ok(action.outcome(Some(document), is_changed))
    }

    async fn apply_action_to_all(
        &self,
        filter: DocumentFilter,
        action: DocumentAction,
        operation: Option<Operation>,
    ) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let matching = data.documents.values_mut().filter(|row| row.is_match(&filter));
        let changed = matching.map(|row| u64::from(row.apply_action(action, now))).sum();
        let operation = operation.filter(|_| changed > 0);
        data.append(operation.map(|operation| action.operation_on_all(operation, &filter, changed)));
        Ok(changed)
    }

    async fn expire_reservations(&self, limit: usize) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let rows = data.documents.values_mut();
        let expired =
            rows.filter(|row| row.document.state == DocumentState::Reserved && row.document.due <= Some(now));
        let mut count = 0;
        for row in expired.take(limit) {
            (row.document.state, row.document.due, row.document.updated) = (DocumentState::Voided, None, now);
            count += 1;
        }
        Ok(count)
    }

    async fn prune_documents(
        &self,
        group: PruneGroup,
        age: Duration,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let (now, mut data) = (self.runtime.now(), self.data());
        let is_old = |row: &DocumentRow| {
            group.states().contains(&row.document.state)
                && now.duration_since(row.document.updated)
                    >= jiff::SignedDuration::try_from(age).unwrap_or(jiff::SignedDuration::MAX)
        };
        let old: Vec<Uuid> = data
            .documents
            .iter()
            .filter(|(_, row)| is_old(row))
            .map(|(document_id, _)| *document_id)
            .take(limit)
            .collect();
        for document_id in &old {
            data.remove_document(*document_id, group);
        }
        Ok(old.len() as u64)
    }

    async fn count_documents(&self) -> Result<Vec<(SeriesName, DocumentState, u64)>, StoreError> {
        let mut tally: BTreeMap<(SeriesName, DocumentState), u64> = BTreeMap::new();
        for DocumentRow { document, .. } in self.data().documents.values() {
            *tally.entry((document.scope_id.series.clone(), document.state)).or_default() += 1;
        }
        Ok(tally.into_iter().map(|((series, state), count)| (series, state, count)).collect())
    }
}

impl Data {
    /// Removes a document; its position stays explained, and its key answers with its state.
    fn remove_document(&mut self, document_id: Uuid, group: PruneGroup) {
        let Some(DocumentRow { document, .. }) = self.documents.remove(&document_id) else { return };
        for row in self.keys.values_mut().filter(|row| row.assignment.document_id == document_id) {
            row.pruned_as = document.state;
        }
        let is_kind = |(state, in_doubt, _): &(DocumentState, bool, GapReason)| {
            (*state, *in_doubt) == (document.state, document.in_doubt)
        };
        let (range, scope) = (PositionRange::one(document.position), self.scopes.get_mut(&document.scope_id));
        if let (Some((.., reason)), Some(scope)) = (group.explanations().find(is_kind), scope) {
            scope.lost.push(MissingRange { range, reason });
        }
    }

    /// Writes a new document with its key and its audit record.
    pub(super) fn put_document(&mut self, new: NewDocument<'_>, now: Timestamp) {
        let NewDocument { request: assign, assignment } = new;
        let (body, due) = match &assign.content {
            DocumentContent::Document(body) => (Some(body.clone()), Some(now)),
            DocumentContent::Reservation(ttl) => (None, Some(later(now, *ttl))),
        };
        let document = Document {
            id: assignment.document_id,
            scope_id: assign.scope_id.clone(),
            position: assignment.position,
            number: assignment.number.clone(),
            state: assignment.state,
            attempts: 0,
            last_error: None,
            created: now,
            updated: now,
            due,
            in_doubt: false,
            caller: new.request.caller.clone(),
        };
        self.documents.insert(assignment.document_id, DocumentRow { document, body, is_claimed: false });
        if let Some(idempotency) = &assign.idempotency {
            let key = IdempotencyKey {
                caller: idempotency.caller.clone(),
                series: assign.scope_id.series.clone(),
                text: idempotency.key.clone(),
            };
            let pruned_as = assignment.state.pruned_as();
            let (digest, scope) = (idempotency.digest, assign.scope_id.scope.clone());
            self.keys.insert(key, KeyRow { digest, assignment: assignment.clone(), scope, pruned_as });
        }
        self.records.extend(new.audit_record().map(|record| ((record.stamp.at, record.id), record)));
    }
}

impl DocumentRow {
    fn is_due(&self, now: Timestamp) -> bool {
        self.document.state == DocumentState::Pending && self.document.due.is_some_and(|due| due <= now)
    }

    fn is_match(&self, filter: &DocumentFilter) -> bool {
        let Document { id: document_id, scope_id, state, number, .. } = &self.document;
        filter.among.contains(&scope_id.series)
            && filter.document_id.is_none_or(|wanted| wanted == *document_id)
            && filter.series.as_ref().is_none_or(|wanted| *wanted == scope_id.series)
            && filter.scope.as_ref().is_none_or(|wanted| *wanted == scope_id.scope)
            && filter.state.is_none_or(|wanted| wanted == *state)
            && filter.number.as_ref().is_none_or(|wanted| wanted == number)
    }

    /// Whether the document was changed.
    fn apply_action(&mut self, action: DocumentAction, now: Timestamp) -> bool {
        let ActionRule { from, to, condition, restarts_attempts } = action.rule();
        let is_before_due = self.document.due > Some(now);
        let is_in_time = match condition {
            ActionCondition::Always => true,
            ActionCondition::BeforeDue => is_before_due,
            ActionCondition::Unclaimed => !(self.is_claimed && is_before_due),
        };
        if !from.contains(&self.document.state) || !is_in_time {
            return false;
        }
        let document = &mut self.document;
        document.state = to;
        document.updated = now;
        document.in_doubt |= self.is_claimed;
        document.due = None;
        if restarts_attempts {
            document.due = Some(Timestamp::UNIX_EPOCH);
            document.attempts = if self.is_claimed { document.attempts } else { 0 };
        }
        self.is_claimed = false;
        true
    }
}

/// Saturates at the last timestamp.
fn later(now: Timestamp, after: Duration) -> Timestamp {
    now.checked_add(after).unwrap_or(Timestamp::MAX)
}
