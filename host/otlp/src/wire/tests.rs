//! The bytes of the messages.

use std::time::Duration;

use super::*;
use crate::context::{Context, SpanId, TraceId};
use crate::state::TraceState;

/// A field of bytes, whose number and length are below 16 and 128.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let head = [(number << 3) | 2, u8::try_from(content.len()).unwrap()];
    [&head[..], content].concat()
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let instant = Instant::now();
    let clocks = Clocks {
        instant,
        wall: UNIX_EPOCH + Duration::from_nanos(0x0102),
    };
    let span = Span {
        context: Context {
            trace: TraceId::of(1),
            span: SpanId::of(2),
        },
        parent: Some(SpanId::of(3)),
        state: TraceState::parse("s=t"),
        name: "n".into(),
        kind: Kind::Client,
        began: instant,
        ended: instant + Duration::from_nanos(1),
        attributes: vec![("a", Value::Number(5)), ("b", Value::Flag(false))],
        error: Some("e".into()),
    };
    let resource = [("r".to_owned(), String::new())];
    let got = request(&resource, &[span], &clocks).encode_to_vec();

    let mut trace = [0; 16];
    trace[15] = 1;
    let mut own = [0; 8];
    own[7] = 2;
    let mut parent = [0; 8];
    parent[7] = 3;
    let attribute = |key: &[u8], value: &[u8]| field(9, &[field(1, key), field(2, value)].concat());
    let span = [
        field(1, &trace),
        field(2, &own),
        field(3, b"s=t"),
        field(4, &parent),
        field(5, b"n"),
        vec![6 << 3, 3],
        vec![(7 << 3) | 1, 2, 1, 0, 0, 0, 0, 0, 0],
        vec![(8 << 3) | 1, 3, 1, 0, 0, 0, 0, 0, 0],
        attribute(b"a", &[3 << 3, 5]),
        attribute(b"b", &[2 << 3, 0]),
        field(15, &[field(2, b"e"), vec![3 << 3, 2]].concat()),
        // A field number above 15 takes two bytes.
        vec![0x85, 0x01, 1, 1, 0, 0],
    ]
    .concat();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let scope = [field(1, b"vmhost"), field(2, version)].concat();
    // An empty text that is set is written.
    let resource = field(1, &[field(1, b"r"), field(2, &[(1 << 3) | 2, 0])].concat());
    let scope_spans = [field(1, &scope), field_long(2, &span)].concat();
    let all = [field(1, &resource), field_long(2, &scope_spans)].concat();
    assert_eq!(got, field_long(1, &all));
}

/// A field of bytes whose length may need two bytes.
fn field_long(number: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len();
    if length < 128 {
        return field(number, content);
    }
    let head = [
        (number << 3) | 2,
        ((length & 0x7f) as u8) | 0x80,
        (length >> 7) as u8,
    ];
    [&head[..], content].concat()
}

#[test]
fn the_parent_of_a_server_s_span_is_elsewhere() {
    let now = Instant::now();
    let clocks = Clocks {
        instant: now,
        wall: UNIX_EPOCH,
    };
    let mut span = Span {
        context: Context::root(TraceId::of(1)),
        parent: Some(SpanId::of(3)),
        state: None,
        name: "n".into(),
        kind: Kind::Server,
        began: now,
        ended: now,
        attributes: Vec::new(),
        error: None,
    };
    let message = one(&span, &clocks);
    assert_eq!((message.kind, message.flags), (2, 0x301));
    span.parent = None;
    assert_eq!(one(&span, &clocks).flags, 0x101);
}

#[test]
fn what_a_collector_rejects_is_read() {
    let partial = |count: u8| field(1, &[vec![1 << 3, count], field(2, b"why")].concat());
    assert_eq!(rejected(&partial(2)), Some((2, "why".to_owned())));
    for none in [Vec::new(), partial(0), b"no protobuf".to_vec()] {
        assert_eq!(rejected(&none), None, "{none:?}");
    }
}

#[test]
fn times_before_and_after_the_reading_are_told() {
    let instant = Instant::now() + Duration::from_secs(10);
    let clocks = Clocks {
        instant,
        wall: UNIX_EPOCH + Duration::from_secs(100),
    };
    let second = Duration::from_secs(1);
    assert_eq!(clocks.nanos(instant - second), 99_000_000_000);
    assert_eq!(clocks.nanos(instant + second), 101_000_000_000);
}
