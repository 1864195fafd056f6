//! As much of HTTP/1.1 as a model server needs: read a request, write a plain answer or the head of a
//! streamed one. No TLS, no pipelining, loopback only.

use std::io::{self, BufRead, Read, Write};
use std::net::TcpStream;

use pinion_text::percent;
use serde_json::Value;

#[derive(Debug)]
pub(super) struct HttpRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    /// Names in lower case, in the order of arrival.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a query parameter, percent-decoded.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name).then(|| decode(value))
        })
    }
}

/// Reads one request; `None` when the client closed the connection.
pub(super) fn read_request(
    reader: &mut impl BufRead,
    mut writer: &TcpStream,
) -> io::Result<Option<HttpRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut request = HttpRequest {
        method,
        path: decode(path),
        query: query.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let text = line.trim_end();
        if text.is_empty() {
            break;
        }
        if let Some((name, value)) = text.split_once(':') {
            request
                .headers
                .push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }
    if request
        .header("expect")
        .is_some_and(|e| e.eq_ignore_ascii_case("100-continue"))
    {
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = read_body(reader, &request)?;
    Ok(Some(request))
}

fn read_body(reader: &mut impl BufRead, request: &HttpRequest) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if let Some(length) = request
        .header("content-length")
        .and_then(|l| l.parse().ok())
    {
        body.resize(length, 0);
        reader.read_exact(&mut body)?;
    } else if request
        .header("transfer-encoding")
        .is_some_and(|t| t.contains("chunked"))
    {
        let mut line = String::new();
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
            reader.by_ref().take(size).read_to_end(&mut body)?;
            line.clear();
            reader.read_line(&mut line)?;
            if size == 0 {
                break;
            }
        }
    }
    Ok(body)
}

/// A complete answer with a body of known length.
pub(super) fn write_answer(
    mut stream: &TcpStream,
    status: u64,
    body: &[u8],
    headers: &Value,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    let given: Vec<(&str, String)> = headers
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| {
            (
                name.as_str(),
                value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            )
        })
        .collect();
    if !given
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("content-type"))
    {
        head.push_str("content-type: application/json\r\n");
    }
    head.push_str(&format!("content-length: {}\r\n", body.len()));
    for (name, value) in given {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(body);
    stream.write_all(&bytes)
}

/// The head of a streamed answer.
pub(super) fn write_stream_head(mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
          cache-control: no-cache\r\ntransfer-encoding: chunked\r\nrequest-id: req_mock\r\n\r\n",
    )
}

fn reason(status: u64) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Payload Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Answer",
    }
}

fn decode(text: &str) -> String {
    String::from_utf8_lossy(&percent::decode(text.as_bytes())).into_owned()
}
