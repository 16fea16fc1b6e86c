use super::*;

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

/// The table of Go's `httpproxy` package (`UseProxyTests` of golang.org/x/net v0.49.0).
#[test]
fn no_proxy_means_what_it_means_to_go() {
    let none = "foobar.com, .barbaz.net, *.wildcard.io, 192.168.1.1, 192.168.1.2:81, 192.168.1.3:80, 10.0.0.0/30, 2001:db8::52:0:1, [2001:db8::52:0:2]:443, [2001:db8::52:0:3]:80, 2002:db8:a::45/64";
    let table = [
        ("localhost", false),
        ("127.0.0.1", false),
        ("127.0.0.2", false),
        ("[::1]", false),
        ("[::2]", true),
        ("192.168.1.1", false),
        ("192.168.1.2", true),
        ("192.168.1.3", false),
        ("192.168.1.4", true),
        ("10.0.0.2", false),
        ("[2001:db8::52:0:1]", false),
        ("[2001:db8::52:0:2]", true),
        ("[2001:db8::52:0:3]", false),
        ("[2002:db8:a::123]", false),
        ("[fe80::424b:c8be:1643:a1b6]", true),
        ("barbaz.net", true),
        ("www.barbaz.net", false),
        ("foobar.com", false),
        ("www.foobar.com", false),
        ("foofoobar.com", true),
        ("baz.com", true),
        ("localhost.net", true),
        ("local.localhost", true),
        ("barbarbaz.net", true),
        ("wildcard.io", true),
        ("nested.wildcard.io", false),
        ("awildcard.io", true),
    ];
    for (host, proxied) in table {
        let server = uri(&format!("http://{host}:80"));
        assert_eq!(!bypasses_proxy(&server, none), proxied, "{host}");
        assert!(bypasses_proxy(&server, "*"), "{host}");
    }
    assert!(!bypasses_proxy(
        &uri("http://example.com"),
        ":1,, ,x:y:z,.,*."
    ));
    assert!(bypasses_proxy(
        &uri("https://example.com"),
        "EXAMPLE.com:443"
    ));
    assert!(!bypasses_proxy(
        &uri("https://example.com"),
        "example.com:80"
    ));
    assert!(bypasses_proxy(&uri("https://example.com"), "example.com:"));
    assert!(bypasses_proxy(&uri("https://10.0.1.5"), "*.1.5"));
}

fn shown(environment: &Environment, server: &str, proxy_url: Option<&str>) -> String {
    match environment.proxy_for(&uri(server), proxy_url) {
        Ok(Some(proxy)) => proxy.to_string(),
        Ok(None) => "none".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_kubeconfig_beats_the_variable_of_the_scheme() {
    let environment = Environment {
        https_proxy: Some("http://user:pass@secure:1".into()),
        http_proxy: Some("plain:2".into()),
        no_proxy: "10.0.0.0/8".into(),
    };
    let shown = |server, proxy_url| shown(&environment, server, proxy_url);
    assert_eq!(
        shown("https://api", None),
        "http://secure:1, from HTTPS_PROXY"
    );
    assert_eq!(shown("http://api", None), "http://plain:2, from HTTP_PROXY");
    assert_eq!(shown("https://10.1.2.3:6443", None), "none");
    assert_eq!(shown("https://127.0.0.1:6443", None), "none");
    // The proxy may be the entrance of a tunnel to another machine.
    let named = Some("socks5://me:secret@localhost");
    assert_eq!(
        shown("https://127.0.0.1:6443", named),
        "socks5://localhost, from proxy-url"
    );
    assert_eq!(shown("https://10.1.2.3", Some("")), "none");
    // As in Go: a path after a name without a scheme, and a scheme in capitals.
    for (text, name) in [
        ("secure:3128/", "http://secure:3128"),
        ("SOCKS5://secure", "socks5://secure"),
    ] {
        let environment = Environment {
            https_proxy: Some(text.into()),
            ..Environment::default()
        };
        let shown = self::shown(&environment, "https://api", None);
        assert_eq!(shown, format!("{name}, from HTTPS_PROXY"));
    }
}

#[test]
fn what_is_no_proxy_is_named_without_its_password() {
    for text in [
        "ftp://user:secret@proxy",
        "http://",
        "http://user:secret@pro xy",
        "socks4://proxy",
    ] {
        let environment = Environment {
            https_proxy: Some(text.into()),
            ..Environment::default()
        };
        let error = shown(&environment, "https://api", None);
        assert!(
            error.starts_with("HTTPS_PROXY is not") && !error.contains("secret"),
            "{error}"
        );
        // The setting is not parsed where it is not needed.
        assert_eq!(shown(&environment, "https://localhost", None), "none");
    }
    let error = shown(&Environment::default(), "https://api", Some("proxy:3128"));
    assert!(error.starts_with("proxy-url is not"), "{error}");
}

#[test]
fn user_and_password_are_decoded() {
    let read = |text| Proxy::parse(text, "test").unwrap();
    let Protocol::Http(Some(header)) = read("http://user:pa%40ss@proxy").protocol else {
        panic!("no password");
    };
    // printf user:pa@ss | base64
    assert_eq!(header, "Basic dXNlcjpwYUBzcw==");
    let socks = read("socks5h://user:pa%40ss@[::1]");
    assert_eq!(socks.address, uri("http://[::1]:1080/"));
    let Protocol::Socks5(Some(user)) = socks.protocol else {
        panic!("no password");
    };
    assert_eq!(user, ("user".to_owned(), "pa@ss".to_owned()));
    assert!(!read("socks5://proxy").forwards(&uri("http://api")));
    assert!(read("https://proxy").forwards(&uri("http://api")));
    assert!(!read("https://proxy").forwards(&uri("https://api")));
}
