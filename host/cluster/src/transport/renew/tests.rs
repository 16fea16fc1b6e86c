use std::fs;
use std::path::Path;

use kube::config::{AuthInfo, Cluster};
use rcgen::KeyPair;
use tempfile::TempDir;
use tokio::time::Instant;

use super::*;

/// Builds a configuration whose secrets are in files.
fn configuration(dir: &Path) -> Configuration {
    let file = |name: &str| Some(dir.join(name).display().to_string());
    Configuration {
        place: "test".into(),
        server: "https://api.test".parse().unwrap(),
        namespace: "default".into(),
        cluster: Cluster {
            certificate_authority: file("ca.crt"),
            ..Cluster::default()
        },
        user: AuthInfo {
            client_certificate: file("client.crt"),
            client_key: file("client.key"),
            token_file: file("token"),
            ..AuthInfo::default()
        },
        foreign: false,
    }
}

/// Generates a certificate and its key, in PEM.
fn certificate() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["test".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn write_identity(dir: &Path) {
    let (certificate, key) = certificate();
    fs::write(dir.join("client.crt"), certificate).unwrap();
    fs::write(dir.join("client.key"), key).unwrap();
}

async fn source() -> (TempDir, Source) {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ca.crt"), certificate().0).unwrap();
    fs::write(dir.path().join("token"), "one\n").unwrap();
    write_identity(dir.path());
    let configuration = configuration(dir.path());
    let peer = Peer {
        server: configuration.server.clone(),
        tls_name: None,
        insecure: false,
        guarded: false,
        proxy: None,
    };
    let source = Source::new(&configuration, peer).await.unwrap();
    (dir, source)
}

#[tokio::test]
async fn certificates_make_new_links_and_a_token_does_not() {
    let (dir, mut source) = source().await;
    let path = |name: &str| dir.path().join(name);
    assert!(
        source.renew(false).await.unwrap().is_none(),
        "nothing has changed"
    );

    let links = source.links.clone();
    fs::write(path("token"), "two").unwrap();
    assert!(source.renew(false).await.unwrap().is_some());
    assert_eq!(source.used.authorization.as_ref().unwrap(), "Bearer two");
    assert!(Arc::ptr_eq(&links, &source.links));

    fs::write(path("ca.crt"), certificate().0).unwrap();
    assert!(source.renew(false).await.unwrap().is_some());
    assert!(!Arc::ptr_eq(&links, &source.links));

    let links = source.links.clone();
    write_identity(dir.path());
    assert!(source.renew(false).await.unwrap().is_some());
    assert!(!Arc::ptr_eq(&links, &source.links));
}

#[tokio::test]
async fn a_file_that_is_half_written_is_read_again() {
    let (dir, mut source) = source().await;
    let (other, key) = certificate();
    let (certificate, bundle) = (dir.path().join("client.crt"), dir.path().join("ca.crt"));
    let whole = fs::read(&bundle).unwrap();

    // The old key does not fit the new certificate.
    fs::write(&certificate, other).unwrap();
    assert!(source.renew(false).await.is_err());
    fs::write(dir.path().join("client.key"), key).unwrap();
    assert!(source.renew(false).await.unwrap().is_some());

    fs::write(&bundle, &whole[..whole.len() / 2]).unwrap();
    let error = source.renew(false).await.err().unwrap();
    let expect = format!(
        "certificate-authority {} contains no certificate",
        bundle.display()
    );
    assert_eq!(error.to_string(), expect);
    fs::write(&bundle, whole).unwrap();
    assert!(source.renew(false).await.unwrap().is_none(), "as it was");
}

#[tokio::test(start_paused = true)]
async fn files_are_read_in_time_and_sooner_after_a_failure() {
    let (dir, source) = source().await;
    let backend = Arc::new(ArcSwap::from_pointee(source.backend().unwrap()));
    let renewal = Renewal::start(source, backend.clone()).unwrap();
    let changed = async |token: &str| {
        let (before, start) = (backend.load_full(), Instant::now());
        fs::write(dir.path().join("token"), token).unwrap();
        while Arc::ptr_eq(&before, &backend.load()) {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        start.elapsed()
    };
    let after = changed("two").await;
    assert!(
        after > PAUSE && after < Duration::from_secs(40),
        "{after:?}"
    );
    renewal.report(false);
    let after = changed("three").await;
    assert!(after <= PAUSE + Duration::from_secs(1), "{after:?}");
    drop(renewal);
}
