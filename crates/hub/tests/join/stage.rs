//! Helpers for tests of joining: small clips, an offer that tests change, a connection that tests cut.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use pinion_clip::logs::ClipLog;
use pinion_clip::manifest::Manifest;
use pinion_clip::{CallError, ClipState, Snapshot, Status};
use pinion_hub::{
    Answers, Endpoint, HubCall, JoinOptions, JoinState, Joined, Limits, Offer, answered, join,
};
use serde_json::Value;
use tokio::sync::watch;

use super::common::Running;

/// A clip that echoes its input, counts its calls, and notices when a call is dropped.
#[derive(Debug)]
pub struct Echo {
    pub snapshot: watch::Sender<Snapshot>,
    /// The number of calls with each input.
    pub seen: Mutex<HashMap<String, usize>>,
    pub dropped: Arc<AtomicUsize>,
}

impl Echo {
    pub fn new(version: &str) -> Arc<Self> {
        let snapshot = Snapshot {
            status: Status {
                state: ClipState::Running,
                message: String::new(),
            },
            manifest: manifest(version).into(),
        };
        Arc::new(Self {
            snapshot: watch::Sender::new(snapshot),
            seen: Mutex::default(),
            dropped: Arc::default(),
        })
    }
}

pub fn manifest(version: &str) -> Manifest {
    Manifest {
        package: "@test/echo".into(),
        version: version.into(),
        ..Manifest::default()
    }
}

/// Counts its drops.
struct Drops(Arc<AtomicUsize>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Endpoint for Echo {
    fn snapshot(&self) -> Snapshot {
        self.snapshot.borrow().clone()
    }

    fn watch(&self) -> Option<watch::Receiver<Snapshot>> {
        Some(self.snapshot.subscribe())
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        let input = String::from_utf8(call.input.to_vec()).unwrap();
        *self.seen.lock().unwrap().entry(input.clone()).or_default() += 1;
        match call.command.as_str() {
            "later" => {
                let later = async move {
                    // Long enough for calls to overlap.
                    tokio::time::sleep(Duration::from_millis(3)).await;
                    Ok(Bytes::from(input))
                };
                Box::pin(stream::once(later))
            }
            "count" => Box::pin(stream::iter(
                (0..10_000).map(|number: u32| Ok(Bytes::from(number.to_string()))),
            )),
            "hang" => {
                let drops = Drops(self.dropped.clone());
                let first = stream::once(async { Ok(Bytes::from_static(b"1")) });
                let rest = stream::once(async move {
                    let _drops = drops;
                    std::future::pending::<Result<Bytes, CallError>>().await
                });
                Box::pin(first.chain(rest))
            }
            "fed" => match call.more {
                None => answered("\"nothing more\""),
                Some(more) => Box::pin(
                    more.map(|part| part.map(|part| part.data).map_err(CallError::Unanswered)),
                ),
            },
            _ => answered(input),
        }
    }
}

/// An offer that a test changes.
#[derive(Debug)]
pub struct Shelf {
    clips: Mutex<BTreeMap<String, Arc<dyn Endpoint>>>,
    changes: watch::Sender<u64>,
}

impl Shelf {
    pub fn with(alias: &str, endpoint: Arc<dyn Endpoint>) -> Arc<Self> {
        let shelf = Arc::new(Self {
            clips: Mutex::default(),
            changes: watch::Sender::new(0),
        });
        shelf.put(alias, Some(endpoint));
        shelf
    }

    pub fn put(&self, alias: &str, endpoint: Option<Arc<dyn Endpoint>>) {
        let mut clips = self.clips.lock().unwrap();
        match endpoint {
            Some(endpoint) => drop(clips.insert(alias.to_owned(), endpoint)),
            None => drop(clips.remove(alias)),
        }
        self.changes.send_modify(|version| *version += 1);
    }
}

impl Offer for Shelf {
    fn clips(&self) -> BTreeMap<String, Arc<dyn Endpoint>> {
        self.clips.lock().unwrap().clone()
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// Limits that are short enough for a test.
pub fn quick() -> Limits {
    Limits {
        backoff: Duration::from_millis(20),
        max_backoff: Duration::from_millis(200),
        ..Limits::default()
    }
}

pub fn options(address: SocketAddr, token: &str, name: &str) -> JoinOptions {
    let mut options = JoinOptions::new(format!("http://{address}"), Some(token.into()), name);
    options.limits = quick();
    options
}

pub fn log() -> Arc<ClipLog> {
    Arc::new(ClipLog::in_memory())
}

/// Joins from within the runtime of `host`.
pub fn join_from(host: &Running, options: JoinOptions, offer: Arc<dyn Offer>) -> Joined {
    let _inside = host.runtime.enter();
    join(options, offer, log()).unwrap()
}

pub fn until_joined(joined: &Joined) {
    eventually("joined", || joined.state() == JoinState::Joined);
}

pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("never: {what}");
}

pub fn invoke(hub: &Running, clip: &str, command: &str, input: &Value) -> (u16, Value) {
    let body = serde_json::json!({"clipName": clip, "command": command, "input": [input]});
    let (status, answer) = hub.call("Invoke", &body.to_string());
    (status, decoded(&answer))
}

/// Decodes the output of an answer; returns the answer itself if it has none.
pub fn decoded(answer: &Value) -> Value {
    use base64::Engine;
    let Some(output) = answer["output"].as_str() else {
        return answer.clone();
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(output);
    serde_json::from_slice(&bytes.unwrap()).unwrap()
}

pub fn aliases(hub: &Running) -> Vec<String> {
    let (_, answer) = hub.call("ListClips", "{}");
    let clips = answer["clips"].as_array().cloned().unwrap_or_default();
    let names = clips.iter().map(|clip| clip["name"].as_str());
    names.map(|name| name.unwrap().to_owned()).collect()
}

/// A proxy to a hub whose connections can be cut or paused.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<Mutex<ProxyState>>,
}

#[derive(Default)]
struct ProxyState {
    sockets: Vec<TcpStream>,
    quiet: bool,
}

impl Proxy {
    pub fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<Mutex<ProxyState>> = Arc::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (Ok(near), Ok(far)) = (near, TcpStream::connect(target)) else {
                    continue;
                };
                let mut state = shared.lock().unwrap();
                state.quiet = false;
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = shared.clone();
                    std::thread::spawn(move || {
                        let mut buffer = vec![0; 64 * 1024];
                        while let Ok(length @ 1..) = from.read(&mut buffer) {
                            while shared.lock().unwrap().quiet {
                                std::thread::sleep(Duration::from_millis(5));
                            }
                            if to.write_all(&buffer[..length]).is_err() {
                                break;
                            }
                        }
                        let _ = to.shutdown(Shutdown::Both);
                    });
                }
                state.sockets.extend([near, far]);
            }
        });
        Self { address, state }
    }

    /// Ends all connections.
    pub fn cut(&self) {
        for socket in self.state.lock().unwrap().sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Passes nothing on until the next connection is opened.
    pub fn pause(&self) {
        self.state.lock().unwrap().quiet = true;
    }
}
