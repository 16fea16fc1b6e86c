//! Tests of `fights-with`.

use super::*;

const MINE: &str = r#"{"replicas":1,"mode":"a"}"#;
const THEIRS: &str = r#"{"replicas":5,"mode":"a"}"#;

/// Returns turns of a key at the start of the story and at this time.
fn turns(ms: u64) -> [TurnRecord; 2] {
    [turn(0).patches(primary(), 7, 8), turn(ms)]
}

/// Returns changes of an object, each this many milliseconds after the one before, from one spec to
/// the next. `managers` has the manager of each change, or `None` for an own write.
fn story(of: &ObjectKey, pause: u64, specs: &[&str], managers: &[Option<&str>]) -> Vec<Wakened> {
    let steps = specs.windows(2).zip(managers).zip(1..);
    let story = steps.map(|((pair, managers), number)| {
        let ms = u64::from(number) * pause;
        change(number, ms, of, (pair[0], pair[1]), *managers)
    });
    story.collect()
}

/// Returns changes in which this controller and another writer take turns, for this many rounds.
fn fight(of: &ObjectKey, pause: u64, rounds: usize, manager: &str) -> Vec<Wakened> {
    let specs = [THEIRS, MINE].repeat(rounds);
    let specs = [&specs[..], &[THEIRS][..]].concat();
    story(of, pause, &specs, &[None, Some(manager)].repeat(rounds))
}

#[test]
fn the_other_writer_and_the_field_are_named() {
    let rival = managed(&[
        ("kubectl-create", "2026-01-01T00:00:00Z"),
        (MANAGER, "2026-01-01T00:00:09Z"),
        ("rival", "2026-01-01T00:00:09Z"),
    ]);
    let woken = fight(&primary(), 400, 2, &rival);
    assert_eq!(
        text(&turns(2000), &[], &woken, "fights-with"),
        "rival at spec.replicas: 2 times it wrote this field after this controller had"
    );
    // A quiet turn follows each own write.
    assert_eq!(names(&turns(10), &[quiet(2000)], &woken), ["fights-with"]);
    // A slow fight, and two managers with the same time.
    let both = managed(&[
        ("hpa", "2026-01-01T00:00:09Z"),
        ("rival", "2026-01-01T00:00:09Z"),
        ("hpa", "2026-01-01T00:00:09Z"),
    ]);
    let woken = fight(&config_map("child"), 15_000, 3, &both);
    assert_eq!(
        text(&turns(100_000), &[], &woken, "fights-with"),
        "hpa or rival at spec.replicas of ConfigMap default/child: \
         3 times it wrote this field after this controller had"
    );
    // Of two managers with the same time, the one that owns the field wrote it.
    let both = managed_fields(&[("hpa", "f:mode"), ("rival", "f:replicas")]);
    let woken = fight(&primary(), 400, 2, &both);
    let told = text(&turns(2000), &[], &woken, "fights-with");
    assert!(told.starts_with("rival at spec.replicas: "), "{told}");
    // The other writer sets a higher value each time.
    let specs = [
        r#"{"n":2}"#,
        r#"{"n":1}"#,
        r#"{"n":3}"#,
        r#"{"n":1}"#,
        r#"{"n":4}"#,
    ];
    let woken = story(&primary(), 100, &specs, &[None, Some(&*rival)].repeat(2));
    assert_eq!(names(&turns(2000), &[], &woken), ["fights-with"]);
}

#[test]
fn writers_of_one_object_are_no_fighters() {
    let rival = managed(&[("rival", "2026-01-01T00:00:09Z")]);
    let ours = managed(&[
        ("rival", "2026-01-01T00:00:01Z"),
        (MANAGER, "2026-01-01T00:00:09Z"),
    ]);
    let our_field = managed_fields(&[("rival", "f:mode"), (MANAGER, "f:replicas")]);
    let in_turn = [None, Some(&*rival)].repeat(4);
    let phases = [
        r#"{"p":"a"}"#,
        r#"{"p":"b"}"#,
        r#"{"p":"c"}"#,
        r#"{"p":"d"}"#,
        r#"{"p":"e"}"#,
        r#"{"p":"f"}"#,
        r#"{"p":"g"}"#,
    ];
    let fields = [
        r#"{"a":1,"b":1}"#,
        r#"{"a":2,"b":1}"#,
        r#"{"a":2,"b":2}"#,
        r#"{"a":3,"b":2}"#,
        r#"{"a":3,"b":3}"#,
        r#"{"a":4,"b":3}"#,
        r#"{"a":4,"b":4}"#,
    ];
    let rewind = fight(&primary(), 400, 4, &rival);
    let unknown = rewind.iter().cloned().map(|entry| Wakened {
        managed: None,
        ..entry
    });
    let two = [
        &fight(&config_map("a"), 100, 1, &rival)[..],
        &fight(&config_map("b"), 100, 1, &rival)[..],
    ]
    .concat();
    for (woken, newest, what) in [
        (fight(&primary(), 400, 1, &rival), 2000, "one round"),
        (
            fight(&primary(), 20_000, 2, &rival),
            90_000,
            "a person asks twice",
        ),
        (
            fight(&primary(), 100_000, 4, &rival),
            900_000,
            "now and then",
        ),
        (fight(&primary(), 400, 4, &rival), 400_000, "long ago"),
        (
            story(&primary(), 100, &phases, &in_turn),
            2000,
            "a phase that is handed on",
        ),
        (
            story(&primary(), 100, &fields, &in_turn),
            2000,
            "a field each",
        ),
        (
            fight(&primary(), 400, 4, &ours),
            4000,
            "own writes whose record is gone",
        ),
        (
            fight(&primary(), 400, 4, &our_field),
            4000,
            "an own write in the same second as another's",
        ),
        (unknown.collect(), 4000, "an unknown writer"),
        (two, 2000, "two objects"),
    ] {
        assert!(names(&turns(newest), &[], &woken).is_empty(), "{what}");
    }
}
