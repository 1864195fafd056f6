//! A hub with an additional endpoint: `echo`, which answers inside this process with its input.
//!
//! `hub-echo DIRECTORY` serves on its own port, prints its address and its token, and ends when its input does.
//! `hub-echo clip` is a clip instead: a program behind a pipe that does the same, and can stream.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pinion_access::Mode;
use pinion_clip::manifest::Manifest;
use pinion_clip::{ClipState, Programs, Snapshot, Status};
use pinion_connect::{Server, ServerOptions};
use pinion_hub::{Answers, Endpoint, HubCall, PREFIXES, Settings, answered, open};
use serde_json::value::RawValue;

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let done = match std::env::args().nth(1).as_deref() {
        Some("clip") => clip(),
        // This program is also the guardian of the clips.
        Some(pinion_process::GUARDIAN_ARGUMENT) => pinion_process::guardian_main(),
        Some(directory) => serve(Path::new(directory)),
        None => Err("usage: hub-echo DIRECTORY | hub-echo clip".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hub-echo: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug)]
struct Echo(Arc<Manifest>);

impl Endpoint for Echo {
    fn snapshot(&self) -> Snapshot {
        Snapshot {
            status: Status {
                state: ClipState::Running,
                message: String::new(),
            },
            manifest: self.0.clone(),
        }
    }

    fn invoke(self: Arc<Self>, call: HubCall) -> Answers {
        answered(call.input)
    }
}

fn serve(directory: &Path) -> Fallible<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let stopped = std::thread::spawn(|| std::io::stdin().lock().read_to_end(&mut Vec::new()));
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let url = format!("http://{address}");
        let (settings, programs) = (Settings::default(), Programs::default());
        let opened = open(directory, &url, settings, Mode::Secured, programs)?;
        let hub = opened.hub;
        hub.add_builtin("echo", Arc::new(Echo(Arc::default())))?;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{address} {}", opened.local_token.token.reveal())?;
        out.flush()?;
        drop(out);
        let server = Server::new(hub.clone(), ServerOptions::at(PREFIXES));
        let stop = async {
            let _ = tokio::task::spawn_blocking(|| stopped.join()).await;
        };
        server.run(listener, stop, Duration::ZERO).await;
        if let Some(runtime) = hub.runtime() {
            runtime.shut_down().await;
        }
        Ok(())
    })
}

#[derive(serde::Deserialize)]
struct Line<'a> {
    r#type: &'a str,
    #[serde(default)]
    id: &'a str,
    #[serde(default)]
    command: &'a str,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct Wanted {
    count: usize,
    size: usize,
}

fn clip() -> Fallible<()> {
    // Small answers are sent together, a chunk of a gigabyte at once.
    let mut out = std::io::BufWriter::with_capacity(32 * 1024, std::io::stdout().lock());
    writeln!(
        out,
        r#"{{"type":"register","manifest":{{"commands":[{{"name":"say"}},{{"name":"repeat"}}]}}}}"#
    )?;
    out.flush()?;
    let mut input = std::io::BufReader::with_capacity(256 * 1024, std::io::stdin().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        let message: Line<'_> = serde_json::from_str(&line)?;
        if message.r#type == "invoke" {
            answer(&mut out, &message)?;
        }
        // Requests in the buffer are answered first, then all answers are sent at once.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
        line.clear();
    }
    Ok(())
}

fn answer(out: &mut impl Write, message: &Line<'_>) -> Fallible<()> {
    let id = message.id;
    let input = message.input.map_or("{}", RawValue::get);
    if message.command != "repeat" {
        writeln!(out, r#"{{"type":"result","id":"{id}","output":{input}}}"#)?;
        return Ok(());
    }
    let wanted: Wanted = serde_json::from_str(input)?;
    let text = "x".repeat(wanted.size.saturating_sub(2));
    let chunk = format!("{{\"type\":\"chunk\",\"id\":\"{id}\",\"output\":\"{text}\"}}\n");
    for _ in 0..wanted.count {
        out.write_all(chunk.as_bytes())?;
    }
    writeln!(out, r#"{{"type":"done","id":"{id}"}}"#)?;
    Ok(())
}
