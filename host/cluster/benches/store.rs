//! From a watch line to the store: the cost of one event, by the size of its object.

#![allow(missing_docs, reason = "criterion's macros document nothing")]

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use vmhost_cluster::{Feed, Notice, Subscriber};

mod objects;

/// Keeps the name, as a queue does.
struct Keep;

impl Subscriber for Keep {
    fn notice(&self, notice: Notice<'_>) {
        black_box(notice.name.clone());
    }
}

/// The range of the version in a text.
fn version_of(text: &[u8]) -> std::ops::Range<usize> {
    let key = b"\"resourceVersion\":\"";
    let at = text.windows(key.len()).position(|window| window == key);
    let at = at.expect("it has one") + key.len();
    at..at + 12
}

fn count(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}

fn line(c: &mut Criterion) {
    for (wanted, name) in [(false, "whole"), (true, "wanted")] {
        let mut group = c.benchmark_group(format!("line/{name}"));
        for size in [512, 2 << 10, 10 << 10, 100 << 10] {
            let mut line = objects::line("MODIFIED", &objects::object(1, size));
            let at = version_of(&line);
            let mut feed = Feed::new(objects::spec(wanted), Some(Arc::new(Keep)));
            group.throughput(Throughput::Bytes(line.len() as u64));
            group.bench_function(size.to_string(), |b| {
                b.iter(|| {
                    count(&mut line[at.clone()]);
                    assert!(feed.line(&line));
                });
            });
            assert_eq!((feed.store().len(), feed.skipped()), (1, 0));
        }
    }
}

fn list(c: &mut Criterion) {
    let mut group = c.benchmark_group("list");
    for (wanted, name) in [(false, "whole"), (true, "wanted")] {
        let page = objects::page(0..500, 2 << 10);
        group.throughput(Throughput::Elements(500));
        group.bench_function(format!("page of 500/{name}"), |b| {
            b.iter(|| {
                let mut feed = Feed::new(objects::spec(wanted), Some(Arc::new(Keep)));
                feed.begin_list();
                assert!(feed.page(&page));
                assert!(feed.end_list(7));
                feed
            });
        });
        let mut feed = Feed::new(objects::spec(wanted), Some(Arc::new(Keep)));
        let relist = |feed: &mut Feed| {
            feed.begin_list();
            assert!(feed.page(&page));
            assert!(feed.end_list(7));
        };
        relist(&mut feed);
        group.bench_function(format!("relist of 500, unchanged/{name}"), |b| {
            b.iter(|| relist(&mut feed));
        });
    }
}

fn get(c: &mut Criterion) {
    let mut feed = Feed::new(objects::spec(false), None);
    feed.begin_list();
    assert!(feed.page(&objects::page(0..20_000, 512)));
    assert!(feed.end_list(7));
    let names = feed.store().names();
    let mut at = 0;
    c.bench_function("get/20000", |b| {
        b.iter(|| {
            at = (at + 7919) % names.len();
            black_box(feed.store().get(names[at].as_str()))
        });
    });
}

criterion_group!(benches, line, list, get);
criterion_main!(benches);
