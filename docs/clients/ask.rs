//! Sends one prompt and prints the answer as it arrives: `ask MESSAGE [PINION-ARGUMENT...]`.
use std::io::{self, BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::{env, error::Error, sync::Mutex, thread, time::Duration};

use serde_json::{Value, json};

/// The standard input of pinion; `None` once it is closed.
static INPUT: Mutex<Option<ChildStdin>> = Mutex::new(None);

fn send(command: &Value) {
    let write = |pipe: &mut ChildStdin| writeln!(pipe, "{command}"); // compact JSON in one line
    let _ = INPUT.lock().map(|mut input| input.as_mut().map(write)); // if pinion has exited, reading ends
}

fn ask_user(dialog: &Value) -> io::Result<()> {
    let asked = json!([dialog["title"], dialog["message"], dialog["options"]]);
    eprintln!("{asked}");
    let said = io::stdin().lines().next().transpose()?.unwrap_or_default();
    let (kind, id, yes) = ("extension_ui_response", &dialog["id"], said == "y");
    send(&json!({"type": kind, "id": id, "value": said, "confirmed": yes}));
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut command = Command::new("pinion");
    command.args(["--mode", "rpc"]).args(env::args().skip(2));
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut pinion = command.spawn()?;
    *INPUT.lock()? = pinion.stdin.take();
    send(&json!({"id": "prompt", "type": "prompt", "message": env::args().nth(1)}));
    let limit = Duration::from_secs(env::var("TIMEOUT").unwrap_or("600".into()).parse()?);
    thread::spawn(move || (thread::sleep(limit), send(&json!({"type": "abort"}))));
    let (mut failure, mut answer) = (Value::Null, io::stdout());
    let output = BufReader::new(pinion.stdout.take().ok_or("no pipe")?);
    for line in output.split(b'\n') {
        let event: Value = serde_json::from_slice(&line?)?;
        let (kind, update) = (event["type"].as_str(), &event["assistantMessageEvent"]);
        match event["method"].as_str().or(kind).unwrap_or_default() {
            "message_update" if update["type"] == "text_delta" => {
                write!(answer, "{}", update["delta"].as_str().unwrap_or_default())?;
                answer.flush()?;
            }
            "tool_execution_start" => eprintln!("[{} {}]", event["toolName"], event["args"]),
            "select" | "confirm" | "input" | "editor" => ask_user(&event)?,
            "message_end" => failure = event["message"]["errorMessage"].clone(), // or null
            "response" if event["success"] == false => Err(event["error"].to_string())?,
            "response" if event["id"] == "prompt" => send(&json!({"type": "get_state"})), // is there a run?
            "response" if event["data"]["isStreaming"] == false => drop(INPUT.lock()?.take()),
            "agent_end" => drop(INPUT.lock()?.take()), // pinion does the remaining work and exits
            _ => {}
        }
    }
    let status = pinion.wait()?;
    let good = failure.is_null() && status.success();
    let failed = || format!("{failure} (pinion: {status})");
    good.then_some(()).ok_or_else(|| failed().into())
}
