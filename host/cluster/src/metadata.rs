//! The addresses at which clouds hand out the credentials of a machine to whatever runs on it. A
//! kubeconfig that came out of a cluster must not lead there. It must not know names.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether a cloud's metadata may be at this address: it is link-local, or one of the few
/// others that clouds use. An IPv6 address that stands for an IPv4 address is judged as that one.
pub(crate) fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

fn of_v4(address: Ipv4Addr) -> bool {
    let octets = address.octets();
    matches!(
        octets,
        [169, 254, ..] | [100, 100, 100, 200] | [192, 0, 0, 192]
    )
}

fn of_v6(address: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0xfe80..=0xfebf, ..] | [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => true,
        // IPv4-compatible, IPv4-mapped, NAT64 and 6to4.
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            v4(high, low)
        }
        [0x2002, high, low, ..] => v4(high, low),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_a_metadata_address_is_one() {
        for (address, is_it) in [
            ("169.254.169.254", true),
            ("100.100.100.200", true),
            ("fe80::1", true),
            ("fd00:ec2::254", true),
            ("::ffff:169.254.169.254", true),
            ("64:ff9b::a9fe:a9fe", true),
            ("2002:a9fe:a9fe::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("10.96.0.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_metadata(address.parse().unwrap()), is_it, "{address}");
        }
    }
}
