//! The series of a store in memory.

use bates_core::{
    Definition, DescriptionChange, PinOutcome, Promise, PromiseChange, SeriesName, SeriesStore, StoreError,
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

    async fn describe(
        &self,
        series: SeriesName,
        before: Option<Box<str>>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        self.data().describe(&series, before.as_deref(), description)
    }

    async fn descriptions(&self) -> Result<Vec<(SeriesName, Box<str>)>, StoreError> {
        let data = self.data();
        let described = data.series.iter();
        Ok(described.filter_map(|(name, row)| Some((name.clone(), row.description.clone()?))).collect())
    }

    async fn change_promise(
        &self,
        series: SeriesName,
        PromiseChange { from, to }: PromiseChange,
        described: Option<DescriptionChange>,
    ) -> Result<bool, StoreError> {
        let mut data = self.data();
        let pinned = data.series(&series)?.definition.promise;
        if pinned.is_some_and(|pinned| pinned != from) {
            return Ok(pinned == Some(to));
        }
        if let Some(DescriptionChange { before, after }) = described
            && !data.describe(&series, Some(&before), Some(after))?
        {
            return Ok(false);
        }
        data.revision += 1;
        data.series_mut(&series)?.definition.promise = Some(to);
        for (_, scope) in data.scopes.iter_mut().filter(|(scope_id, _)| scope_id.series == series) {
            let next = scope.cursor.map_or(0, |cursor| cursor.next);
            scope.gapless_from = if to == Promise::Gapless { next } else { 0 };
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
        before: Option<&str>,
        description: Option<Box<str>>,
    ) -> Result<bool, StoreError> {
        let current = &mut self.series_mut(series)?.description;
        if current.as_deref() != before && *current != description {
            return Ok(false);
        }
        *current = description;
        self.revision += 1;
        Ok(true)
    }
}
