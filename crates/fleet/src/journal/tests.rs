use super::*;

fn event(index: usize) -> FleetEvent {
    FleetEvent::ChildTool {
        child: format!("c{index}"),
        attempt: 1,
        tool: "bash".into(),
    }
}

#[test]
fn a_cut_anywhere_loses_only_the_last_record() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    for index in 0..3 {
        journal.append(event(index)).unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let (mut journal, JournalContents { records, damage }) = Journal::open(&path).unwrap();
        let complete = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        let unterminated = whole.get(cut) == Some(&b'\n');
        assert_eq!(
            records.len(),
            complete + usize::from(unterminated),
            "cut at {cut}"
        );
        let torn = whole[..cut].rsplit(|byte| *byte == b'\n').next().unwrap();
        let is_torn = !torn.is_empty() && !unterminated;
        assert_eq!(
            damage.len(),
            usize::from(is_torn),
            "cut at {cut}: {damage:?}"
        );
        let beside = directory.path().join("events.jsonl.torn");
        if is_torn {
            assert_eq!(std::fs::read(&beside).unwrap(), [torn, b"\n"].concat());
            std::fs::remove_file(&beside).unwrap();
        }
        assert!(!beside.exists(), "cut at {cut}");
        journal.append(event(9)).unwrap();
        let again = Journal::read(&path).unwrap();
        assert!(again.damage.is_empty(), "{:?}", again.damage);
        let numbers: Vec<u64> = again.records.iter().map(|record| record.seq).collect();
        let expected: Vec<u64> = (1..=records.len() as u64 + 1).collect();
        assert_eq!(numbers, expected, "cut at {cut}");
    }
}

#[test]
fn a_damaged_line_is_reported_and_affects_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("events.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    for index in 0..3 {
        journal.append(event(index)).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"c1\"", "\"c1")).unwrap();
    let read = Journal::read(&path).unwrap();
    let (_, opened) = Journal::open(&path).unwrap();
    for contents in [read, opened] {
        let numbers: Vec<u64> = contents.records.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(contents.damage.len(), 1);
        assert!(contents.damage[0].starts_with("line 2 of the journal"));
    }
}
