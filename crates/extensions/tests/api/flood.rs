//! A provider of an extension that sends faster than the run reads: it waits, no event is lost, and an abort ends it.

use std::time::Duration;

use futures_util::StreamExt;
use pinion_llm::{EventStream, Request, RequestOptions, StreamEvent};
use pinion_message::StopReason;
use tokio_util::sync::CancellationToken;

use crate::stage::{Stage, model};

/// Deltas of the finite answer.
const DELTAS: usize = 20_000;
/// More than may wait for the reader, and much less than the whole answer.
const MOST_MADE: usize = 1_100;

const FLOODS: &str = r#"
  let made = 0, ended = "no";
  const blank = (model) => ({ role: "assistant", content: [{ type: "text", text: "" }], api: model.api, provider: model.provider,
    model: model.id, stopReason: "stop", timestamp: Date.now(),
    usage: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0, cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 } } });
  export default (pi) => {
    pi.registerProvider("own", {
      baseUrl: "http://127.0.0.1:9", apiKey: "k", api: "own-api",
      models: [{ id: "x", name: "X", reasoning: false, input: ["text"], contextWindow: 10, maxTokens: 10 }],
      async *streamSimple(model, { systemPrompt }, { signal }) {
        const [limit, size, obeys] = JSON.parse(systemPrompt);
        const message = blank(model);
        made = 0; ended = "no";
        try {
          yield { type: "start", partial: message };
          yield { type: "text_start", contentIndex: 0, partial: message };
          for (let n = 0; n < limit; n++) {
            if (obeys && signal.aborted) {
              yield { type: "error", reason: "aborted", error: { ...message, stopReason: "aborted", errorMessage: "stopped" } };
              return;
            }
            made++;
            yield { type: "text_delta", contentIndex: 0, delta: `${n} `.padEnd(size), partial: message };
            if (n % 100 === 0) await new Promise((resolve) => setTimeout(resolve, 0));
          }
          yield { type: "text_end", contentIndex: 0, partial: message };
          yield { type: "done", reason: "stop", message };
        } finally {
          ended = "yes";
        }
      },
    });
    pi.registerCommand("made", { handler: (_, ctx) => ctx.ui.notify(`${made} ${ended}`) });
  };"#;

/// Requests up to `limit` deltas of `size` bytes from a provider that ends after an abort only if `obeys`.
fn flood(
    stage: &Stage,
    limit: usize,
    size: usize,
    obeys: bool,
) -> (EventStream, CancellationToken) {
    let provider = stage.program.answering.lock().unwrap().clone().unwrap();
    let cancel = CancellationToken::new();
    let stream = provider.stream(Request {
        model: model("m1"),
        system_prompt: Some(format!("[{limit}, {size}, {obeys}]").into()),
        messages: Vec::new(),
        tools: Vec::new().into(),
        options: RequestOptions::default(),
        cancel: cancel.clone(),
    });
    (stream, cancel)
}

/// Returns the number of deltas that the extension made, and whether its generator has ended.
async fn made(stage: &Stage) -> (usize, bool) {
    let note = stage.command("/made").await.remove(0);
    let (made, ended) = note.split_once(' ').unwrap();
    (made.parse().unwrap(), ended == "yes")
}

/// Waits until the extension makes no more deltas and returns their number.
async fn made_at_rest(stage: &Stage) -> usize {
    let mut last = 0;
    for _ in 0..400 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (now, _) = made(stage).await;
        if now == last && now > 0 {
            return now;
        }
        last = now;
    }
    panic!("the extension never waits: {last} deltas");
}

/// Reads an answer to its end and returns the numbers of its deltas and the stop reason.
async fn read(mut stream: EventStream) -> (Vec<usize>, StopReason) {
    let mut numbers = Vec::new();
    loop {
        let next = tokio::time::timeout(Duration::from_secs(60), stream.next());
        match next.await.expect("an event in time").expect("an end") {
            StreamEvent::Delta { delta, .. } => numbers.push(delta.trim().parse().unwrap()),
            StreamEvent::End(message) => {
                assert!(stream.next().await.is_none(), "an answer ends once");
                return (numbers, message.stop_reason);
            }
            _ => {}
        }
    }
}

fn is_gapless(numbers: &[usize]) -> bool {
    numbers.iter().copied().eq(0..numbers.len())
}

#[tokio::test]
async fn a_provider_waits_for_a_run_that_does_not_read_and_loses_nothing() {
    let stage = Stage::new(FLOODS).await;
    let (stream, _cancel) = flood(&stage, DELTAS, 10, true);
    let waiting = made_at_rest(&stage).await;
    assert!(waiting < MOST_MADE, "{waiting} deltas wait");
    let (numbers, end) = read(stream).await;
    assert_eq!((numbers.len(), end), (DELTAS, StopReason::Stop));
    assert!(is_gapless(&numbers));
}

#[tokio::test]
async fn large_events_are_limited_by_their_bytes() {
    let stage = Stage::new(FLOODS).await;
    let (stream, _cancel) = flood(&stage, 40, 1 << 20, true);
    let waiting = made_at_rest(&stage).await;
    assert!(waiting <= 5, "{waiting} MiB wait");
    let (numbers, end) = read(stream).await;
    assert_eq!((numbers.len(), end), (40, StopReason::Stop));
    assert!(is_gapless(&numbers));
}

#[tokio::test]
async fn an_event_larger_than_the_limit_waits_alone() {
    let stage = Stage::new(FLOODS).await;
    let (stream, _cancel) = flood(&stage, 3, 6 << 20, true);
    let waiting = made_at_rest(&stage).await;
    assert!(waiting <= 2, "{waiting} events of 6 MiB");
    let (numbers, end) = read(stream).await;
    assert_eq!((numbers, end), (vec![0, 1, 2], StopReason::Stop));
}

#[tokio::test]
async fn an_abort_ends_an_answer_that_waits_for_its_reader() {
    let stage = Stage::new(FLOODS).await;
    for obeys in [true, false] {
        let (stream, cancel) = flood(&stage, usize::MAX >> 12, 10, obeys);
        made_at_rest(&stage).await;
        cancel.cancel();
        let (numbers, end) = read(stream).await;
        assert_eq!(end, StopReason::Aborted, "obeys: {obeys}");
        assert!(is_gapless(&numbers));
    }
}

#[tokio::test]
async fn an_abandoned_answer_ends_in_the_extension_too() {
    let stage = Stage::new(FLOODS).await;
    let (stream, _cancel) = flood(&stage, DELTAS, 10, true);
    made_at_rest(&stage).await;
    drop(stream);
    for _ in 0..400 {
        let (made, ended) = made(&stage).await;
        if ended {
            assert!(made < MOST_MADE, "{made}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the generator never ends");
}
