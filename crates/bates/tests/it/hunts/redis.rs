//! A Redis with shared pools that is stopped, flushed, restarted, replaced and switched under load.

use super::Hunt;
use crate::pools::Redis;
use crate::pools::data_loss::{Loads, survive};
use crate::pools::faults::Fault;

#[test]
fn a_redis_that_loses_data_in_any_way_repeats_no_number_to_safe_consumers() {
    let (mut hunt, mut counts) = (Hunt::begin(), [0_u64; Fault::ALL.len()]);
    while hunt.is_running() {
        let fault = |_| usize::try_from(hunt.below(counts.len() as u64)).unwrap();
        let faults: Vec<usize> = (0..3).map(fault).collect();
        let loses_data = faults.iter().any(|fault| Fault::ALL[*fault].loses_data());
        survive("hunt", loses_data, |redis: &mut Redis, loads: &Loads| {
            for fault in &faults {
                let epoch = redis.epoch("pool:A");
                Fault::ALL[*fault].strike(redis, loads);
                while Fault::ALL[*fault].loses_data() && redis.epoch("pool:A") <= epoch {
                    std::thread::yield_now();
                }
                loads.safe.wait_for(100);
            }
        });
        for fault in faults {
            counts[fault] += 1;
        }
    }
    for (fault, times) in Fault::ALL.iter().zip(counts) {
        println!("redis: survived {fault:?} {times} times");
    }
}
