//! The hub under load: calls per second against the Connect library's own echo server, the overhead of a clip's
//! process, the memory of idle clips, and a gigabyte through a pipe.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Bench, thousands};
use crate::Fallible;
use crate::home::Home;
use crate::http;
use crate::process::Process;
use crate::samples::{Samples, size, time};
use crate::table::Row;

const CALLERS: usize = 64;
const LOAD: Duration = Duration::from_secs(3);
const IDLE_CLIPS: usize = 1000;
/// A gigabyte in chunks.
const CHUNKS: usize = 16 * 1024;
const CHUNK: usize = 64 * 1024;
const PROTO: &str = "application/proto";
const JSON: &str = "application/json";
const STREAM: &str = "application/connect+proto";

pub fn run(bench: &mut Bench) -> Fallible<()> {
    let place = bench.home()?;
    let hub = Server::hub(&place, &place.work().join("hub"))?;
    hub.install(&place)?;
    let peer = Server::peer()?;
    calls(bench, &hub, peer.as_ref())?;
    delays(bench, &hub)?;
    gigabyte(bench, &hub, peer.as_ref())?;
    hub.process.finish()?;
    idle(bench, &place)
}

/// A server, its address and its token.
struct Server {
    process: Process,
    address: SocketAddr,
    token: String,
}

impl Server {
    fn start(command: &mut Command) -> Fallible<Self> {
        let mut process = Process::start(command)?;
        let mut said = String::new();
        process.read_until(|line| {
            said = String::from_utf8_lossy(line.head).trim().to_owned();
            true
        })?;
        let (address, token) = said.split_once(' ').unwrap_or((&said, "none"));
        Ok(Self {
            address: address.parse()?,
            token: token.to_owned(),
            process,
        })
    }

    fn hub(home: &Home, root: &Path) -> Fallible<Self> {
        let mut command = Command::new(hub_echo()?);
        command.arg(root);
        home.apply_to(&mut command);
        Self::start(&mut command)
    }

    /// Starts the Connect library's own server, if it was built.
    fn peer() -> Fallible<Option<Self>> {
        match std::env::var_os("CONNECT_ECHO") {
            Some(program) => Self::start(&mut Command::new(program)).map(Some),
            None => Ok(None),
        }
    }

    fn request(&self, path: &str, kind: &str, body: &[u8]) -> Vec<u8> {
        http::post(self.address, path, &self.token, kind, body)
    }

    fn call(&self, method: &str, body: &Value) -> Fallible<Value> {
        let path = format!("/pinix.v2.HubService/{method}");
        let request = self.request(&path, JSON, body.to_string().as_bytes());
        let answer: Value = serde_json::from_slice(&http::ask(self.address, &request)?)?;
        match answer.get("code") {
            Some(_) => Err(answer.to_string().into()),
            None => Ok(answer),
        }
    }

    /// Installs the clip of this benchmark.
    fn install(&self, home: &Home) -> Fallible<()> {
        let directory = home.work().join("clip");
        fs::create_dir_all(&directory)?;
        let program = directory.join("echo.sh");
        fs::write(
            &program,
            format!("#!/bin/sh\nexec {} clip\n", hub_echo()?.display()),
        )?;
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        let description = json!({"name": "@bench/pipe", "runtime": "exec", "main": "echo.sh"});
        fs::write(directory.join("clip.json"), description.to_string())?;
        let source = format!("local/pipe:{}", directory.display());
        self.call("AddClip", &json!({"source": source, "alias": "pipe"}))?;
        Ok(())
    }
}

/// Returns the path of the program beside this one.
fn hub_echo() -> Fallible<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name("hub-echo"))
}

/// Encodes a field of protobuf that holds bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length > 0x7f {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
    out
}

fn asked(clip: &str, command: &str, input: &[u8]) -> Vec<u8> {
    let fields = [(1, clip.as_bytes()), (2, command.as_bytes()), (3, input)];
    fields.map(|(number, bytes)| field(number, bytes)).concat()
}

fn enveloped(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat()
}

const INPUT: &[u8] = br#"{"title":"Buy milk","tags":["home","weekly"],"due":"2026-11-20"}"#;
const INVOKE: &str = "/pinix.v2.HubService/Invoke";

fn calls(bench: &mut Bench, hub: &Server, peer: Option<&Server>) -> Fallible<()> {
    let within = hub.request(INVOKE, PROTO, &asked("echo", "say", INPUT));
    let behind = hub.request(INVOKE, PROTO, &asked("pipe", "say", INPUT));
    let [mut inside, mut piped, mut library] = [const { Samples::new() }; 3];
    for _ in 0..bench.rounds.ours {
        inside.add(http::rate(hub.address, &within, CALLERS, LOAD)?);
        if let Some(peer) = peer {
            let say = peer.request(
                "/echo.v1.EchoService/Say",
                PROTO,
                &asked("echo", "say", INPUT),
            );
            library.add(http::rate(peer.address, &say, CALLERS, LOAD)?);
        }
        piped.add(http::rate(hub.address, &behind, CALLERS, LOAD)?);
    }
    let per_second = |rate: f64| format!("{} calls a second", thousands(rate as usize));
    let against_library = peer.map(|_| inside.median() / library.median());
    bench.table.add(Row {
        what: format!("hub, {CALLERS} callers: echo inside the hub"),
        pinion: per_second(inside.median()),
        ratio: against_library.map_or_else(
            || "the Connect library's echo server was not built".into(),
            |ratio| {
                let rate = per_second(library.median());
                format!(
                    "{:.0} % of the Connect library's echo ({rate})",
                    ratio * 100.0
                )
            },
        ),
        target: "≥ 60 %".into(),
        met: against_library.map(|ratio| ratio >= 0.6),
        ..Row::default()
    });
    let against_inside = piped.median() / inside.median();
    bench.table.add(Row {
        what: format!("hub, {CALLERS} callers: echo through a clip's process"),
        pinion: per_second(piped.median()),
        ratio: format!("{:.0} % of the echo inside the hub", against_inside * 100.0),
        target: "≥ 40 %".into(),
        met: Some(against_inside >= 0.4),
        ..Row::default()
    });
    Ok(())
}

fn delays(bench: &mut Bench, hub: &Server) -> Fallible<()> {
    let within = hub.request(INVOKE, PROTO, &asked("echo", "say", INPUT));
    let behind = hub.request(INVOKE, PROTO, &asked("pipe", "say", INPUT));
    let [mut inside, mut piped] = [const { Samples::new() }; 2];
    for _ in 0..bench.rounds.ours {
        inside.add(http::latency(hub.address, &within, 2000)?.median());
        piped.add(http::latency(hub.address, &behind, 2000)?.median());
    }
    let added = piped.median() - inside.median();
    bench.table.add(Row {
        what: "hub, one caller: what a clip's process adds to a call (median)".into(),
        pinion: time(added),
        ratio: format!(
            "{} through the process, {} inside the hub",
            time(piped.median()),
            time(inside.median())
        ),
        target: "< 150 µs".into(),
        met: Some(added < 150e-6),
        ..Row::default()
    });
    Ok(())
}

fn gigabyte(bench: &mut Bench, hub: &Server, peer: Option<&Server>) -> Fallible<()> {
    let input = json!({"count": CHUNKS, "size": CHUNK}).to_string();
    let repeat = enveloped(&asked("pipe", "repeat", input.as_bytes()));
    let repeat = hub.request(INVOKE, STREAM, &repeat);
    let [mut ours, mut library] = [const { Samples::new() }; 2];
    let before = hub.process.memory();
    for _ in 0..bench.rounds.ours.min(3) {
        ours.add(speed(http::drain(hub.address, &repeat)?)?);
        if let Some(peer) = peer {
            let plain = enveloped(&asked("", "", format!("{CHUNKS} {CHUNK}").as_bytes()));
            let plain = peer.request("/echo.v1.EchoService/Repeat", STREAM, &plain);
            library.add(speed(http::drain(peer.address, &plain)?)?);
        }
    }
    let above = hub.process.peak_memory().saturating_sub(before);
    let ratio = peer.map(|_| ours.median() / library.median());
    bench.table.add(Row {
        what: "1 GiB streamed by a clip, in chunks of 64 KiB: rate".into(),
        pinion: format!("{}/s", size(ours.median())),
        ratio: ratio.map_or_else(
            || "the Connect library's echo server was not built".into(),
            |ratio| {
                let rate = size(library.median());
                format!("{:.0} % of a plain server stream ({rate}/s)", ratio * 100.0)
            },
        ),
        target: "≥ 50 %".into(),
        met: ratio.map(|ratio| ratio >= 0.5),
        ..Row::default()
    });
    bench.table.add(Row {
        what: "1 GiB streamed by a clip: memory of the hub above idle, at its peak".into(),
        pinion: size(above as f64),
        target: "< 64 MB".into(),
        met: Some(above < 64_000_000),
        ..Row::default()
    });
    Ok(())
}

fn speed((bytes, time): (u64, Duration)) -> Fallible<f64> {
    let least = (CHUNKS * CHUNK) as u64;
    if bytes < least {
        return Err(format!("{bytes} bytes came, at least {least} were sent").into());
    }
    Ok(bytes as f64 / time.as_secs_f64())
}

/// A hub with a thousand installed clips, none of them running.
fn idle(bench: &mut Bench, home: &Home) -> Fallible<()> {
    let root = home.work().join("hub");
    let file = root.join("config.json");
    let mut config: Value = serde_json::from_slice(&fs::read(&file)?)?;
    let record = config["clips"]["pipe"].clone();
    for number in 0..IDLE_CLIPS {
        config["clips"][format!("clip-{number}")] = record.clone();
    }
    fs::write(&file, config.to_string())?;
    let hub = Server::hub(home, &root)?;
    let listed = hub.call("ListClips", &json!({}))?;
    let count = listed["clips"].as_array().map_or(0, Vec::len);
    if count < IDLE_CLIPS {
        return Err(format!("the hub lists {count} clips").into());
    }
    std::thread::sleep(Duration::from_millis(1500));
    let memory = hub.process.proportional_memory();
    bench.table.add(Row {
        what: format!("hub with {} idle clips (PSS)", thousands(IDLE_CLIPS)),
        pinion: size(memory as f64),
        target: "< 30 MB".into(),
        met: Some(memory < 30_000_000),
        ..Row::default()
    });
    hub.process.finish()
}
