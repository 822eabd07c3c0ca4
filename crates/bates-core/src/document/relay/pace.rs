//! How many documents a sink is given at once: fewer after a batch that it did not end in time, more again after one that
//! it did. Pure: no clock, no task.

/// How many documents a sink can do in the time of a claim, as far as it has shown.
#[derive(Debug)]
pub(super) struct Pace {
    most: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { most: usize::MAX }
    }
}

impl Pace {
    /// How many of those that it takes at once it is given.
    pub(super) fn limit(&self, batch_max: usize) -> usize {
        batch_max.min(self.most).max(1)
    }

    /// What became of a batch. It falls fast, so that the pace is found within fewer tries than kill a document, and
    /// rises slowly, because too much costs all of a batch a try.
    pub(super) fn saw(&mut self, given: usize, was_ended: bool) {
        if !was_ended {
            self.most = (given / 4).max(1);
        } else if given >= self.most {
            self.most = self.most.saturating_add(self.most / 4 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sink_that_is_too_slow_for_a_batch_gets_a_smaller_one_until_it_keeps_up() {
        let mut pace = Pace::default();
        assert_eq!(pace.limit(5_000), 5_000);
        pace.saw(5_000, false);
        pace.saw(1_250, false);
        assert_eq!(pace.limit(5_000), 312);
        pace.saw(1, true);
        assert_eq!(pace.limit(5_000), 312, "one document tells nothing of how many would fit");
        pace.saw(312, true);
        assert_eq!((pace.limit(5_000), pace.limit(100)), (391, 100));
        for _ in 0..9 {
            pace.saw(1, false);
        }
        assert_eq!(pace.limit(5_000), 1, "never none");
    }
}
