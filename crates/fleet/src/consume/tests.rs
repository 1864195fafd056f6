use super::*;
use crate::{AgentKind, JsonlRules, Text};
use proptest::prelude::*;

struct Scene {
    directory: tempfile::TempDir,
    consumer: Consumer,
    events: Vec<ChildEvent>,
}

fn scene(limit: usize) -> Scene {
    let directory = tempfile::tempdir().unwrap();
    let log = BatchLog::create(&directory.path().join("log")).unwrap();
    let adapter = AgentKind::Pi.adapter(&JsonlRules::default());
    Scene {
        consumer: Consumer::with_limit(adapter, log, limit),
        directory,
        events: Vec::new(),
    }
}

impl Scene {
    fn feed(&mut self, bytes: &[u8]) {
        self.consumer.feed(bytes, Duration::ZERO, &mut self.events);
    }

    fn end(mut self) -> (Vec<u8>, Counts, Vec<ChildEvent>) {
        self.consumer.finish(&mut self.events);
        let log = std::fs::read(self.directory.path().join("log")).unwrap();
        (log, self.consumer.counts(), self.events)
    }
}

#[test]
fn noise_and_a_torn_end_are_logged_and_counted() {
    let text = b"{\"type\":\"agent_start\"}\r\nwarning: x\n\n{\"type\":\"message_end\"}\n{\"a\":1}\n[1]\n{broken}\n{\"type\":\"agent_end\"}\n{\"type\":\"agent_set";
    let mut scene = scene(1000);
    scene.feed(text);
    let (log, counts, events) = scene.end();
    assert_eq!(log, text);
    assert_eq!(
        counts,
        Counts {
            lines: 9,
            bytes: text.len() as u64,
            events: 3,
            noise: 2,
            truncated: 1,
            cut: 0
        }
    );
    assert_eq!(
        events,
        [
            ChildEvent::Started { session: None },
            ChildEvent::Text(Text::Partial),
            ChildEvent::Idle
        ]
    );
}

#[test]
fn a_last_event_over_the_limit_still_counts() {
    let head = b"{\"type\":\"agent_end\",\"messages\":[";
    for pieces in [&[20_000][..], &[9_000, 1_000, 10_000], &[100; 200]] {
        let mut scene = scene(10_000);
        scene.feed(head);
        for piece in pieces {
            scene.feed(&vec![b'1'; *piece]);
            assert!(scene.consumer.pending.len() <= 10_000);
        }
        scene.feed(b"]}\n");
        let (_, counts, events) = scene.end();
        assert_eq!((counts.cut, counts.events, counts.noise), (1, 1, 0));
        assert_eq!(events, [ChildEvent::Idle]);
    }
    let mut whole = scene(10_000);
    let mut line = head.to_vec();
    line.extend(vec![b'1'; 20_000]);
    line.extend(b"]}\n");
    whole.feed(&line);
    assert_eq!(whole.end().2, [ChildEvent::Idle]);
}

#[test]
fn a_torn_tail_is_counted_once() {
    for tail in ["{\"type\":\"agent_e", "half a word"] {
        let mut scene = scene(1000);
        scene.feed(tail.as_bytes());
        let (_, counts, _) = scene.end();
        assert_eq!((counts.truncated, counts.noise), (1, 0), "{tail}");
    }
}

#[test]
fn an_event_without_its_end_of_line_counts() {
    let mut scene = scene(1000);
    scene.feed(b"{\"type\":\"agent_end\"}");
    let (_, counts, events) = scene.end();
    assert_eq!((counts.truncated, counts.events), (1, 1));
    assert_eq!(events, [ChildEvent::Idle]);
}

#[test]
fn a_line_past_the_limit_is_cut_and_the_next_is_fine() {
    let mut scene = scene(10_000);
    for _ in 0..100 {
        scene.feed(&[b'x'; 4096]);
        assert!(scene.consumer.pending.capacity() <= 16_384);
    }
    scene.feed(b"\n{\"type\":\"agent_end\"}\n");
    let (log, counts, events) = scene.end();
    assert_eq!(log.len(), 10_000 + 1 + 21);
    assert_eq!((counts.cut, counts.lines, counts.noise), (1, 2, 0));
    assert_eq!(events, [ChildEvent::Idle]);
}

#[test]
fn long_lines_that_need_no_reading_are_not_held() {
    let mut scene = scene(LINE_LIMIT);
    let filler = vec![b'y'; 64 * 1024];
    scene.feed(b"{\"type\":\"message_update\",\"x\":\"");
    for _ in 0..64 {
        scene.feed(&filler);
        assert!(scene.consumer.pending.len() <= KIND_SEARCH_BYTES);
    }
    scene.feed(b"\"}\n");
    let (_, counts, events) = scene.end();
    assert_eq!((counts.events, counts.noise), (1, 0));
    assert_eq!(events, [ChildEvent::Text(Text::Partial)]);
}

proptest! {
    #[test]
    fn chunking_makes_no_difference(
        lines in proptest::collection::vec(prop_oneof![
            Just("{\"type\":\"agent_start\"}".to_owned()),
            Just("{\"type\":\"message_update\",\"delta\":\"x\"}".to_owned()),
            (0usize..9000).prop_map(|size| format!("{{\"type\":\"message_update\",\"delta\":\"{}\"}}", "z".repeat(size))),
            (0usize..9000).prop_map(|size| format!("{{\"pad\":\"{}\",\"type\":\"agent_end\"}}", "z".repeat(size))),
            (0usize..9000).prop_map(|size| "n".repeat(size)),
            "[ -~]{0,30}",
        ], 0..12),
        cuts in proptest::collection::vec(any::<proptest::sample::Index>(), 0..20),
        torn in any::<bool>(),
    ) {
        let mut text = lines.join("\n").into_bytes();
        if !torn && !text.is_empty() {
            text.push(b'\n');
        }
        let mut whole = scene(7000);
        whole.feed(&text);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        cuts.push(0);
        cuts.push(text.len());
        cuts.sort_unstable();
        let mut pieces = scene(7000);
        for pair in cuts.windows(2) {
            pieces.feed(&text[pair[0]..pair[1]]);
        }
        prop_assert_eq!(pieces.end(), whole.end());
    }
}
