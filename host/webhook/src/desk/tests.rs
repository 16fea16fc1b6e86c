use super::*;

#[test]
fn a_path_names_a_plugin_and_its_webhook() {
    let place = |converts, plugin, name| {
        Some(Place {
            converts,
            plugin,
            name,
        })
    };
    assert_eq!(Place::of("/admit/p/w"), place(false, "p", "w"));
    assert_eq!(Place::of("/convert/p/c"), place(true, "p", "c"));
    for path in [
        "",
        "/",
        "/admit",
        "/admit/p",
        "/admit/p/",
        "/admit//w",
        "/admit/p/w/",
        "/admit/p/w/x",
        "/other/p/w",
        "admit/p/w",
    ] {
        assert_eq!(Place::of(path), None, "{path}");
    }
}

#[test]
fn the_api_server_hears_of_a_timeout_before_its_own() {
    let millis = |query| admission_time(query).as_millis();
    assert_eq!(millis(Some("timeout=10s")), 9_500);
    assert_eq!(millis(Some("a=b&timeout=1s")), 900);
    assert_eq!(millis(Some("timeout=500ms")), 450);
    assert_eq!(millis(Some("timeout=900s")), 29_500);
    for odd in ["", "timeout=", "timeout=0s", "timeout=-1s", "timeout=x"] {
        assert_eq!(millis(Some(odd)), 9_500, "{odd}");
    }
    assert_eq!(millis(None), 9_500);
}
