//! The service `kubernetes` in the namespace `default`, which names this server.
//!
//! kube-apiserver creates it with its Endpoints. Here it has none: they may not be loopback
//! addresses, and this server listens on no other. Must not know how addresses are given out.

use serde_json::json;

use crate::meta;
use crate::object::Key;
use crate::state::Inner;

const STORAGE: &str = "/services";
/// The first address of the services' network.
const ADDRESS: &str = "10.96.0.1";

/// Creates the service if it is missing. `port`: where this server listens.
pub(crate) fn ensure(inner: &mut Inner, port: u16) {
    let key = Key::new("default", "kubernetes");
    if inner.store.contains(STORAGE, &key) {
        return;
    }
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "kubernetes",
            "namespace": "default",
            "uid": meta::new_uid(),
            "creationTimestamp": meta::now(),
            "labels": { "component": "apiserver", "provider": "kubernetes" },
        },
        "spec": {
            "type": "ClusterIP",
            "clusterIP": ADDRESS,
            "clusterIPs": [ADDRESS],
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
            "ports": [{ "name": "https", "port": 443, "protocol": "TCP", "targetPort": port }],
        },
        "status": { "loadBalancer": {} },
    });
    inner.store.put(&STORAGE.into(), key, service);
}
