//! How long a document is kept after its last update, and what explains its position once it is removed. A store
//! removes documents; the rules for it are here.

use std::time::Duration;

use super::DocumentState;
use crate::gap::GapReason;

const DAY: Duration = Duration::from_hours(24);

/// How long documents are kept after their state was last written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentRetention {
    /// Delivered documents and confirmed reservations.
    pub delivered: Duration,
    /// Dead and abandoned documents, and voided reservations. Until then, a dead document can be retried.
    pub undelivered: Duration,
}

impl Default for DocumentRetention {
    fn default() -> Self {
        Self { delivered: DAY * 7, undelivered: DAY * 90 }
    }
}

/// Documents that are kept for the same time. Pending documents and open reservations are in none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneGroup {
    Delivered,
    Undelivered,
}

impl PruneGroup {
    pub const fn states(self) -> &'static [DocumentState] {
        match self {
            Self::Delivered => &[DocumentState::Delivered, DocumentState::Confirmed],
            Self::Undelivered => &[DocumentState::Dead, DocumentState::Abandoned, DocumentState::Voided],
        }
    }

    /// Why the position of a removed document is a gap, by its state and whether it was in doubt. A store records it as
    /// lost in the commit that removes the document.
    pub fn explanations(self) -> impl Iterator<Item = (DocumentState, bool, GapReason)> {
        let kinds = self.states().iter().flat_map(|state| [(*state, false), (*state, true)]);
        kinds.filter_map(|(state, in_doubt)| Some((state, in_doubt, state.gap_reason(in_doubt)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_kept_explained_or_no_gap() {
        let groups = [PruneGroup::Delivered, PruneGroup::Undelivered];
        for state in DocumentState::ALL {
            let group = groups.into_iter().find(|group| group.states().contains(&state));
            for in_doubt in [false, true] {
                let recorded = group.into_iter().flat_map(PruneGroup::explanations);
                let recorded = recorded.filter(|(of, doubt, _)| (*of, *doubt) == (state, in_doubt));
                let reasons: Vec<GapReason> = recorded.map(|(_, _, reason)| reason).collect();
                assert_eq!(reasons, Vec::from_iter(state.gap_reason(in_doubt)), "{state} {in_doubt}");
            }
            let is_open = matches!(state, DocumentState::Pending | DocumentState::Reserved);
            assert_eq!(group.is_none(), is_open, "{state}");
        }
    }
}
