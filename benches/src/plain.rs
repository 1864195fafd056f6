//! The limits of the machine: programs that do only the unavoidable part of the work.
//!
//! They are modes of this binary, started like an agent and read by the same reader, so that the difference between
//! them and an agent is the work of the agent.

use std::io::{self, BufRead, BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::{Fallible, talk};

/// Answers one line with one line.
pub const ANSWER: &str = "plain-answer";
/// Draws a frame on a terminal.
pub const PAINT: &str = "plain-paint";
/// Writes lines of given lengths.
pub const WRITE: &str = "plain-write";
/// Copies the output of a model server.
pub const RELAY: &str = "plain-relay";
/// Runs shell commands one after the other.
pub const SHELL: &str = "plain-shell";
/// Prints the output of an agent, as fast as it is read.
pub const TALK: &str = "plain-talk";
/// Prints a line without end.
pub const FLOOD: &str = "plain-flood";
/// Prints numbered lines with the name of the child.
pub const COUNT: &str = "plain-count";

/// The body of one request to the model server.
const REQUEST: &str =
    r#"{"model":"mock-1","stream":true,"messages":[{"role":"user","content":"Go"}]}"#;

/// Returns a command that runs one of these programs.
pub fn command(mode: &str, argument: &str) -> Fallible<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args([mode, argument]);
    Ok(command)
}

/// Runs the program named `mode`, if there is one; then waits for the end of its input.
pub fn run(mode: &str, argument: &str) -> Option<Fallible<()>> {
    let program = match mode {
        ANSWER => |_: &str| answer(),
        PAINT => |_: &str| paint(),
        WRITE => |path: &str| write_lines(Path::new(path)),
        RELAY => relay,
        SHELL => shell,
        TALK => |bytes: &str| talk::talk(bytes.parse()?),
        FLOOD => talk::flood,
        COUNT => |lines: &str| talk::count(lines.parse()?),
        _ => return None,
    };
    let mut line = String::new();
    let begun = io::stdin().lock().read_line(&mut line);
    Some(
        begun
            .map_err(Into::into)
            .and_then(|_| program(argument))
            .and_then(|()| {
                io::stdin().lock().read_to_end(&mut Vec::new())?;
                Ok(())
            }),
    )
}

fn answer() -> Fallible<()> {
    Ok(io::stdout()
        .lock()
        .write_all(b"{\"id\":\"s\",\"type\":\"response\"}\n")?)
}

fn paint() -> Fallible<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(b"\x1b[?2026h\x1b[2J\x1b[22;1H> \x1b[?2026l")?;
    Ok(stdout.flush()?)
}

/// Saves the lengths of lines for [`WRITE`].
pub fn save_lengths(path: &Path, lengths: &[u32]) -> Fallible<()> {
    let bytes: Vec<u8> = lengths
        .iter()
        .flat_map(|length| length.to_le_bytes())
        .collect();
    Ok(fs::write(path, bytes)?)
}

fn write_lines(path: &Path) -> Fallible<()> {
    let bytes = fs::read(path)?;
    let (chunks, _) = bytes.as_chunks::<4>();
    let lengths: Vec<usize> = chunks
        .iter()
        .map(|chunk| u32::from_le_bytes(*chunk) as usize)
        .collect();
    let mut longest = vec![b'x'; lengths.iter().copied().max().unwrap_or(0).max(1)];
    if let Some(last) = longest.last_mut() {
        *last = b'\n';
    }
    let mut out = BufWriter::with_capacity(64 * 1024, io::stdout().lock());
    for length in lengths {
        out.write_all(&longest[longest.len() - length..])?;
    }
    Ok(out.flush()?)
}

/// Sends a request to the model server and copies every piece of the answer as it arrives.
fn relay(port: &str) -> Fallible<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse()?))?;
    stream.set_nodelay(true)?;
    write!(
        stream,
        "POST /messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{REQUEST}",
        REQUEST.len()
    )?;
    let mut stdout = io::stdout().lock();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            count => {
                stdout.write_all(&buffer[..count])?;
                stdout.flush()?;
            }
        }
    }
}

/// Runs `true` in a shell `count` times and prints a line.
fn shell(count: &str) -> Fallible<()> {
    for _ in 0..count.parse::<u32>()? {
        Command::new("/bin/bash").args(["-c", "true"]).output()?;
    }
    answer()
}
