//! The series of a store in memory.

use bates_core::{
    Definition, DescriptionChange, Operation, PinOutcome, Promise, PromiseChange, PromiseDecision,
    SeriesName, SeriesStore, StoreError,
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
