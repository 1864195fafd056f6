//! A client of plain HTTP/1.1 that uses as little time as possible: many callers on one thread, each sending again as
//! soon as it is answered, and one that reads a long answer to its end.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::os::Readiness;
use crate::samples::Samples;

/// Returns the bytes of a request.
pub fn post(address: SocketAddr, path: &str, token: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: {kind}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// Returns the answers per second when `callers` send requests continuously for `time`.
pub fn rate(address: SocketAddr, request: &[u8], callers: usize, time: Duration) -> Fallible<f64> {
    let ready = Readiness::new()?;
    let mut streams = Vec::with_capacity(callers);
    for index in 0..callers {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        ready.watch(&stream, index as u64)?;
        stream.write_all(request)?;
        streams.push((stream, Vec::<u8>::new()));
    }
    let mut room = vec![0; 64 * 1024];
    let (mut answers, began) = (0_u64, Instant::now());
    while began.elapsed() < time {
        for index in ready.wait(Duration::from_secs(5))? {
            let (stream, partly) = &mut streams[index as usize];
            let count = match stream.read(&mut room) {
                Ok(0) => return Err("the server hung up".into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            };
            partly.extend_from_slice(&room[..count]);
            if whole(partly)? {
                partly.clear();
                answers += 1;
                stream.write_all(request)?;
            }
        }
    }
    Ok(answers as f64 / began.elapsed().as_secs_f64())
}

/// Measures the time of answers, one after the other.
pub fn latency(address: SocketAddr, request: &[u8], count: usize) -> Fallible<Samples> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let (mut samples, mut room) = (Samples::new(), vec![0; 64 * 1024]);
    for round in 0..count + count / 10 {
        let began = Instant::now();
        stream.write_all(request)?;
        let mut answer = Vec::new();
        while !whole(&answer)? {
            let count = stream.read(&mut room)?;
            if count == 0 {
                return Err("the server hung up".into());
            }
            answer.extend_from_slice(&room[..count]);
        }
        if round >= count / 10 {
            samples.add_time(began.elapsed());
        }
    }
    Ok(samples)
}

/// Reads the body of one answer to its end and returns its length and the time that took.
pub fn drain(address: SocketAddr, request: &[u8]) -> Fallible<(u64, Duration)> {
    let mut stream = TcpStream::connect(address)?;
    let began = Instant::now();
    stream.write_all(request)?;
    let mut room = vec![0; 1024 * 1024];
    let (mut total, mut tail) = (0_u64, Vec::new());
    loop {
        let count = stream.read(&mut room)?;
        if count == 0 {
            return Err("the server hung up in the middle of an answer".into());
        }
        if total == 0 && !room[..count].starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&room[..count]).into_owned().into());
        }
        total += count as u64;
        tail.extend_from_slice(&room[count.saturating_sub(64)..count]);
        tail.drain(..tail.len().saturating_sub(64));
        if tail.ends_with(b"\r\n0\r\n\r\n") {
            let end = String::from_utf8_lossy(&tail).into_owned();
            return if end.contains("error") {
                Err(end.into())
            } else {
                Ok((total, began.elapsed()))
            };
        }
    }
}

/// Sends a request and returns the body of one small answer with any status.
pub fn ask(address: SocketAddr, request: &[u8]) -> Fallible<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(request)?;
    let (mut answer, mut room) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        if let Some(body) = body(&answer)? {
            return Ok(body.to_vec());
        }
        match stream.read(&mut room)? {
            0 => return Err("the server hung up".into()),
            count => answer.extend_from_slice(&room[..count]),
        }
    }
}

/// Reports whether an answer of 200 is complete.
fn whole(answer: &[u8]) -> Fallible<bool> {
    if answer.len() > 12 && !answer.starts_with(b"HTTP/1.1 200") {
        return Err(String::from_utf8_lossy(answer).into_owned().into());
    }
    Ok(body(answer)?.is_some())
}

/// Returns the body of a complete answer. A chunked body is returned undecoded, because callers that count answers
/// ignore it.
fn body(answer: &[u8]) -> Fallible<Option<&[u8]>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = std::str::from_utf8(&answer[..end])?;
    let length = head.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>())
    });
    let rest = &answer[end + 4..];
    match length {
        Some(length) => Ok(rest.get(..length?)),
        None => Ok(rest.ends_with(b"0\r\n\r\n").then_some(rest)),
    }
}
