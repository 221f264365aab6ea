//! Which addresses may be reached on behalf of a tenant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether a tenant's host may have this address. Private ones are for one machine alone, and some for nobody.
pub fn may_reach(address: IpAddr, allow_private: bool) -> bool {
    let address = address.to_canonical();
    is_public(address) || (allow_private && !is_never_a_host(address))
}

/// Refused even where private addresses are allowed: instance metadata lives at link-local ones.
fn is_never_a_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => {
            v6.is_unicast_link_local()
                || v6.is_unspecified()
                || v6.is_multicast()
                // Instance metadata over IPv6.
                || v6 == Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254)
        }
    }
}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = a == 0
        || a == 10
        || a == 127
        || (a == 100 && (64..128).contains(&b))
        || (a == 169 && b == 254)
        || (a == 172 && (16..32).contains(&b))
        || (a == 192 && b == 0 && (c == 0 || c == 2))
        || (a == 192 && b == 168)
        || (a == 198 && (b == 18 || b == 19))
        || (a == 198 && b == 51 && c == 100)
        || (a == 203 && b == 0 && c == 113)
        || a >= 224;
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    // Global unicast only; of it, not the ranges that carry an IPv4 address or are for documentation.
    let global = segments[0] & 0xe000 == 0x2000;
    let tunnelled = segments[0] == 0x2002 || (segments[0] == 0x2001 && segments[1] < 0x0200);
    let documentation = segments[0] == 0x2001 && segments[1] == 0x0db8;
    global && !tunnelled && !documentation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        let inside = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "192.0.2.1",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:db8::1",
            "2001::1",
        ];
        for text in inside {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in
            ["1.1.1.1", "140.82.121.4", "172.32.0.1", "192.169.0.1", "2606:50c0:8000::64", "2a00:1450::1"]
        {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
