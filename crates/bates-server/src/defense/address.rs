//! The part of a client's address that limits count by. Must never tell apart addresses that one client can choose from.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IPv4 address, or the 64 bits of an IPv6 address that a network is given: its clients choose the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum AddressBlock {
    V4([u8; 4]),
    V6([u16; 4]),
    /// A client whose address the system does not tell.
    Unknown,
}

impl AddressBlock {
    pub(crate) fn new(address: Option<IpAddr>) -> Self {
        match address.map(|address| address.to_canonical()) {
            Some(IpAddr::V4(address)) => Self::V4(address.octets()),
            Some(IpAddr::V6(address)) => {
                let [first, second, third, fourth, ..] = address.segments();
                Self::V6([first, second, third, fourth])
            }
            None => Self::Unknown,
        }
    }

    pub(crate) fn is_loopback(self) -> bool {
        // The block of ::1 has no other address that can connect.
        matches!(self, Self::V4([127, ..]) | Self::V6([0, 0, 0, 0]))
    }
}

impl fmt::Display for AddressBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::V4(octets) => write!(f, "{}", Ipv4Addr::from(octets)),
            Self::V6([first, second, third, fourth]) => {
                write!(f, "{}/64", Ipv6Addr::new(first, second, third, fourth, 0, 0, 0, 0))
            }
            Self::Unknown => f.write_str("an unknown address"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_cannot_leave_its_block_and_an_ipv4_client_has_one_in_every_notation() {
        let block = |text: &str| AddressBlock::new(Some(text.parse().unwrap()));
        assert_eq!(block("2001:db8:1:2::1"), block("2001:db8:1:2:ffff:1:2:3"));
        assert_ne!(block("2001:db8:1:2::1"), block("2001:db8:1:3::1"));
        assert_eq!(block("::ffff:10.0.0.7"), block("10.0.0.7"));
        assert_ne!(block("10.0.0.7"), block("10.0.0.8"));
        assert!(block("::1").is_loopback() && block("127.0.0.9").is_loopback());
        assert!(!block("10.0.0.7").is_loopback() && !block("2001:db8::1").is_loopback());
        assert_eq!(block("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
        assert_eq!(block("10.0.0.7").to_string(), "10.0.0.7");
    }
}
