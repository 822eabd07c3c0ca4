//! `BATES.NEXT series [COUNT n] [DATE day] [name value …]`: the next numbers of a scope.

use bates_core::Store;

use super::named::NamedAction;
use super::{Call, Outcome};

pub(super) fn run<S: Store>(call: &mut Call<'_, S>) -> Outcome {
    NamedAction::Next(None).read(call)
}
