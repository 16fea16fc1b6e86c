use super::*;

fn digest(letter: char) -> String {
    letter.to_string().repeat(64)
}

fn run(letter: char, size: u64) -> Run {
    Run {
        digest: digest(letter),
        version: String::new(),
        generation: 1,
        began: "2026-01-31T12:00:00Z".to_owned(),
        ended: None,
        why: None,
        size,
    }
}

/// Returns the index after these versions ran; each letter is one version of one byte.
fn after(letters: &str) -> Index {
    let mut index = Index::default();
    for letter in letters.chars() {
        index.begin(run(letter, 1), Why::Swapped);
    }
    index
}

fn kept(index: &Index) -> String {
    let kept = index.kept();
    kept.iter()
        .filter_map(|digest| digest.chars().next())
        .collect()
}

#[test]
fn a_run_ends_when_the_next_begins() {
    let mut index = after("ab");
    index.begin(run('c', 1), Why::Crash);
    let whys: Vec<_> = index.runs.iter().map(|run| run.why).collect();
    assert_eq!(whys, [Some(Why::Swapped), Some(Why::Crash), None]);
    assert!(index.runs[0].ended.is_some() && index.runs[1].ended.is_none());
    let end = Some("2026-01-31T13:00:00Z".to_owned());
    index.end(end.clone(), Why::Shutdown);
    index.end(None, Why::Crash);
    assert_eq!(index.runs[2].why, Some(Why::Shutdown));
    assert_eq!(index.runs[2].ended, end);
}

#[test]
fn ten_versions_are_kept_the_oldest_out_first() {
    let mut index = after("abcdefghijkl");
    assert_eq!(kept(&index), "lkjihgfedc");
    assert_eq!(index.runs.len(), VERSIONS);
    // A version that runs again becomes the newest.
    index.begin(run('c', 1), Why::RolledBack);
    assert_eq!(kept(&index), "clkjihgfed");
    index.begin(run('m', 1), Why::Swapped);
    assert_eq!(kept(&index), "mclkjihgfe");
}

#[test]
fn the_bytes_are_bounded_and_the_last_version_stays_whatever_its_size() {
    let mut index = after("ab");
    index.begin(run('c', BYTES - 1), Why::Swapped);
    assert_eq!(kept(&index), "cb");
    index.begin(run('d', BYTES + 1), Why::Swapped);
    assert_eq!(kept(&index), "d");
    index.begin(run('e', 1), Why::Swapped);
    assert_eq!(kept(&index), "e");
}

#[test]
fn many_starts_of_one_version_are_bounded_too() {
    let mut index = after("a");
    for _ in 0..2 * RUNS {
        index.begin(run('b', 1), Why::Shutdown);
    }
    assert_eq!(index.runs.len(), RUNS);
    assert_eq!(kept(&index), "b");
}

#[test]
fn a_rollback_means_the_newest_other_version_that_is_not_refused() {
    let mut index = after("abc");
    let there = |_: &str| true;
    assert_eq!(index.before(&digest('c'), there), Ok(&*digest('b')));
    index.roll_back(&digest('c'), &digest('b'));
    index.begin(run('b', 1), Why::RolledBack);
    assert!(index.refuses(&digest('c')) && !index.refuses(&digest('b')));
    // Never back to the version that was refused last.
    assert_eq!(index.before(&digest('b'), there), Ok(&*digest('a')));
    index.roll_back(&digest('b'), &digest('a'));
    index.begin(run('a', 1), Why::RolledBack);
    assert_eq!(
        index.before(&digest('a'), there),
        Err(HistoryError::NothingBefore)
    );
    // A rollback that names a refused version ends the refusal.
    index.roll_back(&digest('a'), &digest('c'));
    assert_eq!(index.refused, [digest('b'), digest('a')]);
    assert_eq!(
        after("a").before(&digest('a'), there),
        Err(HistoryError::NothingBefore)
    );
}

#[test]
fn only_other_bytes_in_the_source_lift_all_refusals() {
    let mut index = after("abc");
    index.roll_back(&digest('c'), &digest('b'));
    index.roll_back(&digest('b'), &digest('a'));
    // After a promotion the source still has the refused version.
    index.accept(&digest('d'), false);
    assert_eq!(index.refused, [digest('c'), digest('b')]);
    index.accept(&digest('b'), false);
    assert_eq!(index.refused, [digest('c')]);
    index.accept(&digest('e'), true);
    assert!(index.refused.is_empty());
}

#[test]
fn a_version_whose_bytes_are_gone_is_passed_over() {
    let index = after("abc");
    let only_a = |found: &str| found == digest('a');
    assert_eq!(index.before(&digest('c'), only_a), Ok(&*digest('a')));
    assert_eq!(
        index.before(&digest('c'), |_| false),
        Err(HistoryError::Gone(named(&digest('b'))))
    );
}

#[test]
fn a_version_is_found_by_the_beginning_of_its_digest() {
    let mut index = after("ab");
    index.runs[0].digest = format!("ab{}", "0".repeat(62));
    index.runs[1].digest = format!("ac{}", "0".repeat(62));
    for text in ["ab", "sha256:ab", "AB0", &index.runs[0].digest] {
        assert_eq!(index.find(text), Ok(&*index.runs[0].digest), "{text}");
    }
    let Err(HistoryError::Ambiguous { found, .. }) = index.find("sha256:a") else {
        panic!("{:?}", index.find("a"));
    };
    assert_eq!(found.len(), 2);
    for text in ["", "sha256:"] {
        assert_eq!(index.find(text), Err(HistoryError::Empty));
    }
    for text in ["b", "sha256", "abc"] {
        assert_eq!(
            index.find(text),
            Err(HistoryError::Unknown(text.to_owned()))
        );
    }
}

#[test]
fn the_index_is_read_as_it_was_written() {
    let mut index = after("ab");
    index.roll_back(&digest('b'), &digest('a'));
    let text = serde_json::to_string(&index).unwrap();
    assert_eq!(serde_json::from_str::<Index>(&text).unwrap(), index);
    // Fields that a later vmhost adds are ignored.
    let later = r#"{"runs": [], "refused": [], "more": 1}"#;
    assert_eq!(
        serde_json::from_str::<Index>(later).unwrap(),
        Index::default()
    );
}
