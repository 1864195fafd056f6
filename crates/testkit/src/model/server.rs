//! Connections of the model server: one thread each, one request after the other, plus the few control
//! paths under `/__ctl/` that let another process change the scenario or open a gate.

use std::io::{self, BufReader};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::OnceLock;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::dialect::Answer;
use super::http::{HttpRequest, read_request, write_answer, write_stream_head};
use super::inspect::{Dialect, RequestView};
use super::outlet::{Ended, Fault, FaultPosition, Manner, Outlet};
use super::scenario::Pick;
use super::{Shared, Timing};

/// Headers worth keeping in the request log; the rest differs between clients of one protocol.
const LOGGED_HEADERS: [&str; 14] = [
    "accept",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "authorization",
    "content-type",
    "conversation_id",
    "openai-beta",
    "originator",
    "session_id",
    "x-api-key",
    "x-client-request-id",
    "x-goog-api-key",
    "x-session-affinity",
];

/// The state of a connection after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Keep,
    Close,
}

pub(super) fn accept(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        for stream in listener.incoming() {
            if shared.stopping() {
                return;
            }
            let Ok(stream) = stream else { continue };
            let shared = Arc::clone(&shared);
            thread::spawn(move || serve(&shared, stream));
        }
    })
}

fn serve(shared: &Shared, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let Ok(for_drop) = stream.try_clone() else {
        return;
    };
    let id = {
        let mut state = shared.lock();
        state.next_connection += 1;
        let id = state.next_connection;
        state.connections.insert(id, for_drop);
        id
    };
    let orderly = converse(shared, &stream);
    shared.lock().connections.remove(&id);
    if orderly.is_ok() && !shared.stopping() {
        return;
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn converse(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader, stream)? {
        let next = answer(shared, stream, &request)?;
        let asked = request
            .header("connection")
            .is_some_and(|c| c.eq_ignore_ascii_case("close"));
        if next == Next::Close || asked {
            break;
        }
    }
    Ok(())
}

fn answer(shared: &Shared, stream: &TcpStream, request: &HttpRequest) -> io::Result<Next> {
    if let Some(operation) = request.path.strip_prefix("/__ctl/") {
        let (status, body) = control(shared, operation, request);
        write_answer(stream, status, body.to_string().as_bytes(), &Value::Null)?;
        return Ok(Next::Keep);
    }
    let dialect = Dialect::of_path(&request.path).filter(|_| request.method == "POST");
    let Some(dialect) = dialect else {
        let (status, body) = if request.path.ends_with("/models") {
            (
                200,
                json!({"object": "list", "data": [{"id": "mock-1", "object": "model"}]}),
            )
        } else {
            (
                404,
                json!({"error": {"message": "no such route", "type": "not_found"}}),
            )
        };
        write_answer(stream, status, body.to_string().as_bytes(), &Value::Null)?;
        return Ok(Next::Keep);
    };
    let asked = Asked::note(shared, dialect, request);
    let (result, first_event) = asked.answer(shared, stream);
    let mut state = shared.lock();
    // A new scenario may have been set meanwhile; its log starts empty.
    if let Some(timing) = state.timings.get_mut(asked.number - 1) {
        timing.first_event = first_event;
        timing.ended = Some(Instant::now());
        timing.hung_up = result == Err(Ended::HungUp);
    }
    drop(state);
    shared.changed.notify_all();
    Ok(if result.is_ok() && !asked.turn()["refuse"].is_boolean() {
        Next::Keep
    } else {
        Next::Close
    })
}

/// A request to the model that was counted and logged, and the turn that answers it.
struct Asked {
    dialect: Dialect,
    number: usize,
    model: String,
    streams: bool,
    pick: Pick,
    manner: Manner,
}

impl Asked {
    fn note(shared: &Shared, dialect: Dialect, request: &HttpRequest) -> Self {
        let (raw, body) = if shared.lock().scenario.is_blind() {
            (String::new(), json!({"stream": true}))
        } else {
            let raw = String::from_utf8_lossy(&request.body).into_owned();
            let body: Value = serde_json::from_str(&raw).unwrap_or_else(|_| json!({}));
            (raw, body)
        };
        let view = RequestView::new(dialect, &body, raw);
        let last = request.path.rsplit('/').next().unwrap_or_default();
        let in_path = last.split(':').next().unwrap_or_default();
        let (model, streams) = match dialect {
            Dialect::Gemini => (in_path, request.path.contains("streamGenerateContent")),
            _ => (
                body["model"].as_str().unwrap_or("mock"),
                body["stream"] == json!(true),
            ),
        };
        let model = model.to_owned();
        let headers: serde_json::Map<String, Value> = request
            .headers
            .iter()
            .filter(|(name, _)| LOGGED_HEADERS.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let query = if request.query.is_empty() { "" } else { "?" };
        let path = format!("{}{query}{}", request.path, request.query);

        let mut state = shared.lock();
        state.number += 1;
        let number = state.number;
        let pick = state.scenario.pick(&view);
        let manner = manner(&pick.turn, |name| state.scenario.setting(&pick.turn, name));
        state
            .requests
            .push(json!({"n": number, "api": dialect.name(), "path": path,
            "scenario": pick.list, "turn": pick.index, "stream": streams, "headers": headers,
            "body": body}));
        state.timings.push(Timing {
            received: Instant::now(),
            first_event: None,
            ended: None,
            hung_up: false,
        });
        drop(state);
        shared.changed.notify_all();
        Self {
            dialect,
            number,
            model,
            streams,
            pick,
            manner,
        }
    }

    fn turn(&self) -> &Value {
        &self.pick.turn
    }

    fn answer(&self, shared: &Shared, stream: &TcpStream) -> (Result<(), Ended>, Option<Instant>) {
        let mut outlet = Outlet::new(shared, stream, self.manner.clone());
        let result = self.respond(stream, &mut outlet);
        (result, outlet.first_event())
    }

    fn respond(&self, stream: &TcpStream, outlet: &mut Outlet<'_>) -> Result<(), Ended> {
        use super::scenario::Control;
        let turn = self.turn();
        if let Some(ms) = turn["pre_delay_ms"].as_u64() {
            outlet.control(&Control::Delay(ms))?;
        }
        if let Some(gate) = turn["pre_gate"].as_str() {
            outlet.control(&Control::Gate(gate.to_owned()))?;
        }
        outlet.reached(FaultPosition::Connect)?;
        if turn["refuse"] == json!(true) {
            return Err(Ended::Cut);
        }
        let answer = Answer {
            turn,
            model: &self.model,
            number: self.number,
        };
        if let Some(http) = turn.get("http") {
            let body = match &http["body"] {
                Value::Null => json!({"type": "error",
                    "error": {"type": "overloaded_error", "message": "Overloaded"}})
                .to_string(),
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let status = http["status"].as_u64().unwrap_or(500);
            return Ok(write_answer(
                stream,
                status,
                body.as_bytes(),
                &http["headers"],
            )?);
        }
        if !self.streams {
            let body = answer.plain(self.dialect).to_string();
            return Ok(write_answer(stream, 200, body.as_bytes(), &Value::Null)?);
        }
        write_stream_head(stream)?;
        outlet.reached(FaultPosition::Headers)?;
        answer.stream(self.dialect, outlet)
    }
}

fn manner<'a>(turn: &'a Value, setting: impl Fn(&str) -> &'a Value) -> Manner {
    Manner {
        pace: Duration::from_secs_f64(setting("pace_ms").as_f64().unwrap_or(0.0) / 1000.0),
        block: setting("flush") == "block",
        split: setting("split").as_u64().map(|size| size as usize),
        fault: Fault::read(turn.get("fault").unwrap_or_else(|| setting("fault"))),
    }
}

fn control(shared: &Shared, operation: &str, request: &HttpRequest) -> (u64, Value) {
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let started = *STARTED.get_or_init(Instant::now);
    match operation {
        "health" => (200, json!({"ok": true, "pid": std::process::id()})),
        "scenario" => match serde_json::from_slice(&request.body) {
            Ok(scenario) => {
                shared.set_scenario(scenario);
                (200, json!({"ok": true}))
            }
            Err(error) => (400, json!({"error": error.to_string()})),
        },
        "reset" => {
            shared.lock().forget();
            (200, json!({"ok": true}))
        }
        "release" => match request.parameter("gate") {
            Some(gate) => {
                shared.release(&gate);
                (200, json!({"ok": true}))
            }
            None => (400, json!({"error": "which gate? add ?gate=name"})),
        },
        "requests" => (200, json!(shared.lock().requests)),
        "stats" => (200, shared.lock().stats(started)),
        _ => (404, json!({"error": "no such operation"})),
    }
}
