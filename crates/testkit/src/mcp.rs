//! An MCP server for tests, as a program on stdio or a server on the loopback interface.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// The program; see its first lines for its modes.
pub const SERVER: &str = include_str!("mcp/server.py");

/// Returns the entry of `mcp.json` for the server on stdio, whose program is `server.py` in `directory`.
pub fn entry(directory: &Path, mode: &str) -> Value {
    json!({"command": "python3", "args": [directory.join("server.py"), mode]})
}

/// The server on the loopback interface. It ends when this is dropped.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    port: u16,
}

impl HttpServer {
    /// Starts the server with further arguments.
    pub fn start(directory: &Path, arguments: &[&str]) -> Self {
        let program = directory.join("http-server.py");
        std::fs::write(&program, SERVER).expect("the program");
        let mut child = Command::new("python3")
            .arg(program)
            .arg("http")
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("its output");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let port = line.trim().parse().expect("a port");
        Self { child, port }
    }

    /// Returns its address.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
