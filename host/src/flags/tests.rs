use super::*;

#[test]
fn durations_and_sizes_are_read_as_kubernetes_users_write_them() {
    assert_eq!(
        duration("--x", "500ms").unwrap(),
        Duration::from_millis(500)
    );
    assert_eq!(duration("--x", "1m30s").unwrap(), Duration::from_secs(90));
    assert_eq!(size("--x", "64Mi").unwrap(), 64 << 20);
    assert_eq!(size("--x", "64MiB").unwrap(), 64 << 20);
    assert_eq!(size("--x", "1000").unwrap(), 1000);
    for bad in ["", "Mi", "64Q", "-1", "0"] {
        assert!(
            size("--memory-limit", bad)
                .unwrap_err()
                .to_string()
                .contains("--memory-limit"),
            "{bad}"
        );
    }
    for bad in ["", "10", "-1s", "soon"] {
        assert!(
            duration("--call-timeout", bad)
                .unwrap_err()
                .to_string()
                .contains("--call-timeout"),
            "{bad}"
        );
    }
}

#[test]
fn versions_are_kept_in_a_folder_in_memory_or_not_at_all() {
    let folder = |name: &str| Keep::Folder(PathBuf::from(name));
    let default = || Some(PathBuf::from("default"));
    assert_eq!(history(Some(Path::new("off")), default()), Keep::Off);
    assert_eq!(history(Some(Path::new("a/b")), default()), folder("a/b"));
    assert_eq!(history(None, default()), folder("default"));
    assert_eq!(history(None, None), Keep::Memory);
}

#[test]
fn the_records_may_have_no_memory() {
    assert_eq!(size_or_none("--x", "0").unwrap(), 0);
    let default = vmhost_runtime::journal::RECORD_BYTES;
    for text in ["4Mi", "4MiB", "4194304"] {
        assert_eq!(size_or_none("--x", text).unwrap(), default, "{text}");
    }
    assert!(size_or_none("--x", "some").is_err());
}

#[test]
fn what_is_sensitive_is_a_kind_with_or_without_a_path() {
    let good = ["Database", "databases.example.com=spec.users[*].password"];
    let good = good.map(str::to_owned);
    assert_eq!(sensitive(&good).unwrap().len(), good.len());
    for bad in ["", "=spec", "Database=", "Database=spec..x", "a b"] {
        let error = sensitive(&[bad.to_owned()]).unwrap_err();
        assert!(
            format!("{error:#}").contains("--sensitive"),
            "{bad}: {error:#}"
        );
    }
}

#[test]
fn a_watch_is_granted_a_second_at_least() {
    assert_eq!(watch_silence("1s").unwrap(), Duration::from_secs(1));
    for bad in ["0s", "999ms", "never"] {
        let error = watch_silence(bad).unwrap_err().to_string();
        assert!(error.contains("--watch-silence"), "{error}");
    }
}

#[test]
fn addresses_are_read_as_controller_runtime_does() {
    assert_eq!(listen_address("--x", "0").unwrap(), None);
    assert_eq!(
        listen_address("--x", ":8080").unwrap().unwrap()[1].to_string(),
        "0.0.0.0:8080"
    );
    assert_eq!(
        listen_address("--x", "localhost:1").unwrap().unwrap()[0].to_string(),
        "127.0.0.1:1"
    );
    for bad in [":", ":http", "8080", "::1"] {
        assert!(listen_address("--x", bad).is_err(), "{bad}");
    }
}

#[test]
fn the_flags_of_http_are_named_in_errors() {
    assert_eq!(allow_http(&["a.com:443".into()]).unwrap().len(), 1);
    let error = allow_http(&["https://a.com".into()]).unwrap_err();
    assert!(
        format!("{error:#}").starts_with("--allow-http: "),
        "{error:#}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    let missing = authorities(std::slice::from_ref(&file)).unwrap_err();
    assert!(format!("{missing:#}").contains("--http-ca"), "{missing:#}");
    std::fs::write(&file, "no certificate").unwrap();
    let error = format!("{:#}", authorities(&[file]).unwrap_err());
    assert!(error.contains("it has no certificate"), "{error}");
}

#[test]
fn settings_belong_to_a_plugin() {
    let settings = settings(&["vm.image=a=b".into()]).unwrap();
    assert_eq!(settings["vm"]["image"], "a=b");
    assert!(super::settings(&["image=a".into()]).is_err());
    let reserved = super::settings(&["vm.vmhost/cluster=a".into()]).unwrap_err();
    assert!(reserved.to_string().contains("vmhost itself"), "{reserved}");
}
