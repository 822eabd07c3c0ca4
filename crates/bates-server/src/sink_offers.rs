//! The sinks that an operator offers to series which are created at run time: by name, and to which series. Must never
//! know what a sink is, so that no request can describe one.

use std::collections::BTreeMap;

use bates_core::{SeriesName, SeriesSet};

#[derive(Clone, Debug, Default)]
pub struct SinkOffers(BTreeMap<String, SeriesSet>);

impl SinkOffers {
    pub fn is_offered(&self, sink: &str, series: &SeriesName) -> bool {
        self.0.get(sink).is_some_and(|offered_to| offered_to.contains(series))
    }
}

impl FromIterator<(String, SeriesSet)> for SinkOffers {
    fn from_iter<I: IntoIterator<Item = (String, SeriesSet)>>(offers: I) -> Self {
        Self(offers.into_iter().collect())
    }
}
