//! Raising every cursor of a store, after it lost commits: how far is known from nowhere, so all are raised alike.

use futures_util::future::try_join_all;

use crate::audit::Actor;
use crate::machine::Machine;
use crate::operation::OperationKind;
use crate::scope::{ScopeId, ScopeKey};
use crate::series::{Definition, SeriesName};
use crate::store::{Cursor, Store, StoreResult};

/// The scopes that are read, and raised together.
const PAGE: usize = 1_000;

/// Positions stay below 2^53; the end of a series that is not open is unknown.
const END: u64 = 1 << 53;

/// What raising all cursors of a series does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorPlan {
    pub series: SeriesName,
    pub scopes: u64,
    /// The highest cursor before.
    pub highest: u64,
    /// Where scopes begin that the store does not know.
    pub unknown_from: u64,
    /// The scopes that have no position left then.
    pub exhausted: u64,
}

struct SeriesSpan {
    series: SeriesName,
    /// Where new scopes begin now.
    begins: u64,
    end: u64,
}

impl<S: Store> Machine<S> {
    /// What [`Self::raise_all_floors`] would do with each series of the store, also with those that are retired.
    pub async fn plan_floors(&self, by: u64) -> StoreResult<Vec<FloorPlan>> {
        let mut plans = Vec::new();
        for SeriesSpan { series, begins, end } in self.series_spans().await? {
            let unknown_from = begins.saturating_add(by).min(end);
            let mut plan =
                FloorPlan { series: series.clone(), scopes: 0, highest: 0, unknown_from, exhausted: 0 };
            let mut after = None;
            while let Some(page) = self.page_of_scopes(&series, &mut after).await? {
                plan.scopes += page.len() as u64;
                plan.highest = page.iter().map(|(_, cursor)| cursor.next).fold(plan.highest, u64::max);
                plan.exhausted +=
                    page.iter().filter(|(_, cursor)| cursor.next.saturating_add(by) >= end).count() as u64;
            }
            plans.push(plan);
        }
        Ok(plans)
    }

    /// Raises every cursor of the store by as many positions, and where scopes begin that it does not know: commits that
    /// are lost may have created them. No process may issue numbers meanwhile. `raised` learns of scopes that are done.
    pub async fn raise_all_floors(
        &self,
        by: u64,
        actor: Actor<'_>,
        mut raised: impl FnMut(u64),
    ) -> StoreResult<()> {
        for SeriesSpan { series, begins, end } in self.series_spans().await? {
            let unknown_from = begins.saturating_add(by).min(end);
            self.store().raise_series_floor(series.clone(), unknown_from).await?;
            let mut after = None;
            while let Some(page) = self.page_of_scopes(&series, &mut after).await? {
                let count = page.len() as u64;
                try_join_all(page.into_iter().map(|(scope, cursor)| {
                    let floor = cursor.next.saturating_add(by).min(end).max(cursor.next);
                    self.store().raise_floor(ScopeId { series: series.clone(), scope }, floor, None)
                }))
                .await?;
                raised(count);
            }
            // One record for the series, not for each of a million scopes.
            let operation = self.operation(actor, OperationKind::FloorRaised, Some(&series));
            let after = format!("raised by {by}; new scopes begin at {unknown_from}");
            self.append_operation(operation.on("every scope").between(None, Some(&after))).await?;
        }
        Ok(())
    }

    /// Of all series that were ever pinned.
    async fn series_spans(&self) -> StoreResult<Vec<SeriesSpan>> {
        let floors = self.store().series_floors().await?;
        let span = |definition: Definition| {
            let series = definition.series;
            let floor = floor_of(&floors, &series);
            let end = self.series(series.as_str()).map_or(END, |entry| entry.series().end());
            SeriesSpan { begins: definition.start.max(floor), end, series }
        };
        Ok(self.store().definitions().await?.into_iter().map(|(definition, _)| span(definition)).collect())
    }

    async fn page_of_scopes(
        &self,
        series: &SeriesName,
        after: &mut Option<ScopeKey>,
    ) -> StoreResult<Option<Vec<(ScopeKey, Cursor)>>> {
        let page = self.store().scopes(series.clone(), after.clone(), PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(None) };
        *after = Some(last.clone());
        Ok(Some(page))
    }
}

/// Where scopes that do not exist yet begin at the earliest, among the floors of all series.
pub(crate) fn floor_of(floors: &[(SeriesName, u64)], series: &SeriesName) -> u64 {
    floors.iter().find(|(name, _)| name == series).map_or(0, |(_, floor)| *floor)
}
