//! Response bodies decoded from memory: as they are, and cut at every single byte.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a vector that does not read is a failed test"
)]

mod support;

use pinion_llm::{Request, ResponseDecoder, StreamEvent};
use pinion_message::Block;
use serde_json::Value;
use support::expectation::{check, expectation};
use support::{files, hello, read, request, vectors};

const APIS: [(&str, usize); 4] = [
    ("anthropic-messages", 21),
    ("openai-completions", 25),
    ("openai-responses", 20),
    ("google-generative-ai", 19),
];

struct Case {
    name: String,
    vector: Value,
    request: Request,
    body: Vec<u8>,
}

/// The vectors whose last response is a stream.
fn cases(api: &str, count: usize) -> Vec<Case> {
    let files = files(api, ".expected.json");
    assert_eq!(files.len(), count, "{api}");
    let context = hello();
    let mut cases = Vec::new();
    for file in files {
        let vector = read(&file);
        let last = vector["responses"].as_array().unwrap().last().unwrap();
        if last["status"] == 200 {
            let body = vectors().join(api).join(last["bodyFile"].as_str().unwrap());
            let name = vector["vector"].as_str().unwrap().to_owned();
            cases.push(Case {
                name,
                request: request(&vector, &context, "http://test"),
                body: std::fs::read(body).unwrap(),
                vector,
            });
        }
    }
    cases
}

fn decode<'a>(case: &Case, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<StreamEvent> {
    let mut decoder = ResponseDecoder::new(&case.request).unwrap();
    decoder.begin();
    for piece in pieces {
        decoder.push(piece);
    }
    if case.vector.get("abortAfterEvents").is_some() {
        decoder.abort("Request was aborted");
    } else {
        decoder.finish();
    }
    assert!(decoder.is_ended());
    std::iter::from_fn(|| decoder.next_event()).collect()
}

#[test]
fn every_body_decodes_as_recorded() {
    let mut seen = 0;
    for (api, count) in APIS {
        for case in cases(api, count) {
            check(
                &case.name,
                &decode(&case, [&case.body[..]]),
                &expectation(&case.vector),
            );
            seen += 1;
        }
    }
    assert_eq!(seen, 76);
}

#[test]
fn single_bytes_make_no_difference() {
    for (api, count) in APIS {
        for case in cases(api, count) {
            check(
                &case.name,
                &decode(&case, case.body.chunks(1)),
                &expectation(&case.vector),
            );
        }
    }
}

/// The events without the parts that differ from run to run.
fn summary(events: &[StreamEvent]) -> String {
    let block = |summary: &mut String, block: &Block| match block {
        Block::ToolCall(call) => *summary += &format!("{}({})", call.name, call.arguments),
        Block::Text(text) => *summary += &text.text,
        Block::Thinking(thinking) => *summary += &thinking.thinking,
        Block::Image { .. } => {}
    };
    let mut summary = String::new();
    for event in events {
        match event {
            StreamEvent::Start(_) => summary += "\nstart",
            StreamEvent::Usage(usage) => summary += &format!("\nusage {}", usage.total_tokens),
            StreamEvent::BlockStart { index, .. } => summary += &format!("\n[{index}"),
            StreamEvent::Delta { index, delta } => summary += &format!("\n{index}+{delta}"),
            StreamEvent::BlockEnd {
                index,
                block: ended,
            } => {
                summary += &format!("\n{index}] ");
                block(&mut summary, ended);
            }
            StreamEvent::End(message) => {
                summary += &format!("\n{:?} {:?} ", message.stop_reason, message.error_message);
                message
                    .content
                    .iter()
                    .for_each(|ended| block(&mut summary, ended));
            }
        }
    }
    summary
}

#[test]
fn cutting_a_body_in_two_makes_no_difference() {
    for (api, count) in APIS {
        for case in cases(api, count) {
            let whole = summary(&decode(&case, [&case.body[..]]));
            // Every byte of the shorter bodies; single bytes, above, cover every place of all.
            for cut in (1..case.body.len()).step_by(1 + case.body.len() / 1000) {
                let (head, tail) = case.body.split_at(cut);
                assert_eq!(
                    summary(&decode(&case, [head, tail])),
                    whole,
                    "{} at {cut}",
                    case.name
                );
            }
        }
    }
}

#[test]
fn a_body_cut_short_anywhere_ends_exactly_once() {
    for (api, count) in APIS {
        for case in cases(api, count) {
            for cut in (0..case.body.len()).step_by(7) {
                let events = decode(&case, [&case.body[..cut]]);
                let ends = events
                    .iter()
                    .filter(|event| matches!(event, StreamEvent::End(_)));
                assert_eq!(ends.count(), 1, "{} cut at {cut}", case.name);
                assert!(matches!(events.last(), Some(StreamEvent::End(_))));
            }
        }
    }
}

#[test]
fn damaged_bodies_end_exactly_once() {
    const DAMAGE: &[u8] = b"\"\\{}[],:0n\r\n \xff";
    // A small generator, so that a failure can be repeated.
    let mut state: u64 = 1;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    for (api, count) in APIS {
        for mut case in cases(api, count) {
            let intact = case.body.clone();
            for _ in 0..30 {
                case.body.clone_from(&intact);
                for _ in 0..=random(4) {
                    let at = random(case.body.len());
                    case.body[at] = DAMAGE[random(DAMAGE.len())];
                }
                let events = decode(&case, [&case.body[..]]);
                let ends = events
                    .iter()
                    .filter(|event| matches!(event, StreamEvent::End(_)));
                assert_eq!(ends.count(), 1, "{}", case.name);
            }
        }
    }
}
