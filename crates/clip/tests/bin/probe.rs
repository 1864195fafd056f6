//! A clip for tests, a fake clip that replays a recording, and an owner of clips for tests to kill.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot be set up should fail"
)]

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Duration;

use pinion_clip::logs::ClipLog;
use pinion_clip::package::Package;
use pinion_clip::{Clip, ClipConfig, Invocation, NoCrossCalls};
use serde_json::{Value, json};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap();
    if first == pinion_process::GUARDIAN_ARGUMENT {
        pinion_process::guardian_main();
    }
    match first.as_str() {
        "--ipc" => match std::env::var_os("PROBE_RECORDING") {
            Some(path) => replay(&std::fs::read_to_string(path).unwrap()),
            None => serve(),
        },
        "own" => own(&arguments.next().unwrap()),
        other => panic!("{other}"),
    }
}

fn print(line: &Value) {
    let mut line = line.to_string();
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(line.as_bytes()).unwrap();
    stdout.flush().unwrap();
}

/// Runs a clip that serves every call on its own thread.
fn serve() {
    let direct = std::env::var("PROBE_DIALECT").is_ok_and(|dialect| dialect == "direct");
    if !direct {
        print(
            &json!({"type": "register", "manifest": {"domain": "lab", "commands": ["echo", "count", "sleep", "exit"]}}),
        );
    }
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if message["type"] == "invoke" {
            std::thread::spawn(move || answer(&message, direct));
        } else {
            eprintln!("got {message}");
        }
    }
}

fn answer(message: &Value, direct: bool) {
    let [result, chunk, done] = if direct {
        ["response", "stream", "stream_end"]
    } else {
        ["result", "chunk", "done"]
    };
    let (id, input) = (&message["id"], &message["input"]);
    match message["command"].as_str().unwrap() {
        "echo" => print(&json!({"type": result, "id": id, "output": input})),
        "count" => {
            let filling = "x".repeat(input["size"].as_u64().unwrap_or(0) as usize);
            for number in 0..input["to"].as_u64().unwrap() {
                print(
                    &json!({"type": chunk, "id": id, "output": {"n": number, "filling": filling}}),
                );
            }
            print(&json!({"type": done, "id": id}));
        }
        "sleep" => {
            std::thread::sleep(Duration::from_millis(input["ms"].as_u64().unwrap()));
            print(&json!({"type": result, "id": id, "output": input}));
        }
        "exit" => std::process::exit(input["code"].as_i64().unwrap() as i32),
        "environment" => {
            let variables: std::collections::BTreeMap<String, String> = std::env::vars().collect();
            let cwd = std::env::current_dir().unwrap();
            let arguments: Vec<String> = std::env::args().skip(1).collect();
            print(
                &json!({"type": result, "id": id, "output": {"variables": variables, "cwd": cwd, "arguments": arguments}}),
            );
        }
        other => {
            print(&json!({"type": "error", "id": id, "error": format!("unknown command: {other}")}))
        }
    }
}

/// Prints the lines of the recorded clip. Exits with code 9 if the runtime's lines differ from the recorded ones.
fn replay(recording: &str) {
    let recording: Value = serde_json::from_str(recording).unwrap();
    let mut lines = std::io::stdin().lock().lines().map(Result::unwrap);
    let mut ids: Vec<(String, String)> = Vec::new();
    for event in recording["events"].as_array().unwrap() {
        let text = event["line"].as_str().unwrap();
        match event["dir"].as_str().unwrap() {
            "clip>runtime" | "A>runtime" => match serde_json::from_str::<Value>(text) {
                Ok(mut message) => {
                    if let Some((_, actual)) = ids.iter().find(|(id, _)| *id == message["id"]) {
                        message["id"] = json!(actual);
                    }
                    if let Some(length) = event["length"].as_u64() {
                        message["output"]["blob"] = json!("x".repeat(length as usize - 48));
                    }
                    print(&message);
                }
                Err(_) => println!("{text}"),
            },
            "runtime>clip" | "runtime>A" => {
                // Lines that tested the SDK with invalid input are not sent by pinion.
                let Ok(expected) = serde_json::from_str::<Value>(text) else {
                    continue;
                };
                if !is_sent_by_runtime(&expected, recording["dialect"] == "seed") {
                    continue;
                }
                let mut actual_line: Value = serde_json::from_str(&lines.next().unwrap()).unwrap();
                if actual_line["type"] == "registered" && expected["type"] != "registered" {
                    actual_line = serde_json::from_str(&lines.next().unwrap()).unwrap();
                }
                if actual_line["type"] == "invoke" {
                    let id = |message: &Value| message["id"].as_str().unwrap().to_owned();
                    ids.push((id(&expected), id(&actual_line)));
                }
                if normal(&actual_line) != normal(&expected) {
                    eprintln!("expected {expected}, got {actual_line}");
                    std::process::exit(9);
                }
            }
            "clip!stderr" => eprintln!("{text}"),
            "runtime" if text == "close stdin" => {
                if let Some(line) = lines.next() {
                    eprintln!("expected the end, got {line}");
                    std::process::exit(9);
                }
            }
            "runtime" => loop {
                std::thread::sleep(Duration::from_secs(1));
            },
            // Lines between other processes.
            _ => {}
        }
    }
    let code = recording["exit"]["code"].as_i64().unwrap_or(0);
    if recording.get("exit").is_none() {
        lines.for_each(drop);
    }
    std::process::exit(code as i32);
}

fn is_sent_by_runtime(message: &Value, direct: bool) -> bool {
    matches!(
        message["type"].as_str(),
        Some("invoke" | "registered" | "result" | "error" | "list_clips_result" | "data_result")
    ) || direct && message["type"] == "invoke_clip_response"
}

/// Removes chosen ids, adds the optional input, and sorts lists, so that messages can be compared.
fn normal(message: &Value) -> Value {
    let mut message = message.clone();
    if message["type"] == "invoke" {
        message["id"] = Value::Null;
        if message.get("input").is_none() {
            message["input"] = json!({});
        }
    }
    if message["type"] == "registered" {
        message["alias"] = Value::Null;
    }
    if let Some(clips) = message.get_mut("clips").and_then(Value::as_array_mut) {
        clips.sort_by_key(|clip| clip["name"].to_string());
        for clip in clips {
            let commands = clip["commands"].as_array_mut().unwrap();
            commands.sort_by_key(|command| command["name"].to_string());
        }
    }
    message
}

/// Runs the clip in `directory`, calls it once, and stays running.
fn own(directory: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let package = Package::read(directory.as_ref()).unwrap();
        let data = std::path::Path::new(directory).join("data");
        let config = ClipConfig::new("owned", package, data);
        let clip = Clip::new(
            config,
            Arc::new(ClipLog::in_memory()),
            Arc::new(NoCrossCalls),
        );
        let call = clip.invoke(Invocation::new("start", "{}")).unwrap();
        let output = call.output().await.unwrap();
        println!("{}", std::str::from_utf8(&output).unwrap());
        std::future::pending::<()>().await;
    });
}
