//! The model server as a program, for benchmarks and for trying a client by hand. Prints
//! `{"port": n, "pid": n}` on stdout and serves until its stdin ends or it is killed.

use std::io::Read;
use std::process::ExitCode;

use pinion_testkit::ModelServer;
use serde_json::{Value, json};

const USAGE: &str = "usage: mock-model [--port N] [--scenario FILE.json]";

fn main() -> ExitCode {
    let mut port = 0;
    let mut scenario = json!({});
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let value = args.next().unwrap_or_default();
        let understood = match arg.as_str() {
            "--port" => value
                .parse::<u16>()
                .map(|number| port = number)
                .map_err(|e| e.to_string()),
            "--scenario" => read(&value).map(|read| scenario = read),
            _ => Err(USAGE.to_owned()),
        };
        if let Err(message) = understood {
            eprintln!("{arg}: {message}");
            return ExitCode::from(2);
        }
    }
    let server = ModelServer::start_on(port, scenario);
    announce(&json!({"port": server.port(), "pid": std::process::id()}));
    let mut ignored = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut ignored);
    ExitCode::SUCCESS
}

fn read(path: &str) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))
}

#[allow(clippy::print_stdout, reason = "the port is this program's output")]
fn announce(line: &Value) {
    println!("{line}");
}
