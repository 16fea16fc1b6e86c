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
fn turned(kept: &Kept, everywhere: bool, now: Timestamp) -> Kept {
    let turned = kept.turned(everywhere, now).unwrap();
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
        assert!(kept.turned(true, now).unwrap().is_none(), "{now}");
        assert!(kept.turned(false, now).unwrap().is_none(), "{now}");
    }
    let announced = kept.turned(true, end - DAY * 90).unwrap().unwrap();
    assert!(announced.current == kept.current, "the old one signs on");
    assert_eq!(certificates(&announced.bundle()), 2);
}

#[test]
fn a_new_authority_signs_after_it_was_everywhere_for_a_while() {
    let kept = short();
    let now = start() + DAY * 20;
    let announced = turned(&kept, true, now);
    assert!(announced.bundle().contains(&kept.current.certificate));

    // As long as one object lacks it, nothing happens, however long that takes.
    assert!(announced.turned(false, now + DAY * 70).unwrap().is_none());
    let marked = turned(&announced, true, now);
    assert!(marked.turned(true, now + SETTLE / 2).unwrap().is_none());
    // An object that loses it starts the wait anew.
    let lost = turned(&marked, false, now + SETTLE / 2);
    let again = turned(&lost, true, now + SETTLE);
    let waits = again.turned(true, now + SETTLE + SETTLE / 2);
    assert!(waits.unwrap().is_none());

    let signs = turned(&again, true, now + SETTLE + SETTLE);
    assert!(signs.current != kept.current && signs.next.is_none());
    assert_eq!(
        signs.bundle(),
        announced.bundle(),
        "nothing is to be patched"
    );
    assert!(!signs.current.ends_within(DAY * 3000, now), "for ten years");
}

#[test]
fn an_old_authority_is_trusted_for_thirty_days() {
    let now = start() + DAY * 20;
    let announced = turned(&short(), true, now);
    let marked = turned(&announced, true, now);
    let signs = turned(&marked, true, now + SETTLE);
    let later = now + SETTLE + DAY * 29;
    assert!(signs.turned(true, later).unwrap().is_none());
    let alone = turned(&signs, true, later + DAY);
    assert_eq!(certificates(&alone.bundle()), 1);
    assert!(alone.current == signs.current);
}

#[test]
fn on_the_last_day_a_new_authority_signs_in_any_case() {
    let announced = turned(&short(), false, start() + DAY * 20);
    let waits = announced.turned(false, start() + DAY * 98);
    assert!(waits.unwrap().is_none());
    let signs = turned(&announced, false, start() + DAY * 99);
    assert!(signs.current != announced.current);
    assert_eq!(certificates(&signs.bundle()), 2);
    let after = turned(&signs, false, start() + DAY * 100);
    assert_eq!(certificates(&after.bundle()), 1, "the old one has ended");
}

#[test]
fn what_is_kept_is_read_again() {
    let announced = turned(&short(), true, start() + DAY * 20);
    let marked = turned(&announced, true, start() + DAY * 20);
    let signs = turned(&marked, true, start() + DAY * 21);
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
