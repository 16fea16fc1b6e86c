use super::*;

const DAY: SignedDuration = SignedDuration::from_hours(24);

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// What is kept with an authority that ends in 100 days.
fn short() -> Kept {
    Kept::of(Authority::until(start(), start() + DAY * 100).unwrap())
}

/// What is kept after a step, whether it changed or not.
fn turned(kept: &Kept, held: Held, now: Timestamp) -> Kept {
    let turned = kept.turned(held, now).unwrap();
    turned.unwrap_or_else(|| kept.clone())
}

fn certificates(bundle: &str) -> usize {
    bundle.matches("BEGIN CERTIFICATE").count()
}

#[test]
fn nothing_happens_for_almost_ten_years() {
    let kept = Kept::make(start()).unwrap();
    let end = kept.current.not_after.0;
    for now in [start(), start() + DAY * 3000, end - DAY * 91] {
        assert!(
            kept.turned(Held::Everywhere, now).unwrap().is_none(),
            "{now}"
        );
        assert!(
            kept.turned(Held::NotEverywhere, now).unwrap().is_none(),
            "{now}"
        );
    }
    let announced = kept
        .turned(Held::Everywhere, end - DAY * 90)
        .unwrap()
        .unwrap();
    assert!(announced.current == kept.current, "the old one signs on");
    assert_eq!(certificates(&announced.bundle()), 2);
}

#[test]
fn a_new_authority_signs_after_it_was_everywhere_for_a_while() {
    let kept = short();
    let now = start() + DAY * 20;
    let announced = turned(&kept, Held::Everywhere, now);
    assert!(announced.bundle().contains(&kept.current.certificate));

    // As long as one object lacks it, nothing happens, however long that takes.
    assert!(
        announced
            .turned(Held::NotEverywhere, now + DAY * 70)
            .unwrap()
            .is_none()
    );
    let marked = turned(&announced, Held::Everywhere, now);
    assert!(
        marked
            .turned(Held::Everywhere, now + SETTLE / 2)
            .unwrap()
            .is_none()
    );
    // An object that loses it starts the wait anew.
    let lost = turned(&marked, Held::NotEverywhere, now + SETTLE / 2);
    let again = turned(&lost, Held::Everywhere, now + SETTLE);
    let waits = again.turned(Held::Everywhere, now + SETTLE + SETTLE / 2);
    assert!(waits.unwrap().is_none());

    let signs = turned(&again, Held::Everywhere, now + SETTLE + SETTLE);
    assert!(signs.current != kept.current && signs.next.is_none());
    assert_eq!(
        signs.bundle(),
        announced.bundle(),
        "nothing is to be patched"
    );
    assert!(!signs.current.ends_within(DAY * 3000, now), "for ten years");
}

#[test]
fn a_host_that_cannot_read_an_object_undoes_no_mark_and_sets_none() {
    let now = start() + DAY * 20;
    let announced = turned(&short(), Held::Unknown, now);
    assert!(announced.next.is_some());
    assert!(announced.turned(Held::Unknown, now).unwrap().is_none());
    let marked = turned(&announced, Held::Everywhere, now);
    let waits = marked.turned(Held::Unknown, now + SETTLE / 2);
    assert!(waits.unwrap().is_none());
    let signs = turned(&marked, Held::Unknown, now + SETTLE);
    assert!(signs.current != announced.current && signs.next.is_none());
}

#[test]
fn an_old_authority_is_trusted_for_thirty_days() {
    let now = start() + DAY * 20;
    let announced = turned(&short(), Held::Everywhere, now);
    let marked = turned(&announced, Held::Everywhere, now);
    let signs = turned(&marked, Held::Everywhere, now + SETTLE);
    let later = now + SETTLE + DAY * 29;
    assert!(signs.turned(Held::Everywhere, later).unwrap().is_none());
    let alone = turned(&signs, Held::Everywhere, later + DAY);
    assert_eq!(certificates(&alone.bundle()), 1);
    assert!(alone.current == signs.current);
}

#[test]
fn on_the_last_day_a_new_authority_signs_in_any_case() {
    let announced = turned(&short(), Held::NotEverywhere, start() + DAY * 20);
    let waits = announced.turned(Held::NotEverywhere, start() + DAY * 98);
    assert!(waits.unwrap().is_none());
    let signs = turned(&announced, Held::NotEverywhere, start() + DAY * 99);
    assert!(signs.current != announced.current);
    assert_eq!(certificates(&signs.bundle()), 2);
    let after = turned(&signs, Held::NotEverywhere, start() + DAY * 100);
    assert_eq!(certificates(&after.bundle()), 1, "the old one has ended");
}

#[test]
fn what_is_kept_is_read_again() {
    let announced = turned(&short(), Held::Everywhere, start() + DAY * 20);
    let marked = turned(&announced, Held::Everywhere, start() + DAY * 20);
    let signs = turned(&marked, Held::Everywhere, start() + DAY * 21);
    for kept in [short(), announced, marked, signs] {
        let data = kept.data().unwrap();
        assert_eq!(data["ca.crt"], kept.bundle().as_bytes());
        let read = Kept::read(&data).unwrap().unwrap();
        assert!(read == kept);
    }
    assert!(Kept::read(&BTreeMap::new()).unwrap().is_none());
    let damaged = BTreeMap::from([(STATE.to_owned(), br#"{"current":"hidden"}"#.to_vec())]);
    let text = Kept::read(&damaged).err().unwrap();
    assert!(text.contains(STATE) && !text.contains("hidden"), "{text}");
}
