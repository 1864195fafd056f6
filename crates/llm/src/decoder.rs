//! Turns the bytes of a response body into events, without I/O. The exchange feeds it from a
//! socket, tests and cassettes from memory. The cuts between pieces of bytes make no difference.

use pinion_http::{Frame, FrameTooLong, SseParser};
use pinion_message::StopReason;
use serde_json::Value;

use crate::answer::Answer;
use crate::event_stream::{BrokenStream, EventStreamParser, StreamMessage};
use crate::request::{Request, StreamEvent};
use crate::{anthropic, bedrock, completions, google, mistral, responses};

/// Decodes the frames of one protocol.
pub(crate) trait Decode: Send + Sync {
    /// Decodes a frame. An error ends the answer with that text.
    fn frame(&mut self, answer: &mut Answer, frame: Frame<'_>) -> Result<Progress, String>;

    /// Decodes a message of an event stream of AWS. An error ends the answer with that text.
    fn message(
        &mut self,
        _answer: &mut Answer,
        _message: &StreamMessage<'_>,
    ) -> Result<Progress, String> {
        Ok(Progress::More)
    }

    /// Called after the last frame: returns the stop reason, or the reason why the answer is
    /// incomplete.
    fn finish(&mut self, answer: &mut Answer) -> Result<StopReason, String>;

    /// Called when the caller cancels. Most protocols leave open blocks open.
    fn aborted(&mut self, _answer: &mut Answer) {}
}

/// The need for further frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    More,
    Complete,
}

/// Turns the bytes of one response body into events.
///
/// ```text
/// begin → push* → finish | fail | abort, with next_event in between
/// ```
pub struct ResponseDecoder {
    framing: Framing,
    decode: Box<dyn Decode>,
    answer: Answer,
    /// The events of the server since [`ResponseDecoder::take_events`]; `None` if they are not collected.
    events: Option<Vec<Value>>,
}

/// Cuts the body into frames.
enum Framing {
    Sse(SseParser),
    EventStream(EventStreamParser),
}

impl std::fmt::Debug for ResponseDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseDecoder")
            .field("message", self.answer.message())
            .finish()
    }
}

impl ResponseDecoder {
    /// A decoder for the answer to `request`; `None` if its API is not supported.
    pub fn new(request: &Request) -> Option<Self> {
        let model = &request.model;
        let decode: Box<dyn Decode> = match model.api.as_str() {
            "anthropic-messages" => Box::new(anthropic::Stream::default()),
            "openai-completions" => Box::new(completions::Stream::new(model)),
            "openai-responses" | "azure-openai-responses" => Box::new(responses::Stream::default()),
            "openai-codex-responses" => Box::new(responses::Stream::codex()),
            "bedrock-converse-stream" => Box::new(bedrock::Stream::default()),
            "google-generative-ai" | "google-vertex" => Box::new(google::Stream::default()),
            "mistral-conversations" => Box::new(mistral::Stream::default()),
            _ => return None,
        };
        Some(Self {
            framing: match model.api.as_str() {
                "bedrock-converse-stream" => Framing::EventStream(EventStreamParser::default()),
                _ => Framing::Sse(SseParser::new()),
            },
            decode,
            answer: Answer::new(model.clone()),
            events: None,
        })
    }

    /// Call it when the response headers have arrived with a success status.
    pub fn begin(&mut self) {
        // Bedrock announces the beginning of an answer itself.
        if let Framing::Sse(_) = self.framing {
            self.answer.start();
        }
    }

    /// Collects the events of the server from now on.
    pub(crate) fn collect_events(&mut self) {
        self.events = Some(Vec::new());
    }

    /// Returns the events of the server since the last call, as JSON.
    pub(crate) fn take_events(&mut self) -> Vec<Value> {
        self.events.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Decodes the next piece of the body.
    pub fn push(&mut self, bytes: &[u8]) {
        let Self {
            framing,
            decode,
            answer,
            events,
        } = self;
        match framing {
            Framing::Sse(sse) => {
                let pushed = sse.push(bytes, |frame| take(&mut **decode, answer, events, frame));
                if let Err(FrameTooLong) = pushed {
                    answer.fail(TOO_LONG.to_owned());
                }
            }
            Framing::EventStream(parser) => {
                let pushed = parser.push(bytes, |message| {
                    take_message(&mut **decode, answer, events, &message);
                });
                if let Err(BrokenStream(text)) = pushed {
                    answer.fail(text.to_owned());
                }
            }
        }
    }

    /// Call it when the body has ended regularly.
    pub fn finish(&mut self) {
        let Self {
            framing,
            decode,
            answer,
            events,
        } = self;
        match framing {
            Framing::Sse(sse) => {
                let finished = sse.finish(|frame| take(&mut **decode, answer, events, frame));
                if let Err(FrameTooLong) = finished {
                    answer.fail(TOO_LONG.to_owned());
                }
            }
            Framing::EventStream(parser) => {
                if let Err(BrokenStream(text)) = parser.finish() {
                    answer.fail(text.to_owned());
                }
            }
        }
        end(&mut **decode, answer);
    }

    /// Call it when the body broke off, or never came.
    pub fn fail(&mut self, text: String) {
        self.answer.fail(text);
    }

    /// Call it when the caller cancels.
    pub fn abort(&mut self, text: &str) {
        if !self.answer.is_ended() {
            self.decode.aborted(&mut self.answer);
        }
        self.answer.abort(text);
    }

    /// The next event, in order; `None` until more bytes arrive.
    pub fn next_event(&mut self) -> Option<StreamEvent> {
        self.answer.next_event()
    }

    /// The `End` event exists; no other event follows.
    pub fn is_ended(&self) -> bool {
        self.answer.is_ended()
    }
}

const TOO_LONG: &str = "The server sent a stream event larger than 64 MiB.";

fn take(
    decode: &mut dyn Decode,
    answer: &mut Answer,
    events: &mut Option<Vec<Value>>,
    frame: Frame<'_>,
) {
    if answer.is_ended() {
        return;
    }
    if let Some(events) = events {
        // The end mark of a stream is not JSON.
        events.extend(serde_json::from_str::<Value>(frame.data));
    }
    match decode.frame(answer, frame) {
        Ok(Progress::More) => {}
        Ok(Progress::Complete) => end(decode, answer),
        Err(text) => answer.fail(text),
    }
}

fn take_message(
    decode: &mut dyn Decode,
    answer: &mut Answer,
    events: &mut Option<Vec<Value>>,
    message: &StreamMessage<'_>,
) {
    if answer.is_ended() {
        return;
    }
    if let Some(events) = events {
        let payload = serde_json::from_slice::<Value>(message.payload).unwrap_or_default();
        let name = message.text(":event-type").to_owned();
        events.push(serde_json::json!({ name: payload }));
    }
    match decode.message(answer, message) {
        Ok(Progress::More) => {}
        Ok(Progress::Complete) => end(decode, answer),
        Err(text) => answer.fail(text),
    }
}

fn end(decode: &mut dyn Decode, answer: &mut Answer) {
    if answer.is_ended() {
        return;
    }
    match decode.finish(answer) {
        Ok(reason) => answer.done(reason),
        Err(text) => answer.fail(text),
    }
}
