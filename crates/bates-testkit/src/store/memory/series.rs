//! The series of a store in memory.

use bates_core::{
    Definition, DescriptionChange, Operation, PinOutcome, Promise, PromiseChange, PromiseDecision,
    SeriesName, SeriesStore, StoreError, StoreTotals,
};
use uuid::Uuid;

use super::{Data, MemoryStore, SeriesRow};

impl SeriesStore for MemoryStore {
    fn identity(&self) -> Uuid {
        self.data().identity
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    async fn totals(&self) -> Result<StoreTotals, StoreError> {
        let data = self.data();
        let start = |series: &SeriesName| data.series.get(series).map_or(0, |row| row.definition.start);
        let cursors = || data.scopes.iter().filter_map(|(at, row)| Some((at, row.cursor?)));
        let granted = cursors().map(|(at, cursor)| cursor.next - start(&at.series)).sum();
        let (series, scopes) = (data.series.len() as u64, cursors().count() as u64);
        Ok(StoreTotals { series, scopes, granted: Some(granted) })
    }

    async fn pin(
        &self,
        definition: Definition,
        fresh_key: Option<Vec<u8>>,
    ) -> Result<PinOutcome, StoreError> {
        self.data().pin(definition, fresh_key)
    }

    async fn definition(&self, series: SeriesName) -> Result<Option<Definition>, StoreError> {
        Ok(self.data().series.get(&series).map(|row| row.definition.clone()))
    }

    async fn describe(
        &self,
        series: SeriesName,
        change: DescriptionChange,
        operation: Option<Operation>,
    ) -> Result<bool, StoreError> {
        let mut data = self.data();
        let fits = data.describe(&series, change)?;
        data.append(operation.filter(|_| fits));
        Ok(fits)
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        let data = self.data();
        let described = data.series.iter();
        Ok(described.filter_map(|(name, row)| Some((name.clone(), row.description.clone()?))).collect())
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        change: PromiseChange,
        described: Option<DescriptionChange>,
        operation: Option<Operation>,
    ) -> Result<bool, StoreError> {
        let mut data = self.data();
        let decision = change.decide(data.series(&series)?.definition.promise);
        if decision == PromiseDecision::Refuse {
            return Ok(false);
        }
        if let Some(described) = described
            && !data.describe(&series, described)?
        {
            return Ok(false);
        }
        data.append(operation);
        if decision == PromiseDecision::Keep {
            return Ok(true);
        }
        data.revision += 1;
        data.series_mut(&series)?.definition.promise = Some(change.to);
        for (_, scope) in data.scopes.iter_mut().filter(|(scope_id, _)| scope_id.series == series) {
            let next = scope.cursor.map_or(0, |cursor| cursor.next);
            scope.gapless_from = if change.to == Promise::Gapless { next } else { 0 };
        }
        Ok(true)
    }

    async fn series_floors(&self) -> Result<Vec<(SeriesName, u64)>, StoreError> {
        let data = self.data();
        let raised = data.series.iter().filter(|(_, row)| row.floor > 0);
        Ok(raised.map(|(name, row)| (name.clone(), row.floor)).collect())
    }

    async fn raise_series_floor(&self, series: SeriesName, floor: u64) -> Result<(), StoreError> {
        let mut data = self.data();
        let row =
            data.series.get_mut(&series).ok_or_else(|| StoreError::UnknownSeries(series.as_str().into()))?;
        row.floor = row.floor.max(floor);
        Ok(())
    }

    async fn promises(&self) -> Result<Vec<(SeriesName, Promise)>, StoreError> {
        let data = self.data();
        let pinned = data.series.iter();
        Ok(pinned.filter_map(|(name, row)| Some((name.clone(), row.definition.promise?))).collect())
    }

    async fn check_revision(&self) -> Result<u64, StoreError> {
        self.node.faults.check()?;
        Ok(self.data().revision)
    }

    fn era(&self) -> u64 {
        u64::from(self.node.faults.check().is_err())
    }

    async fn probe(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Data {
    pub(super) fn pin(
        &mut self,
        new: Definition,
        fresh_key: Option<Vec<u8>>,
    ) -> Result<PinOutcome, StoreError> {
        let Some(SeriesRow { definition, permutation_key, .. }) = self.series.get_mut(&new.series) else {
            let name = new.series.clone();
            let row = SeriesRow {
                definition: new,
                permutation_key: fresh_key.clone(),
                description: None,
                epoch: 0,
                floor: 0,
                reconciled_at: None,
            };
            self.series.insert(name, row);
            return Ok(PinOutcome { permutation_key: fresh_key, is_new: true, has_changed_rules: false });
        };
        if let Some(refused) = StoreError::for_difference(definition, &new) {
            return Err(refused);
        }
        let pinned = PinOutcome::of_pinned(definition, &new, permutation_key.clone());
        if let Some(rules) = definition.rules_to_keep(&new) {
            definition.rules = Some(rules.into());
        }
        definition.promise = definition.promise.or(new.promise);
        Ok(pinned)
    }

    pub(super) fn describe(
        &mut self,
        series: &SeriesName,
        change: DescriptionChange,
    ) -> Result<bool, StoreError> {
        let revision = self.revision;
        let current = &mut self.series_mut(series)?.description;
        if !change.fits(current.as_deref(), revision) {
            return Ok(false);
        }
        *current = change.after;
        self.revision += 1;
        Ok(true)
    }
}
