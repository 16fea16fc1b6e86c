//! What the variables mean.

use super::*;
use crate::sampler::Share;

fn read(set: &[(&str, &str)]) -> Result<Option<Settings>, SettingsError> {
    Settings::read(|name| {
        let found = set.iter().find(|(key, _)| *key == name)?;
        Some(found.1.to_owned())
    })
}

const ON: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318/");

fn on(more: &[(&str, &str)]) -> Settings {
    read(&[&[ON][..], more].concat()).unwrap().unwrap()
}

#[test]
fn nothing_is_exported_unless_somebody_asks() {
    for off in [
        &[][..],
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")],
        &[ON, ("OTEL_SDK_DISABLED", "TRUE")],
        &[ON, ("OTEL_TRACES_EXPORTER", "none")],
        &[ON, ("OTEL_TRACES_SAMPLER", "always_off")],
        // What is wrong besides is of no interest.
        &[
            ("OTEL_SDK_DISABLED", "true"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector"),
        ],
        &[
            ("OTEL_TRACES_EXPORTER", "none"),
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector"),
        ],
    ] {
        assert!(read(off).unwrap().is_none(), "{off:?}");
    }
    let local = read(&[("OTEL_TRACES_EXPORTER", "otlp")]).unwrap().unwrap();
    assert_eq!(local.endpoint(), "http://localhost:4318/v1/traces");
}

#[test]
fn the_endpoint_of_traces_is_used_as_it_is() {
    assert_eq!(on(&[]).endpoint(), "http://collector:4318/v1/traces");
    let below = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example/otlp");
    let below = read(&[below]).unwrap().unwrap();
    assert_eq!(below.endpoint(), "https://c.example/otlp/v1/traces");
    let own = (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        "http://c:1/x?key=s3cret",
    );
    let settings = on(&[own]);
    assert_eq!(settings.endpoint(), "http://c:1/x");
    assert_eq!(settings.endpoint, "http://c:1/x?key=s3cret");
    let keyed = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:1/x/?key=s3cret");
    let keyed = read(&[keyed]).unwrap().unwrap();
    assert_eq!(keyed.endpoint, "http://c:1/x/v1/traces?key=s3cret");
}

#[test]
fn headers_and_attributes_are_percent_decoded() {
    let settings = on(&[
        ("OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%20b , x=1,"),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=other,k8s.pod%2Ename=p%2C1",
        ),
    ]);
    assert_eq!(settings.headers["api-key"], "a b");
    assert_eq!(settings.headers["x"], "1");
    let attribute = |settings: &Settings, key: &str| {
        let found = settings.resource.iter().find(|(known, _)| known == key);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(
        attribute(&settings, "service.name").as_deref(),
        Some("other")
    );
    assert_eq!(attribute(&settings, "k8s.pod.name").as_deref(), Some("p,1"));
    assert!(attribute(&settings, "service.instance.id").is_some());
    let named = on(&[
        ("OTEL_SERVICE_NAME", "mine"),
        ("OTEL_RESOURCE_ATTRIBUTES", "service.name=other"),
    ]);
    assert_eq!(attribute(&named, "service.name").as_deref(), Some("mine"));
    assert_eq!(
        attribute(&on(&[]), "service.name").as_deref(),
        Some("vmhost")
    );
}

#[test]
fn batches_have_opentelemetry_s_defaults() {
    let settings = on(&[]);
    assert_eq!((settings.queue, settings.batch), (2048, 512));
    assert_eq!(settings.timeout, Duration::from_secs(10));
    assert_eq!(settings.export, Duration::from_secs(30));
    assert_eq!(settings.delay, Duration::from_secs(5));
    let settings = on(&[
        ("OTEL_BSP_SCHEDULE_DELAY", "50"),
        ("OTEL_BSP_MAX_QUEUE_SIZE", "100"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "7"),
    ]);
    assert_eq!(settings.delay, Duration::from_millis(50));
    assert_eq!((settings.queue, settings.batch), (100, 100));
    assert_eq!(settings.timeout, Duration::from_millis(7));
}

#[test]
fn bodies_are_compressed_if_a_variable_says_so() {
    assert!(!on(&[]).compresses);
    for (value, expected) in [("gzip", true), ("none", false), ("", false)] {
        let general = ("OTEL_EXPORTER_OTLP_COMPRESSION", value);
        assert_eq!(on(&[general]).compresses, expected, "{value}");
        let own = ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", value);
        assert_eq!(on(&[own]).compresses, expected, "{value}");
    }
    let both = [
        ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
        ("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "none"),
    ];
    assert!(!on(&both).compresses);
}

#[test]
fn a_sampler_takes_a_share() {
    let share = |argument: &str| {
        on(&[
            ("OTEL_TRACES_SAMPLER", "parentbased_traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", argument),
        ])
        .sampler
    };
    let of = |share| Sampler {
        share,
        by_parent: true,
    };
    assert_eq!(share("0.5"), of(Share::Below(1 << 62)));
    assert_eq!(share("1"), of(Share::All));
    assert_eq!(on(&[]).sampler, of(Share::All));
    let sampler = |name: &str| on(&[("OTEL_TRACES_SAMPLER", name)]).sampler;
    assert_eq!(sampler("parentbased_always_off"), of(Share::Nothing));
    assert!(!sampler("always_on").by_parent);
}

#[test]
fn traces_go_on_elsewhere_unless_told_otherwise() {
    assert!(on(&[]).propagates);
    for (set, propagates) in [
        ("tracecontext,baggage", true),
        ("b3, tracecontext", true),
        ("b3", false),
        ("none", false),
    ] {
        let settings = on(&[("OTEL_PROPAGATORS", set)]);
        assert_eq!(settings.propagates, propagates, "{set}");
    }
}

#[test]
fn a_certificate_of_this_process_has_a_key() {
    let certificate = ("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/c");
    let key = ("OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY", "/k");
    let (of, with) = on(&[certificate, key]).identity.unwrap();
    assert_eq!((of.variable, with.variable), (certificate.0, key.0));
    for alone in [certificate, key] {
        let error = read(&[ON, alone]).err().unwrap().to_string();
        assert!(error.starts_with(alone.0), "{error}");
    }
    assert_eq!(on(&[]).identity, None);
}

#[test]
fn what_cannot_be_used_is_named() {
    let cases: [(&[(&str, &str)], &str); 11] = [
        (&[ON, ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")], "gzip"),
        (&[ON, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "4318"),
        (&[ON, ("OTEL_TRACES_EXPORTER", "zipkin")], "zipkin"),
        (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318")], "URL"),
        (
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:s3cret@c:4318")],
            "HEADERS",
        ),
        (&[ON, ("OTEL_TRACES_SAMPLER", "jaeger_remote")], "jaeger"),
        (&[ON, ("OTEL_BSP_MAX_QUEUE_SIZE", "0")], "QUEUE_SIZE=0"),
        (&[ON, ("OTEL_RESOURCE_ATTRIBUTES", "a=b,c")], "entry 2"),
        (&[ON, ("OTEL_EXPORTER_OTLP_HEADERS", "=s3cret")], "entry 1"),
        // Empty entries count too, as a person counts them.
        (
            &[ON, ("OTEL_EXPORTER_OTLP_HEADERS", "a=b,,x y=s3cret")],
            "entry 3",
        ),
        (
            &[
                ON,
                ("OTEL_TRACES_SAMPLER", "traceidratio"),
                ("OTEL_TRACES_SAMPLER_ARG", "2"),
            ],
            "share",
        ),
    ];
    for (set, word) in cases {
        let error = read(set).err().map(|error| error.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains(word), "{set:?}: {error:?}");
        assert!(!error.contains("s3cret"), "{error}");
    }
}
