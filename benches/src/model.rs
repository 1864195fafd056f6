//! The model server, run as a separate program so that its work is not counted as an agent's.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::Fallible;

/// A running model server.
#[derive(Debug)]
pub struct Model {
    child: Child,
    pub port: u16,
}

impl Model {
    /// Starts the server.
    pub fn start(program: &Path) -> Fallible<Self> {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdout = child
            .stdout
            .take()
            .ok_or("the model server has no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let announced: Value = serde_json::from_str(&line)?;
        let port = announced["port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or("the model server names no port")?;
        Ok(Self { child, port })
    }

    /// Sets the scenario of all further answers.
    pub fn play(&self, scenario: &Value) -> Fallible<()> {
        let body = scenario.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        write!(
            stream,
            "POST /__ctl/scenario HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        if answer.starts_with("HTTP/1.1 200") {
            Ok(())
        } else {
            Err(format!("the model server refused the scenario: {answer}").into())
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // Fails if the server has exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
