//! Measures events per second through translation, projection, the timeline in memory and the encoder: `cargo run
//! --release -p pinion-pinocchio --example throughput`.
//!
//! It measures processor time, so that other programs on the machine do not change the result.

use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use pinion_agent::Event;
use pinion_history::MemoryTimeline;
use pinion_jsonl::{DeltaText, Project, Records};
use pinion_message::{AssistantMessage, Block, Message, StopReason, Usage};
use pinion_pinocchio::{
    Closing, Front, FrontOptions, Out, PatchMode, RunEnd, RunStart, Terminal, new_id, new_root,
};

const RUNS: usize = 10;
const DELTAS: usize = 20_000;

fn main() -> std::io::Result<()> {
    for (what, has_store, mode, deltas) in [
        ("append, store", true, PatchMode::Append, DELTAS),
        ("append, no store", false, PatchMode::Append, DELTAS),
        (
            "snapshot of up to 4 kB, store",
            true,
            PatchMode::Snapshot,
            330,
        ),
    ] {
        let runs = RUNS * DELTAS / deltas;
        let mut front = Front::new(FrontOptions {
            patch_mode: mode,
            store: has_store.then(|| Box::new(MemoryTimeline::without_versions()) as _),
            copy: None,
        });
        let mut records = Records::new(File::options().write(true).open("/dev/null")?);
        let began = processor_time()?;
        for _ in 0..runs {
            for out in run(deltas) {
                front.project(out, &mut records);
            }
            front.before_flush(&mut records);
            records.flush();
        }
        let taken = processor_time()?.saturating_sub(began).max(1);
        let events = (runs * (deltas + 8)) as u64;
        let rate = events * 1_000_000_000 / taken;
        eprintln!("{what}: {events} events, {rate} a second");
    }
    Ok(())
}

fn run(deltas: usize) -> impl Iterator<Item = Out> {
    let start = RunStart {
        session_id: new_id().into(),
        root: new_root().into(),
        inference_id: new_id().into(),
        turn_id: new_id().into(),
        prompt: "Count to a million.".into(),
    };
    let begins = Out::RunBegins {
        start: Box::new(start),
        request_id: "request".into(),
    };
    let told = |event| Out::Event {
        event,
        at: Instant::now(),
        weight: 0,
    };
    let block = |text: String| Arc::new(Block::text(text));
    let opening = [
        begins,
        told(Event::TurnStart),
        told(Event::MessageStart(answer())),
        told(Event::BlockStart {
            index: 0,
            block: block(String::new()),
        }),
    ];
    let growing = (0..deltas).map(|_| Out::Delta {
        index: 0,
        text: DeltaText::One("twelve bytes".into()),
        weight: 0,
    });
    let closing = [
        told(Event::BlockEnd {
            index: 0,
            block: block("twelve bytes".repeat(deltas)),
        }),
        told(Event::MessageEnd(answer())),
        Out::RunEnded {
            end: RunEnd::Finished,
            at: Instant::now(),
            closing: Closing::Request {
                terminal: Terminal::No,
            },
        },
    ];
    opening.into_iter().chain(growing).chain(closing)
}

fn answer() -> Arc<Message> {
    Arc::new(Message::Assistant(AssistantMessage {
        content: Vec::new(),
        api: "openai-completions".into(),
        provider: "openai".into(),
        model: "m".into(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        timestamp: 0,
        response_id: Some("chatcmpl-1".into()),
        response_model: None,
        error_message: None,
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }))
}

/// Nanoseconds of processor time that this thread has used.
fn processor_time() -> std::io::Result<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split_whitespace().next().unwrap_or_default();
    Ok(first.parse().unwrap_or_default())
}
