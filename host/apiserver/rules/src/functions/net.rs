//! Addresses, networks and URLs.
//!
//! Must not know texts other than theirs.

use std::net::IpAddr;
use std::rc::Rc;

use ipnet::IpNet;

use super::text::one;
use crate::uri::Uri;
use crate::value::{Failure, Function, Opaque, Val};

pub(super) fn find(name: &str) -> Option<Function> {
    let function: Function = match name {
        "ip" => ip,
        "isIP" => |args| Ok(Val::Bool(address(one(args)?).is_some())),
        "ip.isCanonical" => |args| {
            let text = one(args)?;
            let ip = address(text).ok_or_else(|| not_an_ip(text))?;
            Ok(Val::Bool(ip.to_string() == text))
        },
        "family" => |args| of_ip(args, |ip| Val::Int(if ip.is_ipv4() { 4 } else { 6 })),
        "isUnspecified" => |args| of_ip(args, |ip| Val::Bool(ip.is_unspecified())),
        "isLoopback" => |args| of_ip(args, |ip| Val::Bool(ip.is_loopback())),
        "isLinkLocalMulticast" => |args| of_ip(args, |ip| Val::Bool(is_link_local_multicast(ip))),
        "isLinkLocalUnicast" => |args| of_ip(args, |ip| Val::Bool(is_link_local(ip))),
        "isGlobalUnicast" => |args| of_ip(args, |ip| Val::Bool(is_global(ip))),
        "cidr" => |args| {
            let text = one(args)?;
            let cidr = network(text).ok_or_else(|| not_a_cidr(text))?;
            Ok(Val::opaque(Opaque::Cidr(cidr)))
        },
        "isCIDR" => |args| Ok(Val::Bool(network(one(args)?).is_some())),
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "masked" => |args| of_cidr(args, |cidr| Val::opaque(Opaque::Cidr(cidr.trunc()))),
        "prefixLength" => |args| of_cidr(args, |cidr| Val::Int(i64::from(cidr.prefix_len()))),
        "url" => |args| {
            let text = one(args)?;
            let wrong = || {
                Failure::text(format!(
                    "URL parse error during conversion from string: parse {text:?}: invalid URI for request"
                ))
            };
            Ok(Val::opaque(Opaque::Url(
                Uri::parse(text).ok_or_else(wrong)?,
            )))
        },
        "isURL" => |args| Ok(Val::Bool(Uri::parse(one(args)?).is_some())),
        "getScheme" => |args| of_url(args, |url| Val::string(url.scheme.clone())),
        "getHost" => |args| of_url(args, |url| Val::string(url.host.clone())),
        "getHostname" => |args| of_url(args, |url| Val::string(url.host_and_port().0)),
        "getPort" => |args| of_url(args, |url| Val::string(url.host_and_port().1)),
        "getEscapedPath" => |args| of_url(args, |url| Val::string(url.path.clone())),
        "getQuery" => |args| {
            of_url(args, |url| {
                let pairs = url.pairs().into_iter().map(|(name, values)| {
                    let values = values.into_iter().map(Val::string).collect();
                    (Val::string(name), Val::list(values))
                });
                Val::Map(Rc::new(pairs.collect()))
            })
        },
        _ => return None,
    };
    Some(function)
}

fn opaque<'b>(args: &'b [Val<'_>]) -> Result<&'b Opaque, Failure> {
    match args {
        [Val::Opaque(value), ..] => Ok(&**value),
        _ => Err(Failure::NoOverload),
    }
}

fn not_an_ip(text: &str) -> Failure {
    Failure::text(format!(
        "IP Address {text:?} parse error during conversion from string"
    ))
}

fn not_a_cidr(text: &str) -> Failure {
    Failure::text(format!(
        "network address parse error during conversion from string: {text:?}"
    ))
}

/// Parses an address. One of version 4 in the form of version 6 is refused.
fn address(text: &str) -> Option<IpAddr> {
    let ip: IpAddr = text.parse().ok()?;
    let mapped = matches!(ip, IpAddr::V6(six) if six.to_ipv4_mapped().is_some());
    (!mapped).then_some(ip)
}

fn network(text: &str) -> Option<IpNet> {
    let (ip, bits) = text.split_once('/')?;
    let short = bits == "0" || !bits.starts_with(['0', '+']);
    address(ip).filter(|_| short)?;
    text.parse().ok()
}

fn ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    if let Ok(Opaque::Cidr(cidr)) = opaque(args) {
        return Ok(Val::opaque(Opaque::Ip(cidr.addr())));
    }
    let text = one(args)?;
    let ip = address(text).ok_or_else(|| not_an_ip(text))?;
    Ok(Val::opaque(Opaque::Ip(ip)))
}

fn of_ip<'a>(args: &[Val<'a>], get: impl Fn(&IpAddr) -> Val<'a>) -> Result<Val<'a>, Failure> {
    match opaque(args)? {
        Opaque::Ip(ip) => Ok(get(ip)),
        _ => Err(Failure::NoOverload),
    }
}

fn of_cidr<'a>(args: &[Val<'a>], get: impl Fn(&IpNet) -> Val<'a>) -> Result<Val<'a>, Failure> {
    match opaque(args)? {
        Opaque::Cidr(cidr) => Ok(get(cidr)),
        _ => Err(Failure::NoOverload),
    }
}

fn of_url<'a>(args: &[Val<'a>], get: impl Fn(&Uri) -> Val<'a>) -> Result<Val<'a>, Failure> {
    match opaque(args)? {
        Opaque::Url(url) => Ok(get(url)),
        _ => Err(Failure::NoOverload),
    }
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: &IpAddr) -> bool {
    match ip {
        IpAddr::V4(four) => four.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(six) => six
            .segments()
            .first()
            .is_some_and(|first| first & 0xff0f == 0xff02),
    }
}

/// Returns whether an address is one of a single host beyond the link, as Go means it: private
/// networks count.
fn is_global(ip: &IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(four) if four.is_broadcast());
    !(broadcast
        || ip.is_unspecified()
        || ip.is_loopback()
        || ip.is_multicast()
        || is_link_local(ip))
}

fn contains_ip<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let ip = match args {
        [_, Val::String(text)] => address(text).ok_or_else(|| not_an_ip(text))?,
        [_, rest @ ..] => match opaque(rest)? {
            Opaque::Ip(ip) => *ip,
            _ => return Err(Failure::NoOverload),
        },
        [] => return Err(Failure::NoOverload),
    };
    of_cidr(args, |cidr| Val::Bool(cidr.contains(&ip)))
}

fn contains_cidr<'a>(args: &[Val<'a>]) -> Result<Val<'a>, Failure> {
    let other = match args {
        [_, Val::String(text)] => network(text).ok_or_else(|| not_a_cidr(text))?,
        [_, rest @ ..] => match opaque(rest)? {
            Opaque::Cidr(cidr) => *cidr,
            _ => return Err(Failure::NoOverload),
        },
        [] => return Err(Failure::NoOverload),
    };
    of_cidr(args, |cidr| Val::Bool(cidr.contains(&other)))
}
