//! The simulator repeats itself: otherwise a seed that fails proves nothing.

use bates_core::Promise;
use bates_testkit::simulate;

#[test]
fn one_seed_is_one_history_and_another_is_another() {
    for promise in Promise::ALL {
        let histories: Vec<String> = (0..20).map(|seed| simulate(seed, promise)).collect();
        for (seed, history) in histories.iter().enumerate() {
            assert_eq!(*history, simulate(seed as u64, promise), "seed {seed}, {promise}");
        }
        assert!(histories.windows(2).all(|pair| pair[0] != pair[1]), "{promise}");
        assert!(histories.iter().any(|history| history.contains("planned by a test")), "faults happen");
    }
}
