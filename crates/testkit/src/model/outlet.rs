//! The sending half of one streamed answer: pacing, gates, chunked framing, and the faults a scenario
//! asks for. Dialects write events into it in order and never look at the socket.

use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;

use super::Shared;
use super::scenario::Control;

/// The reason why an answer stopped before its end. A stall ends as `HungUp`, when the client gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The client closed the connection, or the server is being dropped.
    HungUp,
    /// The scenario requested it.
    Cut,
}

impl From<io::Error> for Ended {
    fn from(_: io::Error) -> Self {
        Self::HungUp
    }
}

/// The position of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FaultPosition {
    /// Before any byte of the answer.
    Connect,
    /// After the response head.
    Headers,
    /// In the middle of the n-th event, counted from 0.
    Event(u64),
    /// Between the bytes of the first multi-byte character.
    Utf8,
    /// After so many bytes of the body.
    Byte(u64),
}

#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub place: FaultPosition,
    pub then: Control,
}

impl Fault {
    /// Reads `{"at": "connect" | "headers" | "utf8" | {"event": n} | {"byte": n}, "then": …}`.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let at = value.get("at")?;
        let place = match (at.as_str(), at["event"].as_u64(), at["byte"].as_u64()) {
            (Some("connect"), ..) => FaultPosition::Connect,
            (Some("headers"), ..) => FaultPosition::Headers,
            (Some("utf8"), ..) => FaultPosition::Utf8,
            (_, Some(n), _) => FaultPosition::Event(n),
            (_, _, Some(n)) => FaultPosition::Byte(n),
            _ => panic!("this place for a fault is not understood: {at}"),
        };
        let then = match value["then"].as_str() {
            None | Some("stall") => Control::Stall,
            Some("disconnect") => Control::Disconnect,
            Some("reset") => Control::Reset,
            Some(other) => panic!("a fault can stall, disconnect or reset, not {other}"),
        };
        Some(Self { place, then })
    }
}

/// The way in which the events of one answer are sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Manner {
    pub pace: Duration,
    /// Collect events into writes of about 16 KiB instead of one write per event.
    pub block: bool,
    /// Cut the body into HTTP chunks of so many bytes.
    pub split: Option<usize>,
    pub fault: Option<Fault>,
}

pub(super) struct Outlet<'a> {
    shared: &'a Shared,
    stream: &'a TcpStream,
    manner: Manner,
    waiting: Vec<u8>,
    events: u64,
    bytes: u64,
    /// A pause follows an event only if the scenario has none there.
    after_event: bool,
    first_event: Option<Instant>,
}

const BLOCK: usize = 16 * 1024;

impl<'a> Outlet<'a> {
    pub(super) fn new(shared: &'a Shared, stream: &'a TcpStream, manner: Manner) -> Self {
        Self {
            shared,
            stream,
            manner,
            waiting: Vec::new(),
            events: 0,
            bytes: 0,
            after_event: false,
            first_event: None,
        }
    }

    pub(super) fn first_event(&self) -> Option<Instant> {
        self.first_event
    }

    /// Triggers the fault if it belongs to a position before the body.
    pub(super) fn reached(&mut self, place: FaultPosition) -> Result<(), Ended> {
        match &self.manner.fault {
            Some(fault) if fault.place == place => {
                let then = fault.then.clone();
                self.obey(&then)
            }
            _ => Ok(()),
        }
    }

    /// One server-sent event, with or without a name.
    pub(super) fn event(&mut self, name: Option<&str>, data: &Value) -> Result<(), Ended> {
        let mut bytes = Vec::with_capacity(256);
        if let Some(name) = name {
            bytes.extend_from_slice(b"event: ");
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(b"data: ");
        serde_json::to_writer(&mut bytes, data).expect("a JSON value can be written");
        bytes.extend_from_slice(b"\n\n");
        self.raw(&bytes)
    }

    /// Bytes that count as one event.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.keep_pace()?;
        self.after_event = true;
        let strikes = self.manner.fault.as_ref().and_then(|fault| {
            let offset = match fault.place {
                FaultPosition::Event(n) => (n == self.events).then_some(bytes.len() / 2),
                FaultPosition::Utf8 => bytes.iter().position(|b| *b >= 0xc0).map(|at| at + 1),
                FaultPosition::Byte(n) => {
                    (n < self.bytes + bytes.len() as u64).then(|| (n - self.bytes) as usize)
                }
                FaultPosition::Connect | FaultPosition::Headers => None,
            };
            offset.map(|offset| (offset, fault.then.clone()))
        });
        self.first_event.get_or_insert_with(Instant::now);
        if let Some((offset, then)) = strikes {
            self.body(&bytes[..offset])?;
            return self.obey(&then);
        }
        self.events += 1;
        self.bytes += bytes.len() as u64;
        self.body(bytes)
    }

    /// Holds or ends the stream.
    pub(super) fn control(&mut self, control: &Control) -> Result<(), Ended> {
        self.keep_pace()?;
        self.after_event = false;
        self.obey(control)
    }

    /// The end of a complete body.
    pub(super) fn finish(&mut self) -> Result<(), Ended> {
        self.flush()?;
        self.write(b"0\r\n\r\n")
    }

    fn keep_pace(&mut self) -> Result<(), Ended> {
        if self.after_event && !self.manner.pace.is_zero() {
            self.pause(self.manner.pace)?;
        }
        Ok(())
    }

    fn obey(&mut self, control: &Control) -> Result<(), Ended> {
        self.flush()?;
        match control {
            Control::Delay(ms) => self.pause(Duration::from_millis(*ms)),
            Control::Gate(name) => {
                if self.shared.wait_gate(name, || self.hung_up(Duration::ZERO)) {
                    Ok(())
                } else {
                    Err(Ended::HungUp)
                }
            }
            Control::Disconnect => {
                // Lets the client read what was sent before the end of the connection shows.
                self.pause(Duration::from_millis(20))?;
                Err(Ended::Cut)
            }
            Control::Reset => {
                reset(self.stream);
                Err(Ended::Cut)
            }
            Control::Stall => {
                while !self.hung_up(Duration::from_millis(20)) {}
                Err(Ended::HungUp)
            }
        }
    }

    /// Waits, unless the client hangs up first.
    fn pause(&mut self, time: Duration) -> Result<(), Ended> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.hung_up(left.min(Duration::from_millis(20))) {
                return Err(Ended::HungUp);
            }
        }
    }

    /// Watches the connection for at most `time`; true once the client has closed it.
    fn hung_up(&self, time: Duration) -> bool {
        if self.shared.stopping() {
            return true;
        }
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        // Rounded up, because a pause of less than a millisecond must not become a busy loop.
        let millis = time.as_micros().div_ceil(1000) as u16;
        match poll(&mut fds, PollTimeout::from(millis)) {
            Ok(0) | Err(_) => false,
            Ok(_) => match self.stream.peek(&mut [0]) {
                Ok(0) | Err(_) => true,
                Ok(_) => {
                    // The next request has arrived, which does not affect this one.
                    std::thread::sleep(time);
                    false
                }
            },
        }
    }

    fn body(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        match self.manner.split {
            Some(size) => bytes.chunks(size.max(1)).try_for_each(|piece| {
                let framed = frame(piece);
                self.write(&framed)
            }),
            None if self.manner.block && self.manner.pace.is_zero() => {
                self.waiting.extend_from_slice(bytes);
                if self.waiting.len() >= BLOCK {
                    self.flush()
                } else {
                    Ok(())
                }
            }
            None => self.write(&frame(bytes)),
        }
    }

    fn flush(&mut self) -> Result<(), Ended> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let framed = frame(&self.waiting);
        self.waiting.clear();
        self.write(&framed)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        let mut stream = self.stream;
        Ok(stream.write_all(bytes)?)
    }
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() {
        // An empty chunk would end the body.
        return Vec::new();
    }
    let mut out = format!("{:x}\r\n", bytes.len()).into_bytes();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
    out
}

/// Makes the coming close of the connection a hard one: the client sees a reset.
fn reset(stream: &TcpStream) {
    let linger = nix::libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    setsockopt(stream, sockopt::Linger, &linger).expect("a connected socket takes the option");
}
