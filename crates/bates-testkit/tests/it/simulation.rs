//! The simulator is deterministic: otherwise a failing seed proves nothing.

use bates_core::Promise;
use bates_testkit::simulate;

#[test]
fn a_seed_always_gives_the_same_log_and_each_seed_another() {
    for promise in Promise::ALL {
        let logs: Vec<String> = (0..20).map(|seed| simulate(seed, promise)).collect();
        for (seed, log) in logs.iter().enumerate() {
            assert_eq!(*log, simulate(seed as u64, promise), "seed {seed}, {promise}");
        }
        assert!(logs.windows(2).all(|pair| pair[0] != pair[1]), "{promise}");
        assert!(logs.iter().any(|log| log.contains("planned by a test")), "faults happen");
    }
}
