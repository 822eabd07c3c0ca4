//! What a request names: a scope by its key, or a series and the parameters of a scope. Must never tell a caller about a
//! series that it may not read, neither by an answer nor by its time.

use std::sync::Arc;

use bates_api::Day;
use bates_core::{Denial, ErrorCode, Machine, Permissions, Right, SeriesEntry, SeriesName, Store};
use bates_pattern::Date;

use super::super::session::Session;
use super::request::{refuse, refuse_key};
use super::{Reply, printable};

pub(super) enum Target {
    Key(Box<str>),
    Series {
        name: Box<[u8]>,
        parameters: Vec<(String, String)>,
        date: Option<Day>,
        /// Whether the command is about the series, and not about one of its scopes.
        is_whole: bool,
    },
}

impl Target {
    /// The series, if this node knows it.
    pub(super) fn known<S: Store>(&self, machine: &Machine<S>) -> Option<Arc<SeriesEntry>> {
        match self {
            Self::Series { name, .. } => machine.series(std::str::from_utf8(name).ok()?),
            Self::Key(key) => machine.series_by_key(key),
        }
    }

    pub(super) fn date(&self) -> Option<Date> {
        if let Self::Series { date, .. } = self { date.map(Day::date) } else { None }
    }

    /// Also finds a series that another node has just created, if the caller could see it. A name or key of other callers
    /// is answered at once: the time of a look-up in the store would tell whether this node knows it.
    pub(super) async fn find<S: Store>(
        &self,
        permissions: &Permissions,
        right: Option<Right>,
        machine: &Machine<S>,
    ) -> Option<Arc<SeriesEntry>> {
        match self {
            Self::Series { name, .. } => {
                let name: SeriesName = std::str::from_utf8(name).ok()?.parse().ok()?;
                let denial = right.and_then(|right| permissions.check(right, &name).err());
                if matches!(denial, Some(Denial::UnseenSeries(_))) {
                    return None;
                }
                machine.series_or_sync(name.as_str()).await
            }
            Self::Key(key) => {
                let entry = machine.series_by_key(key);
                if entry.is_some() || !permissions.owns_key(key) {
                    return entry;
                }
                // If the store fails, look again: another task may have synchronized meanwhile.
                let _ = machine.sync_series().await;
                machine.series_by_key(key)
            }
        }
    }

    pub(super) fn refuse(&self, reply: &mut Reply<'_>) {
        match self {
            Self::Key(key) => refuse_key(reply, key.as_bytes()),
            Self::Series { name, .. } => {
                let sentence = format_args!("there is no series \"{}\"", printable(name));
                refuse(reply, ErrorCode::UNKNOWN_SERIES, sentence);
            }
        }
    }

    /// Whether the caller may use the scope so. A text is validated by its series alone.
    pub(super) fn check(&self, session: &Session, right: Right, entry: &SeriesEntry) -> Result<(), Denial> {
        session.check(right, entry)?;
        let permissions = session.caller().permissions();
        let names_scope = !matches!(self, Self::Series { is_whole: true, .. });
        if permissions.has_all_scopes() || !names_scope {
            return Ok(());
        }
        permissions.check_scope(&self.parameters(entry))
    }

    /// A series that the caller may not read is answered as one that does not exist.
    pub(super) fn deny(&self, reply: &mut Reply<'_>, denial: &Denial) {
        match denial {
            Denial::UnseenSeries(_) => self.refuse(reply),
            denial => refuse(reply, denial.code(), denial),
        }
    }

    pub(super) fn parameters<'t>(&'t self, entry: &'t SeriesEntry) -> Vec<(&'t str, &'t str)> {
        match self {
            Self::Key(key) => {
                let pairs = entry.key().and_then(|template| template.read(key));
                pairs.map(Iterator::collect).unwrap_or_default()
            }
            Self::Series { parameters, .. } => {
                parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
            }
        }
    }
}
