use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::SignedDuration;
use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};

use super::*;
use crate::certificates::authority::Authority;
use crate::certificates::rotation::Kept;
use crate::certificates::shown::provider;
use crate::fake::Cluster;
use crate::reach::Reach;
use crate::registration::{Conversion, Webhook};

impl Keeper {
    async fn bundle(&self) -> Option<String> {
        self.state.lock().await.bundle()
    }
}

const SECRET: &str = "/api/v1/namespaces/system/secrets/ca";
const VALIDATING: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/vmhost-p";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/vms.g.io";
const DAY: SignedDuration = SignedDuration::from_hours(24);
const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn keeper(cluster: &Cluster) -> Keeper {
    let connection = cluster.connection();
    let source = Source::Own {
        secret: connection.secret("system", "ca"),
        names: vec!["vmhost.system.svc".to_owned()],
    };
    Keeper::new(connection.webhook_objects(), source)
}

fn configuration() -> Value {
    json!({"metadata": {"name": "vmhost-p"}, "webhooks": [
        {"name": "w.p.vmhost.dev", "clientConfig": {"service": {"path": "/admit/p/w"}}}]})
}

/// The bundle in the configuration, PEM.
fn trusted(cluster: &Cluster) -> String {
    let object = cluster.get(VALIDATING);
    let bundle = object["webhooks"][0]["clientConfig"]["caBundle"].as_str();
    String::from_utf8(STANDARD.decode(bundle.unwrap()).unwrap()).unwrap()
}

/// Returns whether a client that trusts this bundle would connect to this keeper's host.
fn connects(bundle: &str, keeper: &Keeper, now: Timestamp) -> bool {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = Arc::new(provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let shown = keeper.shown().now().unwrap();
    let name = ServerName::try_from("vmhost.system.svc").unwrap();
    let time = Duration::from_secs(u64::try_from(now.as_second()).unwrap());
    let time = UnixTime::since_unix_epoch(time);
    let verified =
        verifier
            .build()
            .unwrap()
            .verify_server_cert(&shown.cert[0], &[], &name, &[], time);
    verified.is_ok()
}

/// Puts a Secret with an authority that ends in 100 days into the cluster.
fn put_short(cluster: &Cluster) {
    let authority = Authority::until(start(), start() + DAY * 100).unwrap();
    let data = Kept::of(authority).data().unwrap();
    let data: BTreeMap<String, String> = data
        .into_iter()
        .map(|(name, value)| (name, STANDARD.encode(value)))
        .collect();
    cluster.put(SECRET, json!({"metadata": {"name": "ca"}, "data": data}));
}

#[tokio::test]
async fn the_first_host_makes_the_authority_and_the_others_read_it() {
    let cluster = Cluster::default();
    let (first, second) = (keeper(&cluster), keeper(&cluster));
    assert!(!first.is_ready() && first.bundle().await.is_none());
    first.look(&[], start()).await.unwrap();
    second.look(&[], start()).await.unwrap();
    let bundle = first.bundle().await.unwrap();
    assert_eq!(second.bundle().await, Some(bundle.clone()));
    assert!(connects(&bundle, &first, start()) && connects(&bundle, &second, start()));
    assert_eq!(
        cluster.writes(),
        ["POST /api/v1/namespaces/system/secrets"],
        "one Secret"
    );
    let (a, b) = (first.shown().now().unwrap(), second.shown().now().unwrap());
    assert_ne!(a.cert, b.cert, "each has a certificate of its own");
}

#[tokio::test]
async fn an_object_is_patched_once_it_is_there() {
    let cluster = Cluster::default();
    let keeper = keeper(&cluster);
    let targets = [Target::validating("p")];
    let registered = || keeper.registered().has(&targets[0], "w");
    assert_eq!(registered(), None, "nothing was read yet");
    let looked = keeper.look(&targets, start()).await.unwrap();
    assert_eq!(
        looked.missing,
        ["ValidatingWebhookConfiguration vmhost-p".to_owned()]
    );
    assert_eq!(registered(), Some(false));
    cluster.put(VALIDATING, configuration());
    cluster.writes();
    let looked = keeper.look(&targets, start()).await.unwrap();
    assert_eq!(looked.patched.len(), 1, "{looked:?}");
    assert_eq!(registered(), Some(true));
    assert!(connects(&trusted(&cluster), &keeper, start()));
    assert_eq!(cluster.writes(), [format!("PATCH {VALIDATING}")]);
    let looked = keeper.look(&targets, start()).await.unwrap();
    assert_eq!(looked, Looked::default());
    // Someone replaces it.
    cluster.put(VALIDATING, configuration());
    let looked = keeper.look(&targets, start()).await.unwrap();
    assert_eq!(looked.patched.len(), 1);
}

#[tokio::test]
async fn an_authority_is_replaced_and_every_host_stays_trusted() {
    let cluster = Cluster::default();
    put_short(&cluster);
    cluster.put(VALIDATING, configuration());
    let targets = [Target::validating("p")];
    let hosts = [keeper(&cluster), keeper(&cluster)];
    for host in &hosts {
        host.look(&targets, start()).await.unwrap();
    }
    let before = trusted(&cluster);
    let mut now = start() + DAY * 20;
    // The second host looks half as often as the first.
    for step in 0..60 {
        now += HOUR;
        hosts[0].look(&targets, now).await.unwrap();
        if step % 2 == 0 {
            hosts[1].look(&targets, now).await.unwrap();
        }
        let bundle = trusted(&cluster);
        for host in &hosts {
            assert!(connects(&bundle, host, now), "step {step}");
        }
    }
    let bundle = trusted(&cluster);
    assert!(!connects(&before, &hosts[0], now), "a new authority signs");
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
    now += DAY;
    for host in &hosts {
        host.look(&targets, now).await.unwrap();
        assert!(!connects(&before, host, now));
        assert!(connects(&bundle, host, now));
    }
    now += DAY * 31;
    for host in &hosts {
        host.look(&targets, now).await.unwrap();
    }
    let bundle = trusted(&cluster);
    assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 1);
    assert!(hosts.iter().all(|host| connects(&bundle, host, now)));
}

/// Two hosts with other plugins share the Secret: neither looks after the other's configuration.
#[tokio::test]
async fn a_host_with_other_objects_stays_trusted_too() {
    let cluster = Cluster::default();
    put_short(&cluster);
    cluster.put(VALIDATING, configuration());
    let targets = [Target::validating("p")];
    let (first, second) = (keeper(&cluster), keeper(&cluster));
    first.look(&[], start()).await.unwrap();
    second.look(&targets, start()).await.unwrap();
    let before = trusted(&cluster);
    // The second host has just read the Secret when the first announces a new authority.
    let mut now = start() + DAY * 10;
    second.look(&targets, now - HOUR / 2).await.unwrap();
    for hour in 0..48 {
        first.look(&[], now).await.unwrap();
        // API servers have seen a patch before the next look.
        let bundle = trusted(&cluster);
        second.look(&targets, now).await.unwrap();
        assert!(connects(&bundle, &second, now), "hour {hour}");
        now += HOUR;
    }
    assert!(!connects(&before, &first, now) && !connects(&before, &second, now));
}

#[tokio::test]
async fn a_leaf_is_replaced_before_it_ends() {
    let cluster = Cluster::default();
    let keeper = keeper(&cluster);
    keeper.look(&[], start()).await.unwrap();
    let bundle = keeper.bundle().await.unwrap();
    let first = keeper.shown().now().unwrap();
    keeper.look(&[], start() + DAY * 274).await.unwrap();
    assert!(Arc::ptr_eq(&first, &keeper.shown().now().unwrap()));
    keeper.look(&[], start() + DAY * 275).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &keeper.shown().now().unwrap()));
    assert!(connects(&bundle, &keeper, start() + DAY * 600));
}

#[tokio::test]
async fn a_secret_that_is_deleted_comes_back_as_it_was() {
    let cluster = Cluster::default();
    let keeper = keeper(&cluster);
    keeper.look(&[], start()).await.unwrap();
    let before = cluster.remove(SECRET);
    keeper.look(&[], start() + DAY).await.unwrap();
    assert_eq!(cluster.get(SECRET)["data"], before["data"]);
}

#[tokio::test]
async fn an_empty_secret_is_filled_and_a_damaged_one_is_not() {
    let cluster = Cluster::default();
    cluster.put(SECRET, json!({"metadata": {"labels": {"a": "b"}}}));
    let first = keeper(&cluster);
    first.look(&[], start()).await.unwrap();
    assert!(first.is_ready());
    assert_eq!(cluster.get(SECRET)["metadata"]["labels"]["a"], "b");

    let damaged = STANDARD.encode("{\"hidden\": 1}");
    cluster.put(
        SECRET,
        json!({"metadata": {}, "data": {"state.json": damaged}}),
    );
    cluster.writes();
    let second = keeper(&cluster);
    let text = second.look(&[], start()).await.unwrap_err().to_string();
    assert!(text.contains("system/ca") && text.contains("delete it"));
    assert!(!text.contains("hidden"), "{text}");
    assert!(cluster.writes().is_empty() && !second.is_ready());
}

#[tokio::test]
async fn a_host_without_a_certificate_says_why() {
    let cluster = Cluster::default();
    let damaged = STANDARD.encode("{}");
    cluster.put(
        SECRET,
        json!({"metadata": {}, "data": {"state.json": damaged}}),
    );
    let keeper = keeper(&cluster);
    let stopped = CancellationToken::new();
    stopped.cancel();
    assert!(keeper.ready().unwrap_err().contains("yet"));
    keeper.run(Vec::new, stopped.clone()).await;
    assert!(keeper.ready().unwrap_err().contains("system/ca"));
    cluster.remove(SECRET);
    keeper.run(Vec::new, stopped).await;
    assert_eq!(keeper.ready(), Ok(()));
}

#[tokio::test]
async fn what_cert_manager_writes_is_left_alone() {
    let cluster = Cluster::default();
    let mut object = configuration();
    object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "n/c"});
    cluster.put(VALIDATING, object);
    let keeper = keeper(&cluster);
    let looked = keeper.look(&[Target::validating("p")], start()).await;
    let troubles = looked.unwrap().troubles;
    let trouble = troubles.first().unwrap();
    assert!(trouble.contains("vmhost-p") && trouble.contains("cainjector"));
    assert!(!cluster.writes().contains(&format!("PATCH {VALIDATING}")));
}

#[tokio::test]
async fn with_its_folder_cert_manager_writes_the_bundle_or_the_host_does() {
    let cluster = Cluster::default();
    let folder = tempfile::tempdir().unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(["vmhost.system.svc".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    for (name, text) in [
        ("tls.crt", certificate.clone()),
        ("tls.key", key.serialize_pem()),
        ("ca.crt", certificate.clone()),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let objects = cluster.connection().webhook_objects();
    let keeper = Keeper::new(objects, Source::Folder(folder.path().to_owned()));
    let targets = [Target::validating("p")];
    cluster.put(VALIDATING, configuration());
    let looked = keeper.look(&targets, start()).await.unwrap();
    assert_eq!(looked.patched.len(), 1, "{looked:?}");
    assert_eq!(trusted(&cluster), certificate);

    let mut object = configuration();
    object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "n/c"});
    cluster.put(VALIDATING, object);
    cluster.writes();
    let looked = keeper.look(&targets, start()).await;
    assert_eq!(looked.unwrap(), Looked::default());
    assert!(cluster.writes().is_empty());
}

#[tokio::test]
async fn webhooks_are_registered_when_there_is_a_certificate() {
    let cluster = Cluster::default();
    let keeper = keeper(&cluster);
    let webhook: Webhook = serde_json::from_value(json!({"name": "w", "type": "validating",
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["*"]}]}))
    .unwrap();
    let registration = Registration {
        plugin: "p".to_owned(),
        reach: Reach::service("system/vmhost").unwrap(),
        own_namespace: Some("system".to_owned()),
        webhooks: vec![webhook],
        conversions: vec![Conversion {
            name: "vm".to_owned(),
            group: "g.io".to_owned(),
            resource: "vms".to_owned(),
        }],
    };
    let refused = keeper.register(&registration).await;
    assert!(matches!(refused, Err(Error::NotReady)));
    keeper.look(&[], start()).await.unwrap();
    let refused = keeper.register(&registration).await;
    assert!(matches!(refused, Err(Error::NoDefinition(name)) if name == "vms.g.io"));
    cluster.put(DEFINITION, json!({"metadata": {}, "spec": {}}));
    keeper.register(&registration).await.unwrap();
    assert!(connects(&trusted(&cluster), &keeper, start()));
    cluster.writes();

    let looked = keeper.look(&registration.targets(), start()).await;
    assert_eq!(looked.unwrap(), Looked::default());
    keeper.register(&registration).await.unwrap();
    assert_eq!(
        cluster.writes(),
        [format!("PATCH {VALIDATING}")],
        "the definition is as wanted"
    );

    // A look at the same time does not get into the way.
    let mut object = cluster.get(DEFINITION);
    object["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] = json!("b2xk");
    cluster.put(DEFINITION, object);
    let targets = registration.targets();
    let (registered, looked) = tokio::join!(
        keeper.register(&registration),
        keeper.look(&targets, start())
    );
    registered.unwrap();
    let looked = looked.unwrap();
    assert!(looked.troubles.is_empty(), "{looked:?}");
    cluster.writes();

    let before = cluster.get(DEFINITION);
    let mut object = before.clone();
    object["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["path"] = json!("/other");
    cluster.put(DEFINITION, object);
    let refused = keeper.register(&registration).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("vms.g.io") && text.contains("/other"));
    assert_eq!(cluster.writes(), [format!("PATCH {VALIDATING}")]);
    cluster.put(DEFINITION, before);

    let mut object = configuration();
    object["metadata"]["annotations"] = json!({"cert-manager.io/inject-ca-from": "n/c"});
    cluster.put(VALIDATING, object);
    let refused = keeper.register(&registration).await;
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("vmhost-p") && text.contains("cainjector"));
    assert!(cluster.writes().is_empty());
}
