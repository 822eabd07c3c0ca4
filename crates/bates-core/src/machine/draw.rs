//! Numbers of a scope, as many as are asked for: positions taken until there are, and those that the rules reject passed
//! over.

use bates_pattern::Scope;

use super::unclaimed::Unclaimed;
use super::{Machine, NextError, Numbers, Wanted};
use crate::audit::Drawn;
use crate::scope::ScopeKey;
use crate::series::Entry;
use crate::store::Store;

/// Numbers that are taken and rendered in one go.
const CHUNK: u64 = 4_096;

/// Rules that reject so many positions in a row will hardly accept the next one soon.
const REJECTED_MAX: u64 = 1_000_000;

impl<S: Store> Machine<S> {
    /// Takes numbers, and notes from where, if that has to be recorded before they are answered.
    pub(crate) async fn draw<'m>(
        &'m self,
        entry: &'m Entry,
        (scope, key): (&Scope, &'m ScopeKey),
        count: u64,
        drawn: &mut Drawn,
    ) -> Result<Unclaimed<'m, S, Numbers>, NextError> {
        let mut unclaimed = Unclaimed::new(self, (entry, key), Numbers::of(entry.spec.value));
        let (mut asked, mut rejected) = (count.min(CHUNK), 0);
        while unclaimed.get().len() as u64 != count {
            // Invariant: no more positions are taken than numbers are missing, so none that is accepted is left over.
            match self.positions(entry, key, Wanted::Any(asked)).await {
                Ok(taken) => {
                    let numbers = unclaimed.get_mut();
                    let before = numbers.len();
                    numbers.add(scope, &taken);
                    self.note(entry, drawn, (&taken, numbers, before));
                    rejected = if numbers.len() > before { 0 } else { rejected + taken.count() };
                }
                // The last few are given to whoever asks for more.
                Err(error) if error.left() > 0 => {
                    asked = error.left().min(asked);
                    continue;
                }
                // What was taken is given, not burned.
                Err(_) if !unclaimed.get().is_empty() => break,
                Err(error) => return Err(error.into()),
            }
            if rejected > REJECTED_MAX {
                let all = NextError::AllRejected { positions: rejected };
                return if unclaimed.get().is_empty() { Err(all) } else { Ok(unclaimed) };
            }
            asked = (count - unclaimed.get().len() as u64).min(CHUNK);
            if asked > 0 {
                // Other callers of this thread come in between.
                tokio::task::yield_now().await;
            }
        }
        Ok(unclaimed)
    }
}
