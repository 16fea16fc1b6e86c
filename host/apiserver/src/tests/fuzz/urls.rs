//! Paths, query strings, selectors and `Accept` headers.

use super::mutate::{pick, words};
use super::{Ask, Case, ask, cluster, samples, seeds};

const METHODS: &[&str] = &[
    "GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "DELETE", "TRACE",
];
const PATH: &[&str] = &[
    "/api",
    "/apis",
    "/v1",
    "/apps",
    "/namespaces",
    "/default",
    "/pods",
    "/configmaps",
    "/kinds-0",
    "/status",
    "/scale",
    "/proxy",
    "/watch",
    "/%2F",
    "/%00",
    "/%ff",
    "/..",
    "/.",
    "//",
    "/%",
    "/openapi",
    "/v2",
    "/v3",
    "/log",
];
const FIELDS: &[&str] = &[
    "labelSelector",
    "fieldSelector",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "timeoutSeconds",
    "watch",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "dryRun",
    "includeObject",
    "fieldManager",
    "propagationPolicy",
    "force",
    "x",
];
const VALUES: &[&str] = &[
    "true",
    "false",
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "18446744073709551616",
    "Exact",
    "NotOlderThan",
    "All",
    "None",
    "a",
    "=",
    "!",
    "==",
    "!=",
    "%20in%20(",
    "%20notin%20(",
    ")",
    ",",
    "(",
    ">",
    "<",
    "%3E9223372036854775808",
    "metadata.name",
    "metadata.namespace",
    "status.phase",
    "kinds-0",
    "%5C",
    "%00",
    "%C3%A9",
    "%",
    "%f0%9f%a6%80",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTg0NDY3NDQwNzM3MDk1NTE2MTV9",
];
const ACCEPTS: &[&str] = &[
    "application/json",
    "application/yaml",
    "*/*",
    ";as=Table",
    ";g=meta.k8s.io",
    ";v=v1",
    ";q=",
    "0.1",
    ",",
    ";as=PartialObjectMetadataList",
];

#[tokio::test(start_paused = true)]
async fn paths_and_queries_that_mean_nothing() {
    let samples = samples();
    let cluster = cluster(&samples).await;
    let mut sent = 0;
    for seed in seeds(1200) {
        let mut case = Case::new("paths_and_queries_that_mean_nothing", seed);
        let rng = &mut case.rng;
        let mut path = match rng.bool() {
            true => pick(rng, &samples).collection.clone(),
            false => pick(rng, &samples).path(),
        };
        if rng.bool() {
            path = words(rng, PATH, 8);
        }
        let count = rng.usize(..6);
        let query: Vec<String> = (0..count)
            .map(|_| format!("{}={}", pick(rng, FIELDS), words(rng, VALUES, 5)))
            .collect();
        // A deletion must leave the objects for the next case.
        let method = *pick(rng, METHODS);
        let dry = match method {
            "DELETE" => "dryRun=All&",
            _ => "",
        };
        let path = format!("{path}?{dry}{}", query.join("&"));
        // A refusal in YAML would not be read.
        let accept = match method {
            "GET" if rng.u8(..4) == 0 => words(rng, ACCEPTS, 5).replace("application/yaml", "*/*"),
            _ => String::new(),
        };
        let body = Vec::new();
        let request = Ask {
            method,
            path: &path,
            media: "",
            accept: &accept,
            body,
        };
        sent += usize::from(ask(&cluster, request).await.is_some());
    }
    assert!(sent > 0, "no request was sent");
}
