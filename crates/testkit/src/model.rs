//! A model server on the loopback interface that answers from a script.
//!
//! It speaks four wire formats, chosen by the path of the request: Anthropic Messages
//! (`…/messages`), Chat Completions (`…/chat/completions`), Responses (`…/responses`) and Gemini
//! (`…:streamGenerateContent`). It never looks at keys and never leaves the machine.
//!
//! # Scenario
//!
//! ```json
//! {"pace_ms": 5, "turns": [
//!   {"steps": [{"thinking": "Hm."}, {"text": "Let me look.", "chunk": 4},
//!              {"tool": "bash", "args": {"command": "ls"}}]},
//!   {"steps": [{"text": ["One file", {"gate": "g"}, " only."]}], "usage": {"input": 7, "output": 3}},
//!   {"http": {"status": 529, "headers": {"retry-after": "1"}}}
//! ]}
//! ```
//!
//! Turns answer requests in order. A turn with `match` (`{"no_tools": true}`, or `{"contains": "…",
//! "in": "last_user" | "system" | "any"}`) answers the first request that fits, once unless `sticky`.
//! When the turns are used up the answer is a short text, or as `on_exhausted` requests: `repeat_last`, `error`.
//! `{"repeat_turn": n, "turn": {…}}` stands for n turns in which `{i}` counts. With `blind: true` requests
//! are neither read nor kept, which is for benchmarks: a long conversation then costs the server nothing.
//! With `directives: true` there are no turns: the prompt itself dictates the answers, as `CALL tool {…}`, `SAY text`
//! or `SLOW ms` (Chat Completions only).
//!
//! | step | sends |
//! |---|---|
//! | `"text"`, `{"text": "…", "chunk": n}` | a text block, in pieces of n characters |
//! | `{"text": ["a", {"delay_ms": 5}, "b"]}` | the same in given pieces, with pauses or gates between |
//! | `{"text": {"delta": "word ", "count": 20000}}` | the same piece many times, `{i}` counts |
//! | `{"text": ["{now_ns}"]}` | the monotonic clock at the time of sending; pause with `delay_ms`, not `pace_ms` |
//! | `{"thinking": "…", "signature": "…"}` | a reasoning block |
//! | `{"tool": "name", "args": {…}, "id": "…", "chunk": n}` | a tool call; `raw_args` is sent as it is |
//! | `{"error": {…}}` | an error event, which ends the stream |
//! | `{"raw": "…"}`, `{"raw_bytes": […]}` | exactly these bytes |
//! | `{"delay_ms": n}`, `{"gate": "g"}` | nothing, for a while or until [`ModelServer::release`] |
//! | `{"disconnect": true}`, `{"reset": true}` | the end of the connection, polite or hard |
//! | `{"stall": true}` | nothing ever again, with the connection open |
//!
//! A turn may also hold: `stop` (`stop`, `tool`, `length`, or a provider's own word), `usage` (`input`,
//! `output`, `cache_read`, `cache_write`), `pre_delay_ms` and `pre_gate` (before the answer begins), `refuse`
//! (close without an answer), `pace_ms` (pause between two events), `flush: "block"` (collect events
//! into large writes), `split` (HTTP chunks of so many bytes), and `fault`:
//! `{"at": "connect" | "headers" | "utf8" | {"event": n} | {"byte": n}, "then": "stall" | "disconnect" |
//! "reset"}`. The last four can be set for the whole scenario.

mod dialect;
mod directive;
mod http;
mod inspect;
mod outlet;
mod responses;
mod scenario;
mod server;

use std::collections::{HashMap, HashSet};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use scenario::Scenario;

/// The times of a request and its answer.
#[derive(Debug, Clone)]
pub struct Timing {
    /// The request was read completely.
    pub received: Instant,
    /// The first event went out.
    pub first_event: Option<Instant>,
    /// The answer was complete, or cut short.
    pub ended: Option<Instant>,
    /// The client closed the connection before the answer was complete.
    pub hung_up: bool,
}

/// A running model server; dropping it ends every connection.
#[derive(Debug)]
pub struct ModelServer {
    shared: Arc<Shared>,
    port: u16,
    accepting: Option<JoinHandle<()>>,
}

/// State that the connections of one server share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    stopping: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    scenario: Scenario,
    requests: Vec<Value>,
    timings: Vec<Timing>,
    open_gates: HashSet<String>,
    connections: HashMap<u64, TcpStream>,
    next_connection: u64,
    /// Counts requests to the model since the scenario was set.
    number: usize,
}

impl ModelServer {
    /// Starts a server with this scenario on a free port.
    pub fn start(scenario: Value) -> Self {
        Self::start_on(0, scenario)
    }

    /// Starts a server on a given port; 0 takes a free one.
    pub fn start_on(port: u16, scenario: Value) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("bind on loopback");
        let port = listener
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        let state = State {
            scenario: Scenario::new(scenario),
            ..State::default()
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            changed: Condvar::new(),
            stopping: AtomicBool::new(false),
        });
        let accepting = Some(server::accept(listener, Arc::clone(&shared)));
        Self {
            shared,
            port,
            accepting,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// `http://127.0.0.1:<port>`, to which a provider adds its own path.
    pub fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Replaces the scenario; gates close, requests are counted and logged from the start.
    pub fn set_scenario(&self, scenario: Value) {
        self.shared.set_scenario(scenario);
    }

    /// Opens a gate permanently.
    pub fn release(&self, gate: &str) {
        self.shared.release(gate);
    }

    /// The requests to the model so far, each as `{n, api, path, scenario, turn, stream, headers, body}`.
    pub fn requests(&self) -> Vec<Value> {
        self.shared.lock().requests.clone()
    }

    /// The number of requests to the model so far.
    pub fn request_count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// Waits until this many requests have arrived; false if they did not arrive in time.
    pub fn wait_for_requests(&self, count: usize, time: Duration) -> bool {
        self.shared
            .wait(time, |state| state.requests.len() >= count)
    }

    /// Waits until no answer is in progress; false if one still is.
    pub fn wait_until_idle(&self, time: Duration) -> bool {
        self.shared.wait(time, |state| {
            state.timings.iter().all(|t| t.ended.is_some())
        })
    }

    /// The times of each request, in order of arrival.
    pub fn timings(&self) -> Vec<Timing> {
        self.shared.lock().timings.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.shared.changed.notify_all();
        for stream in self.shared.lock().connections.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the accepting thread, which then stops.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    fn set_scenario(&self, scenario: Value) {
        let mut state = self.lock();
        state.scenario = Scenario::new(scenario);
        state.forget();
    }

    fn release(&self, gate: &str) {
        self.lock().open_gates.insert(gate.to_owned());
        self.changed.notify_all();
    }

    fn wait(&self, time: Duration, done: impl Fn(&State) -> bool) -> bool {
        let state = self.lock();
        let waited = self
            .changed
            .wait_timeout_while(state, time, |state| !done(state));
        !waited
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .1
            .timed_out()
    }

    /// Waits for a gate; false if `gave_up` became true first.
    fn wait_gate(&self, gate: &str, gave_up: impl Fn() -> bool) -> bool {
        loop {
            if self.wait(Duration::from_millis(20), |state| {
                state.open_gates.contains(gate)
            }) {
                return true;
            }
            if gave_up() {
                return false;
            }
        }
    }
}

impl State {
    fn forget(&mut self) {
        self.scenario.rewind();
        self.requests.clear();
        self.timings.clear();
        self.open_gates.clear();
        self.number = 0;
    }

    fn stats(&self, started: Instant) -> Value {
        let at = |time: Instant| time.duration_since(started).as_micros() as u64;
        let rows: Vec<Value> = self
            .timings
            .iter()
            .map(|t| {
                json!({"received_us": at(t.received), "first_event_us": t.first_event.map(at),
                       "ended_us": t.ended.map(at), "hung_up": t.hung_up})
            })
            .collect();
        json!({"requests": rows})
    }
}
