//! A Redis with shared pools that stands still, is flushed, restarted, replaced and switched, beside load.

use super::Hunt;
use crate::pools::Redis;
use crate::pools::faults::Fault;
use crate::pools::data_loss::{Loads, survive};

#[test]
fn a_redis_that_forgets_in_every_way_repeats_nothing_to_safe_consumers() {
    let (mut hunt, mut struck) = (Hunt::begin(), [0_u64; Fault::ALL.len()]);
    while hunt.goes_on() {
        let fault = |_| usize::try_from(hunt.below(struck.len() as u64)).unwrap();
        let faults: Vec<usize> = (0..3).map(fault).collect();
        let forgets = faults.iter().any(|fault| Fault::ALL[*fault].forgets());
        survive("hunt", forgets, |redis: &mut Redis, loads: &Loads| {
            for fault in &faults {
                let epoch = redis.epoch("pool:A");
                Fault::ALL[*fault].strike(redis, loads);
                while Fault::ALL[*fault].forgets() && redis.epoch("pool:A") <= epoch {
                    std::thread::yield_now();
                }
                loads.safe.wait_for(100);
            }
        });
        for fault in faults {
            struck[fault] += 1;
        }
    }
    for (fault, times) in Fault::ALL.iter().zip(struck) {
        println!("redis: {fault:?} {times} times survived");
    }
}
