//! Which entry of a description covers a request. It must not know addresses.

use std::net::IpAddr;

use vmhost_core::HttpGrant;

use crate::target::Target;

/// Returns the first grant that covers the request.
pub(crate) fn find<'g>(
    grants: &'g [HttpGrant],
    method: &str,
    target: &Target,
) -> Option<&'g HttpGrant> {
    grants
        .iter()
        .find(|grant| covers_place(grant, target) && grant.methods.iter().any(|of| of == method))
}

/// Returns whether some grant covers the place, whatever the method.
pub(crate) fn knows_place(grants: &[HttpGrant], target: &Target) -> bool {
    grants.iter().any(|grant| covers_place(grant, target))
}

fn covers_place(grant: &HttpGrant, target: &Target) -> bool {
    grant.scheme == target.scheme
        && grant.port() == target.port
        && covers_host(&grant.host, target)
        && covers_path(&grant.path_prefix, target)
}

/// Returns whether a host, `*.domain` or address is the target's.
pub(crate) fn covers_host(host: &str, target: &Target) -> bool {
    if let Some(address) = target.address {
        return host.parse::<IpAddr>().is_ok_and(|of| of == address);
    }
    match host.strip_prefix('*') {
        // The dot is part of the suffix, so that `evilexample.com` is not below `example.com`.
        Some(suffix) => {
            let below = target.host.strip_suffix(suffix);
            suffix.starts_with('.') && below.is_some_and(|name| !name.is_empty())
        }
        None => target.host == host,
    }
}

fn covers_path(prefix: &str, target: &Target) -> bool {
    let prefix = prefix.trim_end_matches('/');
    if prefix.is_empty() {
        return true;
    }
    let rest = target.path.strip_prefix(prefix);
    let is_below = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    // Servers do not agree on what an encoded slash is.
    is_below && !target.hides_slashes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(json: &str) -> Vec<HttpGrant> {
        let text = format!(
            r#"{{"apiVersion":"vmhost/v1","name":"p","controllers":[{{"name":"c","timer":{{"once":true}}}}],"http":{json}}}"#
        );
        vmhost_core::Description::parse(&text).unwrap().http
    }

    fn covers(json: &str, method: &str, url: &str) -> bool {
        let target = Target::parse(url).unwrap();
        find(&grants(json), method, &target).is_some()
    }

    #[test]
    fn one_host_is_that_host() {
        let grant = r#"[{"host":"api.example.com"}]"#;
        for url in [
            "https://api.example.com/",
            "https://api.example.com:443/x?y",
            "https://API.EXAMPLE.COM/",
        ] {
            assert!(covers(grant, "GET", url), "{url}");
        }
        for url in [
            "http://api.example.com/",
            "https://api.example.com:8443/",
            "https://api.example.com./",
            "https://api.example.com.evil.com/",
            "https://xapi.example.com/",
            "https://x.api.example.com/",
            "https://example.com/",
            "https://api-example.com/",
        ] {
            assert!(!covers(grant, "GET", url), "{url}");
        }
        assert!(!covers(grant, "POST", "https://api.example.com/"));
    }

    #[test]
    fn a_domain_is_what_is_below_it() {
        let grant = r#"[{"host":"*.example.com"}]"#;
        for url in ["https://a.example.com/", "https://a.b.example.com/"] {
            assert!(covers(grant, "GET", url), "{url}");
        }
        for url in [
            "https://example.com/",
            "https://evilexample.com/",
            "https://.example.com/",
            "https://a.example.com.evil.com/",
            "https://a.example.com./",
            "https://a-example.com/",
            "https://10.0.0.1/",
        ] {
            assert!(!covers(grant, "GET", url), "{url}");
        }
    }

    #[test]
    fn a_prefix_is_whole_segments() {
        let grant = r#"[{"host":"a.com","pathPrefix":"/v1/machines"}]"#;
        for url in [
            "https://a.com/v1/machines",
            "https://a.com/v1/machines/x",
            "https://a.com/v1/machines?x=/v2",
        ] {
            assert!(covers(grant, "GET", url), "{url}");
        }
        for url in [
            "https://a.com/",
            "https://a.com/v1",
            "https://a.com/v1/machines2",
            "https://a.com/v1/Machines",
            "https://a.com/%76%31/machines",
            "https://a.com/v1/machines/x%2f..%2fy",
            "https://a.com/v1/machines/x%5Cy",
        ] {
            let found = Target::parse(url)
                .is_ok_and(|target| find(&grants(grant), "GET", &target).is_some());
            assert!(!found, "{url}");
        }
    }

    #[test]
    fn an_address_is_compared_as_one() {
        let grant = r#"[{"host":"::1","scheme":"http","port":1}]"#;
        assert!(covers(grant, "GET", "http://[0:0::1]:1/"));
        assert!(!covers(grant, "GET", "http://127.0.0.1:1/"));
        let v4 = r#"[{"host":"10.0.0.1"}]"#;
        assert!(!covers(v4, "GET", "https://[::ffff:10.0.0.1]/"));
    }

    #[test]
    fn the_first_entry_that_covers_all_of_it_decides() {
        let entries = r#"[{"host":"a.com","methods":["GET"]},{"host":"*.com.x"},{"host":"a.com","methods":["GET","POST"],"pathPrefix":"/v1"}]"#;
        let grants = grants(entries);
        let target = Target::parse("https://a.com/v1").unwrap();
        let found = find(&grants, "POST", &target).unwrap();
        assert_eq!(found.path_prefix, "/v1");
        assert_eq!(find(&grants, "GET", &target).unwrap().path_prefix, "/");
        assert!(knows_place(&grants, &target));
        assert!(find(&grants, "DELETE", &target).is_none());
    }
}
