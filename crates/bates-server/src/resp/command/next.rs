//! `BATES.NEXT series [COUNT n] [DATE day] [name value …]`: the next numbers of a scope.

use super::{Action, Call, Outcome};

pub(super) fn run(call: &mut Call<'_>) -> Outcome {
    Action::Pop(None).defer_by_series(call)
}
