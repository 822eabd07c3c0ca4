//! An identifier traced back: which series and scope it could be of, and whether it was granted.

use std::sync::Arc;

use super::Machine;
use crate::scope::{Place, ScopeKey};
use crate::series::Entry;
use crate::store::{Store, StoreError};

/// What an identifier could be.
#[derive(Clone, Debug)]
pub struct Found {
    /// The series.
    pub entry: Arc<Entry>,
    /// The parameters that the identifier shows.
    pub parameters: Vec<(String, String)>,
    /// The period that it shows.
    pub period: Option<String>,
    /// Its position.
    pub position: u64,
    /// Whether its position was granted: `None` if the identifier does not show its whole scope.
    pub granted: Option<bool>,
}

impl<S: Store> Machine<S> {
    /// Everything that an identifier could be, by the name of the series. Never creates a scope.
    pub async fn find(&self, id: &str) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::new();
        for entry in self.registry().entries() {
            found.extend(self.find_in(entry, id).await?);
        }
        Ok(found)
    }

    /// What an identifier is in one series, if it is one of its at all.
    pub async fn find_in(&self, entry: &Arc<Entry>, id: &str) -> Result<Option<Found>, StoreError> {
        let pattern = entry.series.pattern();
        let Ok(parsed) = pattern.parse(id) else { return Ok(None) };
        let position = parsed.position().value();
        let whole = parsed.parameters().count() == entry.parameters.len();
        let key = ScopeKey::new(parsed.parameters(), parsed.period()).ok().filter(|_| whole);
        let granted = match key {
            None => None,
            Some(scope) => {
                let place = Place { series: entry.series.name().clone(), scope };
                let cursor = self.store().cursor(place).await?;
                let start = entry.series.start().value();
                Some(cursor.is_some_and(|cursor| (start..cursor.next).contains(&position)))
            }
        };
        Ok(Some(Found {
            entry: entry.clone(),
            parameters: parsed.parameters().map(|(n, v)| (n.to_owned(), v.to_owned())).collect(),
            period: parsed.period().map(|period| period.to_string()),
            position,
            granted,
        }))
    }
}
