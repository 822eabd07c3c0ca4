//! Refuses webhooks with private addresses. Owns the list of private networks.
//!
//! Invariant: the address that is checked is the one that is connected to. The guard is the resolver of the client, so a
//! name is checked each time it is resolved; a literal address needs no resolver, and is checked when the sink is opened.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A resolver that refuses private addresses unless they are allowed.
pub(super) struct Guard {
    pub(super) allow_private: bool,
}

#[derive(Debug, thiserror::Error)]
#[error("the name resolves to a private address: set allow_private: true to allow it")]
struct PrivateAddress;

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allow_private = self.allow_private;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            // One private address is enough to refuse: the owner of the name could choose which one is used.
            if !allow_private && found.iter().any(|address| is_private(address.ip())) {
                return Err(PrivateAddress.into());
            }
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

pub(super) fn is_private_literal(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse().is_ok_and(is_private)
}

/// Whether the address is reachable only from this machine, this network or this provider.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    // IANA's special-purpose registry, and 168.63.129.16, which reaches the host service of Azure from its machines.
    matches!(
        address.octets(),
        [0 | 10 | 127 | 224..=255, ..]
            | [100, 64..=127, ..]
            | [169, 254, ..]
            | [172, 16..=31, ..]
            | [192, 168, ..]
            | [198, 18 | 19, ..]
            | [192, 0, 0 | 2, _]
            | [192, 88, 99, _]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [168, 63, 129, 16]
    )
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    let embedded = |high, low| is_private_v4(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        // Embedded IPv4 addresses: IPv4-mapped, NAT64 and 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => embedded(high, low),
        // Tunnels, tests and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] => true,
        [0x3fff, second, ..] if second < 0x1000 => true,
        [first, ..] => first & 0xe000 != 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_outside_the_internet_are_private_in_every_notation() {
        let private = "0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 100.100.100.200 127.0.0.1 127.9.9.9 \
            169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.168.1.1 198.18.0.1 198.19.9.9 \
            198.51.100.1 203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::127.0.0.1 \
            ::ffff:127.0.0.1 ::ffff:169.254.169.254 64:ff9b::10.0.0.1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 \
            2002:7f00:1:: 2002:a9fe:a9fe:: 3fff::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 5f00::1";
        for text in private.split_whitespace() {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        let public = "1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 172.15.0.1 172.32.0.1 169.253.0.1 192.0.1.1 \
            192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1 2001:4860:4860::8888 \
            ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808:: 2a00::1";
        for text in public.split_whitespace() {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn a_literal_address_is_recognized_in_every_notation() {
        for url in [
            "https://127.0.0.1/",
            "https://127.1/",
            "https://2130706433/",
            "https://0x7f.0.0.1/",
            "https://017700000001/",
            "https://[::1]/",
            "https://[::ffff:7f00:1]:8443/",
            "https://１２７.0.0.1/",
        ] {
            assert!(is_private_literal(&Url::parse(url).unwrap()), "{url}");
        }
        for url in ["https://1.1.1.1/", "https://example.com/", "https://[2606:4700::1]/"] {
            assert!(!is_private_literal(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
