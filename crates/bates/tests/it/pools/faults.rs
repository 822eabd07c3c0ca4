//! What can happen to a Redis beside load.

use std::net::TcpListener;

use bates_testkit::PrivateRedis;

use super::Redis;
use super::forgetting::Loads;
use crate::running::signal;

/// Something that happens to a Redis, which then goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Its process stands still for a while.
    StoodStill,
    Flushed,
    Restarted,
    RestartedFromAnOldSnapshot,
    /// It dies, and a replica that heard of nothing for a while has its port.
    ReplacedByALaggingReplica,
    /// A replica has its port, while those who are connected go on with the old one for a while.
    Switched,
}

impl Fault {
    pub(crate) const ALL: [Self; 6] = [
        Self::StoodStill,
        Self::Flushed,
        Self::Restarted,
        Self::RestartedFromAnOldSnapshot,
        Self::ReplacedByALaggingReplica,
        Self::Switched,
    ];

    /// Whether what was taken is forgotten, so that the list has to be begun anew.
    pub(crate) fn forgets(self) -> bool {
        !matches!(self, Self::StoodStill)
    }

    pub(crate) fn strike(self, redis: &mut Redis, loads: &Loads) {
        match self {
            Self::StoodStill => {
                signal(redis.server.pid(), "STOP");
                loads.safe.wait_for(100);
                signal(redis.server.pid(), "CONT");
            }
            Self::Flushed => redis.command(&["FLUSHALL"]),
            Self::Restarted => {
                redis.server.kill().unwrap();
                loads.safe.wait_for(100);
                redis.server.restart().unwrap();
            }
            Self::RestartedFromAnOldSnapshot => {
                let _: String = redis.command(&["SAVE"]);
                loads.taken_from_list(100);
                redis.server.kill().unwrap();
                redis.server.restart().unwrap();
            }
            Self::ReplacedByALaggingReplica => {
                let replica = replica_of(redis);
                let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
                loads.taken_from_list(100);
                redis.server.kill().unwrap();
                drop(redis.replace_by(replica, redis.server.port()));
            }
            Self::Switched => {
                let (replica, port) = (replica_of(redis), redis.server.port());
                redis.listen_on(free_port());
                let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
                let old = redis.replace_by(replica, port);
                loads.safe.wait_for(100);
                // As Sentinel does it: the old one becomes a replica, and ends its connections.
                let _: String = old.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
                let _: u64 = old.command(&["CLIENT", "KILL", "TYPE", "normal"]);
                loads.safe.wait_for(100);
            }
        }
    }
}

/// A replica that has everything.
fn replica_of(redis: &Redis) -> Redis {
    let replica = Redis { server: PrivateRedis::start().unwrap() };
    let port = redis.server.port().to_string();
    let _: String = replica.command(&["REPLICAOF", "127.0.0.1", &port]);
    while !replica.command::<String>(&["INFO", "replication"]).contains("master_link_status:up") {}
    replica
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}

impl Redis {
    /// New connections are made elsewhere from now on. Those that are there stay.
    fn listen_on(&mut self, port: u16) {
        let _: String = self.command(&["CONFIG", "SET", "port", &port.to_string()]);
        self.server.set_port(port);
    }

    /// The other one is found at a port. Answers this one.
    fn replace_by(&mut self, mut other: Self, port: u16) -> Self {
        other.listen_on(port);
        std::mem::replace(self, other)
    }
}
