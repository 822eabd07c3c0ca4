//! The sinks and pools that an operator offers to series which are created at run time: by name, and to which series. Must
//! never know what they are, so that no request can describe one.

use std::collections::BTreeMap;

use bates_core::{SeriesName, SeriesSet};

#[derive(Clone, Debug, Default)]
pub struct Offers(BTreeMap<String, SeriesSet>);

impl Offers {
    pub fn includes(&self, name: &str, series: &SeriesName) -> bool {
        self.0.get(name).is_some_and(|offered_to| offered_to.contains(series))
    }
}

impl FromIterator<(String, SeriesSet)> for Offers {
    fn from_iter<I: IntoIterator<Item = (String, SeriesSet)>>(offers: I) -> Self {
        Self(offers.into_iter().collect())
    }
}
