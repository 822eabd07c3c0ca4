//! Faults of a Redis under load.

use std::net::TcpListener;

use bates_testkit::PrivateRedis;

use super::Redis;
use super::data_loss::Loads;
use crate::running::signal;

/// A fault of a Redis, after which it runs again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Its process is stopped for a while.
    Stopped,
    Flushed,
    Restarted,
    RestartedFromAnOldSnapshot,
    /// It is killed, and a replica that missed the last writes takes over its port.
    ReplacedByALaggingReplica,
    /// A replica takes over its port, while connected clients use the old server for a while.
    Switched,
}

impl Fault {
    pub(crate) const ALL: [Self; 6] = [
        Self::Stopped,
        Self::Flushed,
        Self::Restarted,
        Self::RestartedFromAnOldSnapshot,
        Self::ReplacedByALaggingReplica,
        Self::Switched,
    ];

    /// Whether Redis forgets which numbers were taken, so that the list must start over.
    pub(crate) fn loses_data(self) -> bool {
        !matches!(self, Self::Stopped)
    }

    pub(crate) fn strike(self, redis: &mut Redis, loads: &Loads) {
        match self {
            Self::Stopped => {
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
                loads.wait_for_list(100);
                redis.server.kill().unwrap();
                redis.server.restart().unwrap();
            }
            Self::ReplacedByALaggingReplica => {
                let replica = replica_of(redis);
                let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
                loads.wait_for_list(100);
                redis.server.kill().unwrap();
                drop(redis.replace_by(replica, redis.server.port()));
            }
            Self::Switched => {
                let (replica, port) = (replica_of(redis), redis.server.port());
                redis.listen_on(free_port());
                let _: String = replica.command(&["REPLICAOF", "NO", "ONE"]);
                let old = redis.replace_by(replica, port);
                loads.safe.wait_for(100);
                // As Sentinel does: the old server becomes a replica and closes its connections.
                let _: String = old.command(&["REPLICAOF", "127.0.0.1", &port.to_string()]);
                let _: u64 = old.command(&["CLIENT", "KILL", "TYPE", "normal"]);
                loads.safe.wait_for(100);
            }
        }
    }
}

/// A replica with all data.
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
    /// Accepts new connections on another port from now on; open ones stay.
    fn listen_on(&mut self, port: u16) {
        let _: String = self.command(&["CONFIG", "SET", "port", &port.to_string()]);
        self.server.set_port(port);
    }

    /// Lets the other server take over this port, and returns the old one.
    fn replace_by(&mut self, mut other: Self, port: u16) -> Self {
        other.listen_on(port);
        std::mem::replace(self, other)
    }
}
