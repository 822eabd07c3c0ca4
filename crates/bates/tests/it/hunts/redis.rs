//! A Redis with shared pools that is flushed, stopped, killed, restarted and replaced, beside load.

use super::Hunt;
use crate::pools::Redis;
use crate::pools::forgetting::{Loads, survive};

#[test]
fn a_redis_that_forgets_in_every_way_repeats_nothing_to_safe_consumers() {
    let (mut hunt, mut faults) = (Hunt::begin(), 0);
    while hunt.goes_on() {
        let rounds = 1 + hunt.below(3);
        let kind = hunt.below(3);
        survive("hunt", true, |redis: &mut Redis, loads: &Loads| {
            for _ in 0..rounds {
                match kind {
                    0 => redis.command::<()>(&["FLUSHALL"]),
                    1 => {
                        redis.server.kill().unwrap();
                        redis.server.restart().unwrap();
                    }
                    _ => {
                        let _: String = redis.command(&["SAVE"]);
                        loads.plain.wait_for(50);
                        redis.server.kill().unwrap();
                        redis.server.restart().unwrap();
                    }
                }
                loads.safe.wait_for(100);
            }
        });
        faults += rounds;
    }
    println!("redis: {faults} faults survived");
}
