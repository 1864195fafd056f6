//! `cassette:<file>`: answers of a real provider, recorded once and replayed without a network.
//!
//! A cassette stores the bytes of responses, so a replay runs the same decoder as a real answer.
//! `PINION_CASSETTE_RECORD=<file>` records, `--model cassette:<file>` replays. A cassette contains
//! answers, never the keys of the requests.

mod file;
mod recorder;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use pinion_message::{Message, Model, StopReason};
use tokio::time::Instant;

use crate::answer::blank;
use crate::deadlines::{Deadlines, Interruption};
use crate::decoder::ResponseDecoder;
use crate::{EventStream, Provider, Request, StreamEvent};
use file::{CassetteFile, Exchange};
pub use recorder::Recorder;
pub(crate) use recorder::Recording;

pub(crate) const PROVIDER: &str = "cassette";
/// Prefix of model names that name a cassette file.
pub(crate) const PREFIX: &str = "cassette:";
/// Names the file to record to.
const RECORD_VARIABLE: &str = "PINION_CASSETTE_RECORD";
/// If set, answers are replayed at the pace they were recorded with.
const PACE_VARIABLE: &str = "PINION_CASSETTE_PACE";

/// The answers left on each cassette that is being replayed in this process.
static PLAYING: LazyLock<Mutex<HashMap<String, VecDeque<Exchange>>>> =
    LazyLock::new(Mutex::default);

/// The recorder that the environment requests, and its file.
pub(crate) fn recorder_from_environment() -> Option<(PathBuf, std::io::Result<Recorder>)> {
    let file = std::env::var_os(RECORD_VARIABLE).filter(|file| !file.is_empty())?;
    let file = PathBuf::from(file);
    let recorder = Recorder::open(&file);
    Some((file, recorder))
}

/// The model that replays `file`. The error is a sentence without its full stop.
pub(crate) fn cassette_model(file: &str) -> Result<Model, String> {
    let recorded = CassetteFile::read(Path::new(file))?.model;
    Ok(Model {
        name: format!("Cassette of {}/{}", recorded.provider, recorded.id),
        id: file.to_owned(),
        provider: PROVIDER.to_owned(),
        base_url: String::new(),
        ..recorded
    })
}

/// Identifies a request within a session by the texts of users and models. Times, outputs of tools
/// and the system prompt differ from run to run and are left out.
fn key(request: &Request) -> String {
    // FNV-1a: cassettes outlive the program, and the standard hasher may change with it.
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut add = |role: &str, text: &str| {
        for byte in role.bytes().chain([0]).chain(text.bytes()).chain([0]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for message in &request.messages {
        match &**message {
            Message::User(user) => add("user", &user.content.joined_text("\n")),
            Message::Assistant(answer) => add("assistant", &answer.joined_text("\n")),
            Message::ToolResult(result) => add("result", &result.tool_name),
            _ => {}
        }
    }
    format!("{hash:016x}")
}

/// The next answer for a request: one recorded for the same texts, or else the next one.
fn next_exchange(file: &str, key: &str) -> Result<Exchange, String> {
    let mut playing = PLAYING.lock().unwrap_or_else(PoisonError::into_inner);
    let left = match playing.entry(file.to_owned()) {
        Entry::Occupied(left) => left.into_mut(),
        Entry::Vacant(place) => place.insert(CassetteFile::read(Path::new(file))?.exchanges.into()),
    };
    let place = left
        .iter()
        .position(|exchange| exchange.key == key)
        .unwrap_or(0);
    left.remove(place)
        .ok_or_else(|| "it has no more answers".to_owned())
}

/// Answers from cassettes. The model's id is the file.
#[derive(Debug, Clone, Copy, Default)]
pub struct CassetteProvider {
    /// Replays answers at the pace they were recorded with; otherwise as fast as they are read.
    pub paced: bool,
}

impl CassetteProvider {
    /// Reads the pace from `PINION_CASSETTE_PACE`.
    pub(crate) fn from_environment() -> Self {
        let paced = std::env::var_os(PACE_VARIABLE).is_some_and(|value| !value.is_empty());
        Self { paced }
    }
}

impl Provider for CassetteProvider {
    fn stream(&self, request: Request) -> EventStream {
        let Some(decoder) = ResponseDecoder::new(&request) else {
            let mut message = blank(&request.model);
            message.stop_reason = StopReason::Error;
            let api = &request.model.api;
            message.error_message = Some(format!("No API provider registered for api: {api}"));
            return Box::pin(stream::iter([StreamEvent::End(message)]));
        };
        let replay = Replay {
            deadlines: Deadlines::new(&request),
            request,
            decoder,
            state: ReplayState::Waiting,
            started: Instant::now(),
            paced: self.paced,
        };
        Box::pin(stream::unfold(Box::new(replay), |mut replay| async move {
            replay.next().await.map(|event| (event, replay))
        }))
    }
}

/// One answer being replayed.
struct Replay {
    request: Request,
    deadlines: Deadlines,
    decoder: ResponseDecoder,
    state: ReplayState,
    started: Instant,
    paced: bool,
}

enum ReplayState {
    Waiting,
    /// The rest of the body, the rest of its pieces, and its error, if it ended in one.
    Reading {
        body: Bytes,
        chunks: std::vec::IntoIter<(u64, usize)>,
        error: Option<String>,
        /// A piece has been read.
        begun: bool,
    },
    Over,
}

impl Replay {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                return Some(event);
            }
            if self.request.cancel.is_cancelled() && !self.decoder.is_ended() {
                self.decoder.abort("Request was aborted");
                self.state = ReplayState::Over;
                continue;
            }
            match std::mem::replace(&mut self.state, ReplayState::Over) {
                ReplayState::Over => return None,
                ReplayState::Waiting => self.begin(),
                ReplayState::Reading {
                    body,
                    chunks,
                    error,
                    begun,
                } => {
                    // Lets other tasks run between pieces.
                    tokio::task::yield_now().await;
                    self.read(body, chunks, error, begun).await;
                }
            }
        }
    }

    fn begin(&mut self) {
        let file = &self.request.model.id;
        let found = next_exchange(file, &key(&self.request));
        let found = found.and_then(|exchange| exchange.body().map(|body| (exchange, body)));
        match found {
            Err(why) => self.decoder.fail(format!("Cassette {file}: {why}.")),
            Ok((exchange, body)) => match exchange.status {
                Some(200..=299) => {
                    self.decoder.begin();
                    let chunks = exchange.chunks.into_iter();
                    self.state = ReplayState::Reading {
                        body: body.into(),
                        chunks,
                        error: exchange.error,
                        begun: false,
                    };
                }
                status => {
                    let status =
                        status.map_or_else(|| "Connection error.".to_owned(), |s| s.to_string());
                    self.decoder.fail(exchange.error.unwrap_or(status));
                }
            },
        }
    }

    async fn read(
        &mut self,
        mut body: Bytes,
        mut chunks: std::vec::IntoIter<(u64, usize)>,
        error: Option<String>,
        begun: bool,
    ) {
        if self.deadlines.is_past_deadline() {
            return self.decoder.fail(self.deadlines.deadline_text());
        }
        let Some((at, length)) = chunks.next() else {
            // Bytes that no piece covers come last: a cassette may be edited by hand.
            self.decoder.push(&body);
            match error {
                Some(error) => self.decoder.fail(error),
                None => self.decoder.finish(),
            }
            return;
        };
        if self.paced {
            let passed = self.started.elapsed();
            let pause = tokio::time::sleep(Duration::from_millis(at).saturating_sub(passed));
            let timeouts = self.deadlines.timeouts();
            let limit = if begun {
                timeouts.idle
            } else {
                timeouts.first_byte
            };
            match self.deadlines.within(limit, pause).await {
                Ok(()) => {}
                // The caller of this function checks for it too.
                Err(Interruption::Cancelled) => return,
                Err(Interruption::DeadlinePassed) => {
                    return self.decoder.fail(self.deadlines.deadline_text());
                }
                Err(Interruption::TimedOut) if begun => {
                    return self.decoder.fail(self.deadlines.idle_text());
                }
                Err(Interruption::TimedOut) => {
                    return self.decoder.fail("Request timed out.".to_owned());
                }
            }
        }
        self.decoder.push(&body.split_to(length.min(body.len())));
        if !self.decoder.is_ended() {
            self.state = ReplayState::Reading {
                body,
                chunks,
                error,
                begun: true,
            };
        }
    }
}
