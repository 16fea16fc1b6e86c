//! Finds the token that a command shows a host. This module must not know what the command asks or
//! orders.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use vmhost_runtime::observe::admin::token;

use crate::folders::token_files;

/// Returns the token in the given file, or else that of a host of this user on this machine which
/// listens on the address of `peer`. `address` is the address that the user typed.
pub(super) fn find(address: &str, peer: SocketAddr, given: Option<&Path>) -> Result<String> {
    if let Some(file) = given {
        return token::read(file).context("--admin-token-file");
    }
    // The token of a host on this machine must not be sent to another machine.
    if !peer.ip().to_canonical().is_loopback() {
        bail!(
            "a request to {address} needs the token of that vmhost: pass a copy of its token file with --admin-token-file"
        );
    }
    let files: Vec<PathBuf> = listening(peer).into_iter().flat_map(token_files).collect();
    let path = newest(&files).or(files.first()).with_context(|| {
        format!("a request to {address} needs its token: pass --admin-token-file, since there is no home folder in which this command could find it")
    })?;
    token::read(path).with_context(|| {
        format!("a request to {address} needs its token: if that vmhost runs as another user, on another machine or with its own --admin-token-file, pass a copy of that file with --admin-token-file")
    })
}

/// Returns the addresses on which a host may listen that answers at this one. If a host listens on
/// all addresses, no other process can listen on the same port.
fn listening(peer: SocketAddr) -> Vec<SocketAddr> {
    let peer_ip = peer.ip().to_canonical();
    let all_of_4 = peer_ip.is_ipv4().then_some(Ipv4Addr::UNSPECIFIED.into());
    let all: IpAddr = Ipv6Addr::UNSPECIFIED.into();
    let ips = [Some(peer_ip), all_of_4, Some(all)].into_iter().flatten();
    ips.map(|ip| SocketAddr::new(ip, peer.port())).collect()
}

/// Returns the newest file, because a host that was killed leaves its file behind.
fn newest(files: &[PathBuf]) -> Option<&PathBuf> {
    let written = files.iter().filter_map(|file| {
        let metadata = fs::metadata(file).ok()?;
        Some((metadata.modified().ok()?, file))
    });
    written.max_by_key(|(at, _)| *at).map(|(_, file)| file)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_token_is_not_for_another_machine() {
        for text in ["10.0.0.7:8082", "[2001:db8::1]:8082"] {
            let error = find(text, address(text), None).unwrap_err().to_string();
            assert!(error.contains("--admin-token-file"), "{error}");
        }
    }

    #[test]
    fn a_token_is_for_the_host_that_listens_there() {
        let cases: [(&str, &[&str]); 3] = [
            ("127.0.0.1:1", &["127.0.0.1:1", "0.0.0.0:1", "[::]:1"]),
            ("127.0.0.2:1", &["127.0.0.2:1", "0.0.0.0:1", "[::]:1"]),
            ("[::1]:1", &["[::1]:1", "[::]:1"]),
        ];
        for (peer, hosts) in cases {
            let hosts: Vec<SocketAddr> = hosts.iter().map(|host| address(host)).collect();
            assert_eq!(listening(address(peer)), hosts, "{peer}");
        }
    }

    #[test]
    fn of_several_files_the_newest_counts() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, none] = ["old", "new", "none"].map(|name| dir.path().join(name));
        for (path, hours) in [(&old, 2), (&new, 1)] {
            let file = fs::File::create(path).unwrap();
            let ago = Duration::from_secs(hours * 3600);
            file.set_modified(SystemTime::now() - ago).unwrap();
        }
        let files = [old, none.clone(), new.clone()];
        assert_eq!(newest(&files), Some(&new));
        assert_eq!(newest(&[none]), None);
    }

    #[test]
    fn a_given_file_is_read_whatever_the_address() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        fs::write(&path, "0123456789abcdef\n").unwrap();
        let peer = address("10.0.0.7:1");
        let found = find("10.0.0.7:1", peer, Some(&path)).unwrap();
        assert_eq!(found, "0123456789abcdef");
        let error = find("10.0.0.7:1", peer, Some(&dir.path().join("none"))).unwrap_err();
        assert!(format!("{error:#}").contains("none"), "{error:#}");
    }
}
