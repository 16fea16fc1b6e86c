//! Bodies in protobuf.

use fastrand::Rng;

use super::mutate::{bytes, pick};
use super::{Ask, Case, Sample, ask, cluster, samples, seeds, send};
use crate::tests::Cluster;

const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// Writes a field whose content has a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = content.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(content);
    out
}

/// Returns a message of any kind.
fn message(rng: &mut Rng, levels: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..rng.usize(..6) {
        let number = rng.u8(1..16);
        match rng.u8(..4) {
            0 => out.extend([number << 3, rng.u8(..128)]),
            1 => out.extend(field(number, b"kinds-0")),
            _ if levels > 0 => {
                let inner = message(rng, levels - 1);
                out.extend(field(number, &inner));
            }
            _ => out.extend(field(number, b"")),
        }
    }
    out
}

/// Returns the envelope of an object: `runtime.Unknown`.
fn envelope(sample: &Sample, raw: &[u8]) -> Vec<u8> {
    let text = |name: &str| sample.object[name].as_str().unwrap().as_bytes();
    let meta = [field(1, text("apiVersion")), field(2, text("kind"))].concat();
    [b"k8s\0".to_vec(), field(1, &meta), field(2, raw)].concat()
}

/// Returns the object as the server itself writes it; `None` if it does not.
async fn own(cluster: &Cluster, sample: &Sample) -> Option<Vec<u8>> {
    if sample.decides() {
        // It is not stored.
        return None;
    }
    let path = sample.path();
    let accept = "application/vnd.kubernetes.protobuf, application/json;q=0.5";
    let body = Vec::new();
    let request = Ask {
        method: "GET",
        path: &path,
        media: "",
        accept,
        body,
    };
    let (code, body) = ask(cluster, request).await?;
    (code == 200 && body.starts_with(b"k8s\0")).then(|| body.to_vec())
}

#[tokio::test(start_paused = true)]
async fn messages_that_are_broken() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    for seed in seeds(800) {
        let mut case = Case::new("messages_that_are_broken", seed);
        let sample = pick(&mut case.rng, &samples);
        let mut body = match own(&cluster, sample).await.filter(|_| case.rng.bool()) {
            Some(body) => body,
            None => {
                let metadata = field(1, &field(1, b"kinds-0"));
                let rest = message(&mut case.rng, 24);
                envelope(sample, &[metadata, rest].concat())
            }
        };
        if case.rng.u8(..4) > 0 {
            bytes(&mut case.rng, &mut body);
        }
        let method = *pick(&mut case.rng, &["POST", "PUT", "DELETE"]);
        let path = match method {
            "POST" => sample.collection.clone(),
            _ => sample.path(),
        };
        let path = path + "?dryRun=All";
        send(&cluster, (method, &path), MEDIA, body).await;
        if method == "DELETE" && !sample.decides() {
            // A body takes the place of the query, so that the object may be gone.
            cluster.post(&sample.collection, &sample.object).await;
        }
    }
}
