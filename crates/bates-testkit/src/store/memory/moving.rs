//! Moving a store in memory.

use bates_core::ledger::IdempotencyKey;
use bates_core::{
    Assignment, AuditRecord, CallerToken, Gap, Idempotency, MarkChange, MoveMark, MovePage, MoveStore,
    MovedAdoptions, MovedDocument, MovedKey, MovedScope, OperationRecord, PinnedSeries, Pool, Position,
    RangeSet, ScopeId, ScopeKey, SeriesName, StoreError,
};
use jiff::Timestamp;
use uuid::Uuid;

use super::document::{DocumentRow, KeyRow};
use super::{Data, MemoryStore, page};

impl MoveStore for MemoryStore {
    async fn definitions(&self) -> Result<Vec<PinnedSeries>, StoreError> {
        let data = self.data();
        Ok(data.series.values().map(|row| (row.definition.clone(), row.permutation_key.clone())).collect())
    }

    async fn moved_adoptions(
        &self,
        series: SeriesName,
        after: Option<(ScopeKey, Position)>,
        limit: usize,
    ) -> Result<Vec<MovedAdoptions>, StoreError> {
        let data = self.data();
        let scopes = data.scopes.iter().filter(|(scope_id, _)| scope_id.series == series);
        let positions =
            scopes.flat_map(|(scope_id, row)| row.adopted.iter().map(|at| (&scope_id.scope, *at)));
        let is_after = |(scope, at): &(&ScopeKey, Position)| {
            after.as_ref().is_none_or(|(last, position)| (*scope, at) > (last, position))
        };
        let mut page = Vec::new();
        for (scope, position) in positions.filter(is_after).take(limit) {
            MovedAdoptions::add(&mut page, scope.as_str(), position);
        }
        Ok(page)
    }

    async fn moved_documents(
        &self,
        after: Option<Uuid>,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<MovedDocument>, StoreError> {
        let mut read = 0;
        Ok(page(&self.data().documents, after, limit, |(_, row)| {
            if read >= bytes.max(1) {
                return None;
            }
            read += row.body.as_ref().map_or(0, |body| body.len());
            Some(MovedDocument::new(row.document.clone(), row.body.clone(), row.is_claimed))
        }))
    }

    async fn moved_keys(&self, after: Option<MovedKey>, limit: usize) -> Result<Vec<MovedKey>, StoreError> {
        let after = after.as_ref().map(key_of);
        Ok(page(&self.data().keys, after, limit, |(key, row)| {
            let KeyRow { digest, assignment, scope, pruned_as } = row;
            let (caller, text) = (key.caller.clone(), key.text.clone());
            Some(MovedKey {
                scope_id: ScopeId { series: key.series.clone(), scope: scope.clone() },
                idempotency: Idempotency { caller, key: text, digest: *digest },
                document_id: assignment.document_id,
                position: assignment.position,
                number: assignment.number.clone(),
                pruned_as: *pruned_as,
            })
        }))
    }

    async fn import_page(&self, run: Uuid, page: MovePage) -> Result<bool, StoreError> {
        // A write takes time: a caller may give up before it begins.
        tokio::task::yield_now().await;
        let mut data = self.data();
        match &data.mark {
            Some(mark) if mark.accepts_pages_of(run) => data.write(page).map(|()| true),
            _ => Ok(false),
        }
    }

    async fn mark(&self) -> Result<Option<MoveMark>, StoreError> {
        Ok(self.data().mark.clone())
    }

    async fn change_mark(
        &self,
        expected: Option<MoveMark>,
        mark: Option<MoveMark>,
    ) -> Result<bool, StoreError> {
        let mut data = self.data();
        let has_series = !data.series.is_empty();
        let change = MoveMark::change(data.mark.as_ref(), expected.as_ref(), mark.as_ref(), has_series);
        if change == MarkChange::Write {
            data.mark = mark;
        }
        Ok(change != MarkChange::Refused)
    }
}

fn key_of(MovedKey { scope_id, idempotency, .. }: &MovedKey) -> IdempotencyKey {
    let Idempotency { caller, key, .. } = idempotency;
    IdempotencyKey { caller: caller.clone(), series: scope_id.series.clone(), text: key.clone() }
}

impl Data {
    fn write_reconciled(&mut self, times: Vec<(SeriesName, Timestamp)>) -> Result<(), StoreError> {
        for (series, at) in times {
            self.series_mut(&series)?.reconciled_at = Some(at);
        }
        Ok(())
    }

    fn write(&mut self, page: MovePage) -> Result<(), StoreError> {
        match page {
            MovePage::Identity(id) => self.identity = id,
            MovePage::Definition(definition, key) => drop(self.pin(definition, key)?),
            MovePage::Scopes(series, scopes) => self.write_scopes(&series, scopes),
            MovePage::Adopted(series, scopes) => self.write_adopted(&series, scopes),
            MovePage::Pools(series, pools) => {
                let scope_id = |scope| ScopeId { series: series.clone(), scope };
                let pool = |epoch| Pool { epoch, server: None };
                self.pools.extend(pools.into_iter().map(|(scope, epoch)| (scope_id(scope), pool(epoch))));
            }
            MovePage::Documents(documents) => {
                let row =
                    |MovedDocument { document, body }| DocumentRow { document, body, is_claimed: false };
                self.documents.extend(documents.into_iter().map(row).map(|row| (row.document.id, row)));
            }
            MovePage::Keys(keys) => self.keys.extend(keys.iter().map(key_row)),
            MovePage::Gaps(gaps) => {
                let key = |gap: &Gap| (gap.scope_id.clone(), gap.missing.range.from());
                self.gaps.extend(gaps.into_iter().map(|gap| (key(&gap), gap)));
            }
            MovePage::Reconciled(times) => self.write_reconciled(times)?,
            MovePage::Records(records) => self.write_records(records),
            MovePage::Tokens(_)
            | MovePage::Quotas(_)
            | MovePage::Operations(_)
            | MovePage::Chains(_)
            | MovePage::Arrival(_) => self.write_of_callers(page),
            MovePage::ClientLeases(leases) => {
                self.client_leases.extend(leases.into_iter().map(|lease| (lease.id, lease)));
            }
            MovePage::Descriptions(descriptions) => {
                self.revision += 1;
                for (series, description) in descriptions {
                    self.series_mut(&series)?.description = Some(description);
                }
            }
        }
        Ok(())
    }

    /// Tokens, their quotas, and the log of what callers changed.
    fn write_of_callers(&mut self, page: MovePage) {
        match page {
            MovePage::Tokens(tokens) => self.write_tokens(tokens),
            MovePage::Operations(records) => self.write_operations(records),
            MovePage::Chains(heads) => {
                for head in heads {
                    let known = self.chains.entry(head.chain.clone()).or_insert_with(|| head.clone());
                    if known.number < head.number {
                        *known = head;
                    }
                }
            }
            MovePage::Quotas(quotas) => {
                self.quotas.extend(quotas.into_iter().map(|quota| (quota.caller, (quota.day, quota.drawn))));
            }
            MovePage::Arrival(operation) => self.append(Some(operation)),
            _ => {}
        }
    }

    fn write_records(&mut self, records: Vec<AuditRecord>) {
        self.records.extend(records.into_iter().map(|record| ((record.stamp.at, record.id), record)));
    }

    fn write_tokens(&mut self, tokens: Vec<CallerToken>) {
        self.tokens.extend(tokens.into_iter().map(|token| (token.name.clone(), token)));
    }

    fn write_operations(&mut self, records: Vec<OperationRecord>) {
        let key = |record: &OperationRecord| (record.chain.clone(), record.number);
        self.operations.extend(records.into_iter().map(|record| (key(&record), record)));
    }

    fn write_adopted(&mut self, series: &SeriesName, scopes: Vec<MovedAdoptions>) {
        for MovedAdoptions { scope, positions } in scopes {
            let scope_id = ScopeId { series: series.clone(), scope };
            self.scopes.entry(scope_id).or_default().adopted.extend(positions);
        }
    }

    fn write_scopes(&mut self, series: &SeriesName, scopes: Vec<MovedScope>) {
        for MovedScope { scope, mut cursor, ledger, lost, gapless_from } in scopes {
            let row = self.scopes.entry(ScopeId { series: series.clone(), scope }).or_default();
            if let Some(existing) = row.cursor {
                (cursor.next, cursor.version) =
                    (cursor.next.max(existing.next), cursor.version.max(existing.version));
            }
            (row.cursor, row.gapless_from) = (Some(cursor), gapless_from);
            (row.issued, row.lost) = (RangeSet::of(ledger), lost);
        }
    }
}

fn key_row(key: &MovedKey) -> (IdempotencyKey, KeyRow) {
    let MovedKey { scope_id, idempotency, document_id, position, number, pruned_as } = key;
    let assignment = Assignment {
        document_id: *document_id,
        position: *position,
        number: number.clone(),
        state: *pruned_as,
        is_new: false,
    };
    let (digest, scope) = (idempotency.digest, scope_id.scope.clone());
    (key_of(key), KeyRow { digest, assignment, scope, pruned_as: *pruned_as })
}
