//! Discovery, health, version, documents.

use http::header::{ACCEPT, CONTENT_TYPE, IF_NONE_MATCH};

use super::*;

const DISCO: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

#[tokio::test]
async fn aggregated_discovery_says_what_it_is_and_may_be_kept() {
    let c = Cluster::with_vms().await;
    let asked = format!(
        "{DISCO},{},application/json",
        DISCO.replace("v=v2", "v=v2beta1")
    );
    let apis = c.get_as("/apis?timeout=32s", &asked).await;
    assert_eq!(apis.headers[CONTENT_TYPE], DISCO);
    let etag = apis.headers["etag"].to_str().unwrap().to_owned();
    let groups = apis.body["items"].as_array().unwrap();
    let vms = groups
        .iter()
        .find(|g| g["metadata"]["name"] == "cloud.waibizi.com")
        .unwrap();
    let resource = &vms["versions"][0]["resources"][0];
    assert_eq!(resource["scope"], "Namespaced");
    assert_eq!(resource["responseKind"]["kind"], "VirtualMachine");
    let kept = c
        .send(
            "GET",
            "/apis",
            &[(ACCEPT, &asked), (IF_NONE_MATCH, &etag)],
            "",
        )
        .await;
    assert_eq!((kept.code, kept.text.as_str()), (304, ""));
    let core = c.get_as("/api", &asked).await.ok();
    assert_eq!(core["items"].as_array().unwrap().len(), 1);
    // An older client asks for a removed version, and gets the plain form.
    let old = c.get_as("/apis", &DISCO.replace("v=v2", "v=v2beta1")).await;
    assert_eq!(old.code, 200);
    let plain = c.get_as("/apis", "application/json").await;
    assert_eq!(
        (
            plain.headers[CONTENT_TYPE].to_str().unwrap(),
            &plain.body["kind"]
        ),
        ("application/json", &json!("APIGroupList"))
    );
}

#[tokio::test]
async fn plain_discovery_takes_slashes_at_the_end() {
    let c = Cluster::with_vms().await;
    for path in [
        "/api/",
        "/api/v1/",
        "/apis/",
        "/apis/cloud.waibizi.com/v1/",
        "/version/",
        "/healthz",
        "/readyz",
        "/livez",
    ] {
        assert_eq!(c.get(path).await.code, 200, "{path}");
    }
    let version = c.get("/version").await.ok();
    assert_eq!(
        (&version["major"], &version["minor"]),
        (&json!("1"), &json!("36"))
    );
    assert!(
        version["gitVersion"]
            .as_str()
            .unwrap()
            .contains("vmhost-dev")
    );
    c.send("POST", "/version", &[], "")
        .await
        .refused(405, "MethodNotAllowed", "");
}

#[test]
fn built_in_kinds_have_schemas() {
    for kind in crate::builtin::kinds() {
        for version in &kind.versions {
            let schema = version.definition().and_then(vmhost_schema::builtin);
            let root = schema.map(|schema| schema.root());
            let declares = root.is_some_and(|root| !root.properties.is_empty());
            assert!(declares, "{} {}", kind.kind, version.name);
        }
    }
}
