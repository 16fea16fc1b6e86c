//! Which addresses may be connected to. It must not know names or grants.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How an address may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// By every grant that names its host.
    Public,
    /// Only if a grant and the operator name the one host: it is of this machine, of this network
    /// or of the cluster. With what it is.
    Private(&'static str),
    /// Never: no service has this address. With what it is.
    Never(&'static str),
}

/// Returns how an address may be reached. An IPv6 address that stands for an IPv4 address is judged
/// as that one.
pub(crate) fn reach(address: IpAddr) -> Reach {
    match address {
        IpAddr::V4(address) => of_v4(address),
        IpAddr::V6(address) => of_v6(address),
    }
}

/// The ranges are those of IANA's registry of special-purpose addresses.
fn of_v4(address: Ipv4Addr) -> Reach {
    let octets = address.octets();
    match octets {
        [0, ..] => Reach::Never("an unspecified address"),
        [255, 255, 255, 255] => Reach::Never("the broadcast address"),
        [224..=239, ..] => Reach::Never("a multicast address"),
        [127, ..] => Reach::Private("a loopback address"),
        [169, 254, ..] => Reach::Private("a link-local address"),
        // Azure's machines ask it for their addresses, names and extensions.
        [168, 63, 129, 16] => Reach::Private("an address of the machine's cloud"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Reach::Private("a private address"),
        [100, 64..=127, ..] => Reach::Private("an address shared by a provider"),
        // Some clouds give them to Pods.
        [240..=255, ..] => Reach::Private("a reserved address"),
        [192, 0, 0, _] | [198, 18..=19, ..] => Reach::Private("an address for special purposes"),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Reach::Private("an address for documentation")
        }
        _ => Reach::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Reach {
    if let Some(address) = stands_for(address) {
        return of_v4(address);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Reach::Never("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Private("a loopback address"),
        [0xff00..=0xffff, ..] => Reach::Never("a multicast address"),
        [0xfe80..=0xfebf, ..] => Reach::Private("a link-local address"),
        [0xfec0..=0xfeff, ..] => Reach::Private("a site-local address"),
        [0xfc00..=0xfdff, ..] => Reach::Private("a unique local address"),
        [0x2001, 0xdb8, ..] => Reach::Private("an address for documentation"),
        // Teredo, benchmarks, ORCHID and others.
        [0x2001, 0..=0x1ff, ..] => Reach::Private("an address for special purposes"),
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Private("an address for special purposes"),
    }
}

/// Returns whether two addresses lead to the same place.
pub(crate) fn is_same(one: IpAddr, other: IpAddr) -> bool {
    canonical(one) == canonical(other)
}

fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => stands_for(v6).map_or(address, IpAddr::V4),
    }
}

/// Returns the IPv4 address that an IPv6 address stands for, if it does: IPv4-compatible,
/// IPv4-mapped, NAT64 and 6to4.
fn stands_for(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] => (high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_in_each_form() {
        let is_same =
            |one: &str, other: &str| is_same(one.parse().unwrap(), other.parse().unwrap());
        for form in [
            "1.2.3.4",
            "::ffff:1.2.3.4",
            "64:ff9b::102:304",
            "2002:102:304::1",
        ] {
            assert!(
                is_same(form, "1.2.3.4") && is_same("::ffff:1.2.3.4", form),
                "{form}"
            );
        }
        assert!(is_same("::1", "::1") && !is_same("::1", "0.0.0.1"));
        assert!(!is_same("::ffff:1.2.3.5", "1.2.3.4"));
    }

    fn of(address: &str) -> Reach {
        reach(address.parse().unwrap())
    }

    #[test]
    fn services_on_the_internet_are_reached() {
        for address in [
            "1.1.1.1",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "169.253.1.1",
            "168.63.129.17",
            "192.167.1.1",
            "2606:4700:4700::1111",
            "2a00:1450::1",
            "::ffff:1.1.1.1",
            "64:ff9b::101:101",
            "2002:101:101::1",
        ] {
            assert_eq!(of(address), Reach::Public, "{address}");
        }
    }

    #[test]
    fn this_machine_this_network_and_the_cluster_are_private() {
        for address in [
            "127.0.0.1",
            "127.255.0.9",
            "10.96.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "240.1.2.3",
            "198.18.0.1",
            "192.0.0.192",
            "203.0.113.7",
            "::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "fc00::1",
            "fd00:ec2::254",
            "2001:db8::1",
            "2001::1",
            "64:ff9b:1::1",
            "100::1",
            // Each stands for an IPv4 address.
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "2002:a9fe:a9fe::1",
        ] {
            assert!(matches!(of(address), Reach::Private(_)), "{address}");
        }
    }

    #[test]
    fn what_is_no_service_is_never_reached() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "255.255.255.255",
            "224.0.0.1",
            "239.255.255.255",
            "::",
            "ff02::1",
            "::ffff:0.0.0.0",
            "::ffff:224.0.0.1",
            "64:ff9b::",
        ] {
            assert!(matches!(of(address), Reach::Never(_)), "{address}");
        }
    }
}
