//! The messages between pinion and its guardian: orders one way, reports the other.
//!
//! An order is a length (u32, little endian), a kind byte, an id (u64) and, for a start, texts that each
//! end in NUL: directory, number of words, words, variables. Descriptors for the new process's
//! stdin, stdout and stderr, and further ones for 3 and up, travel with the length. A start of a confined process has its
//! policy as the first text. A report is 13 bytes; the number of one with a text is the length of the text, which follows.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};

use crate::launch::Environment;

const KILL: u8 = 1;
const START: u8 = 2;
const STARTED: u8 = 3;
const FAILED: u8 = 4;
const EXITED: u8 = 5;
const FORGET: u8 = 6;
const TAKEN: u8 = 7;
const START_BARE: u8 = 8;
const START_CONFINED: u8 = 9;
const START_CONFINED_BARE: u8 = 10;
const REFUSED: u8 = 11;
const DENIED: u8 = 12;
const REPORT_LENGTH: usize = 13;
/// The largest order in bytes; the kernel's limit on argument lists is lower.
const MAX_ORDER: usize = 16 * 1024 * 1024;
/// The longest text of a report in bytes.
const MAX_TEXT: usize = 64 * 1024;
/// The most descriptors of a process beyond stderr.
pub(crate) const MAX_EXTRA: usize = 13;

/// A process to start.
#[derive(Debug)]
pub(crate) struct Start {
    pub directory: PathBuf,
    /// The program and its arguments.
    pub words: Vec<OsString>,
    /// Added to `base`; a variable of the same name is replaced.
    pub variables: Vec<(OsString, OsString)>,
    pub base: Environment,
    /// The policy of a confined process, as JSON.
    pub policy: Option<String>,
    /// Stdin, stdout and stderr.
    pub stdio: [OwnedFd; 3],
    /// The descriptors 3 and up; at most [`MAX_EXTRA`].
    pub extra: Vec<OwnedFd>,
}

/// A message from pinion to the guardian.
#[derive(Debug)]
pub(crate) enum Order {
    Start(Start),
    /// Kill the processes of this id and their descendants.
    Kill,
    /// The process of this id has ended; it will not be killed by its id.
    Forget,
}

/// A message from the guardian to pinion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// The order arrived; from now on its process may run.
    Taken,
    /// The process runs under this id.
    Started(i32),
    /// The process did not start; the number is an `errno`.
    Failed(i32),
    /// The process could not be confined and did not start; the text is for a person.
    Refused(String),
    /// The sandbox refused an operation of the process; the text is a record as JSON.
    Denied(String),
    /// The process ended with this exit code, or was killed by the negative of this signal.
    Exited(i32),
}

pub(crate) fn send_kill(stream: &UnixStream, id: u64) -> io::Result<()> {
    send_word(stream, KILL, id)
}

pub(crate) fn send_forget(stream: &UnixStream, id: u64) -> io::Result<()> {
    send_word(stream, FORGET, id)
}

fn send_word(mut stream: &UnixStream, kind: u8, id: u64) -> io::Result<()> {
    let mut message = 9_u32.to_le_bytes().to_vec();
    message.push(kind);
    message.extend(id.to_le_bytes());
    stream.write_all(&message)
}

/// Sends a start order. Its texts must not contain NUL; see [`is_sendable`].
pub(crate) fn send_start(mut stream: &UnixStream, id: u64, start: &Start) -> io::Result<()> {
    let mut body = vec![match (&start.policy, start.base) {
        (None, Environment::Inherited) => START,
        (None, Environment::Empty) => START_BARE,
        (Some(_), Environment::Inherited) => START_CONFINED,
        (Some(_), Environment::Empty) => START_CONFINED_BARE,
    }];
    body.extend(id.to_le_bytes());
    let mut text = |parts: &[&[u8]]| {
        parts.iter().for_each(|part| body.extend_from_slice(part));
        body.push(0);
    };
    if let Some(policy) = &start.policy {
        text(&[policy.as_bytes()]);
    }
    text(&[start.directory.as_os_str().as_bytes()]);
    text(&[start.words.len().to_string().as_bytes()]);
    start.words.iter().for_each(|word| text(&[word.as_bytes()]));
    for (name, value) in &start.variables {
        text(&[name.as_bytes(), b"=", value.as_bytes()]);
    }

    let length = (body.len() as u32).to_le_bytes();
    let descriptors: Vec<RawFd> = start
        .stdio
        .iter()
        .chain(&start.extra)
        .map(AsRawFd::as_raw_fd)
        .collect();
    let slices = [IoSlice::new(&length), IoSlice::new(&body)];
    let rights = [ControlMessage::ScmRights(&descriptors)];
    let sent = loop {
        match sendmsg::<()>(
            stream.as_raw_fd(),
            &slices,
            &rights,
            MsgFlags::MSG_NOSIGNAL,
            None,
        ) {
            Err(nix::Error::EINTR) => {}
            result => break result?,
        }
    };
    stream.write_all(length.get(sent..).unwrap_or_default())?;
    stream.write_all(&body[sent.saturating_sub(length.len())..])
}

/// Reads the next order and its id; `None` when the other side closed the socket.
pub(crate) fn receive_order(mut stream: &UnixStream) -> io::Result<Option<(u64, Order)>> {
    let Some((length, descriptors)) = receive_length(stream)? else {
        return Ok(None);
    };
    if !(9..=MAX_ORDER).contains(&length) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    let id = u64::from_le_bytes(body[1..9].try_into().map_err(io::Error::other)?);
    match body[0] {
        KILL => Ok(Some((id, Order::Kill))),
        FORGET => Ok(Some((id, Order::Forget))),
        kind @ (START | START_BARE | START_CONFINED | START_CONFINED_BARE) => {
            let is_confined = matches!(kind, START_CONFINED | START_CONFINED_BARE);
            let start = parse_start(&body[9..], descriptors, is_confined);
            let mut start = start.ok_or(io::ErrorKind::InvalidData)?;
            if matches!(kind, START_BARE | START_CONFINED_BARE) {
                start.base = Environment::Empty;
            }
            Ok(Some((id, Order::Start(start))))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn receive_length(stream: &UnixStream) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
    let mut length = [0; 4];
    let mut filled = 0;
    let mut descriptors = Vec::new();
    while filled < length.len() {
        let mut space = nix::cmsg_space!([RawFd; 3 + MAX_EXTRA]);
        let mut slices = [IoSliceMut::new(&mut length[filled..])];
        let flags = MsgFlags::MSG_CMSG_CLOEXEC;
        let message = match recvmsg::<()>(
            stream.as_fd().as_raw_fd(),
            &mut slices,
            Some(&mut space),
            flags,
        ) {
            Err(nix::Error::EINTR) => continue,
            result => result?,
        };
        for control in message.cmsgs()? {
            if let ControlMessageOwned::ScmRights(received) = control {
                descriptors.extend(received.into_iter().map(own));
            }
        }
        match message.bytes {
            0 if filled == 0 => return Ok(None),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(Some((u32::from_le_bytes(length) as usize, descriptors)))
}

#[allow(
    unsafe_code,
    reason = "the kernel hands over descriptors as plain numbers"
)]
fn own(descriptor: RawFd) -> OwnedFd {
    // SAFETY: the kernel has just made this descriptor for this process, and no other code has its number.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

fn parse_start(body: &[u8], mut stdio: Vec<OwnedFd>, is_confined: bool) -> Option<Start> {
    let extra = stdio.split_off(stdio.len().min(3));
    let mut texts = body.strip_suffix(&[0])?.split(|&byte| byte == 0);
    let os_string = |text: &[u8]| OsString::from_vec(text.to_vec());
    let policy = if is_confined {
        Some(String::from_utf8(texts.next()?.to_vec()).ok()?)
    } else {
        None
    };
    let directory = PathBuf::from(os_string(texts.next()?));
    let count: usize = std::str::from_utf8(texts.next()?).ok()?.parse().ok()?;
    let words: Vec<OsString> = texts.by_ref().take(count).map(os_string).collect();
    let variables = texts
        .map(|text| {
            let at = memchr::memchr(b'=', text)?;
            Some((os_string(&text[..at]), os_string(&text[at + 1..])))
        })
        .collect::<Option<_>>()?;
    if words.is_empty() || words.len() != count {
        return None;
    }
    Some(Start {
        directory,
        words,
        variables,
        base: Environment::Inherited,
        policy,
        stdio: stdio.try_into().ok()?,
        extra,
    })
}

pub(crate) fn send_report(mut stream: &UnixStream, id: u64, report: Report) -> io::Result<()> {
    let (kind, number, text) = match report {
        Report::Taken => (TAKEN, 0, String::new()),
        Report::Started(pid) => (STARTED, pid, String::new()),
        Report::Failed(error) => (FAILED, error, String::new()),
        Report::Exited(code) => (EXITED, code, String::new()),
        Report::Refused(text) => (REFUSED, text.len() as i32, text),
        Report::Denied(text) => (DENIED, text.len() as i32, text),
    };
    if text.len() > MAX_TEXT {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut message = Vec::with_capacity(REPORT_LENGTH + text.len());
    message.push(kind);
    message.extend(id.to_le_bytes());
    message.extend(number.to_le_bytes());
    message.extend(text.as_bytes());
    stream.write_all(&message)
}

/// Reads the next report and its id; an error when the other side closed the socket.
pub(crate) fn receive_report(mut stream: &UnixStream) -> io::Result<(u64, Report)> {
    let mut message = [0; REPORT_LENGTH];
    stream.read_exact(&mut message)?;
    let id = u64::from_le_bytes(message[1..9].try_into().map_err(io::Error::other)?);
    let number = i32::from_le_bytes(message[9..].try_into().map_err(io::Error::other)?);
    let report = match message[0] {
        TAKEN => Report::Taken,
        STARTED => Report::Started(number),
        FAILED => Report::Failed(number),
        EXITED => Report::Exited(number),
        REFUSED => Report::Refused(receive_text(stream, number)?),
        DENIED => Report::Denied(receive_text(stream, number)?),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok((id, report))
}

fn receive_text(mut stream: &UnixStream, length: i32) -> io::Result<String> {
    let length = usize::try_from(length).map_err(io::Error::other)?;
    if length > MAX_TEXT {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = vec![0; length];
    stream.read_exact(&mut text)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// Reports whether `text` can be an argument or a variable: it contains no NUL.
pub(crate) fn is_sendable(text: &OsStr) -> bool {
    memchr::memchr(0, text.as_bytes()).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn null() -> OwnedFd {
        File::open("/dev/null").unwrap().into()
    }

    #[test]
    fn orders_arrive_with_their_descriptors() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        let (extra_reader, extra_writer) = std::io::pipe().unwrap();
        let start = Start {
            directory: "/tmp/ü".into(),
            words: vec!["sh".into(), "-c".into(), "".into(), "echo\n".into()],
            variables: vec![("A".into(), "b=c".into()), ("E".into(), "".into())],
            base: Environment::Empty,
            policy: Some("{}".into()),
            stdio: [null(), writer.into(), null()],
            extra: vec![extra_writer.into()],
        };
        send_start(&ours, 7, &start).unwrap();
        send_kill(&ours, 8).unwrap();
        let (words, variables) = (start.words.clone(), start.variables.clone());
        drop(start);

        let Some((7, Order::Start(received))) = receive_order(&theirs).unwrap() else {
            panic!()
        };
        assert_eq!(received.directory, PathBuf::from("/tmp/ü"));
        assert_eq!((received.words, received.variables), (words, variables));
        assert_eq!(received.base, Environment::Empty);
        assert_eq!(received.policy.as_deref(), Some("{}"));
        let [_, stdout, _] = received.stdio;
        File::from(stdout).write_all(b"through").unwrap();
        for extra in received.extra {
            File::from(extra).write_all(b"beyond").unwrap();
        }
        let mut text = String::new();
        { reader }.read_to_string(&mut text).unwrap();
        { extra_reader }.read_to_string(&mut text).unwrap();
        assert_eq!(text, "throughbeyond");

        assert!(matches!(
            receive_order(&theirs).unwrap(),
            Some((8, Order::Kill))
        ));
        drop(ours);
        assert!(receive_order(&theirs).unwrap().is_none());
    }

    #[test]
    fn reports_arrive_as_sent() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        for report in [
            Report::Started(42),
            Report::Refused("no Landlock".into()),
            Report::Denied("{}".into()),
            Report::Failed(2),
            Report::Exited(-9),
        ] {
            send_report(&theirs, u64::MAX, report.clone()).unwrap();
            assert_eq!(receive_report(&ours).unwrap(), (u64::MAX, report));
        }
        drop(theirs);
        assert!(receive_report(&ours).is_err());
    }
}
