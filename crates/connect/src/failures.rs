//! How failures look on the wire, in each of the protocols, and how they are read back.
//!
//! A unary Connect answer that failed carries two shapes in one object, Connect's own and the older one with a code in upper
//! case: `{"code":"not_found","message":"…","error":{"code":"NOT_FOUND","message":"…"}}`.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use pinion_status::{Code, Failure};
use serde::Deserialize;

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
static GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// The body of a unary Connect answer that failed.
pub(crate) fn unary(failure: &Failure) -> Vec<u8> {
    let mut message = Vec::new();
    quote(&mut message, &failure.message);
    let mut out = Vec::with_capacity(80 + 2 * message.len());
    shape(&mut out, failure.code(), &message);
    out.pop();
    out.extend_from_slice(b",\"error\":");
    shape(&mut out, upper(failure.code), &message);
    out.push(b'}');
    out
}

/// The payload of the envelope that ends a Connect stream.
pub(crate) fn end_of_stream(failure: Option<&Failure>, trailers: &HeaderMap) -> Vec<u8> {
    let mut out = vec![b'{'];
    if let Some(failure) = failure {
        let mut message = Vec::new();
        quote(&mut message, &failure.message);
        out.extend_from_slice(b"\"error\":");
        shape(&mut out, failure.code(), &message);
        out.push(b',');
    }
    if !trailers.is_empty() {
        out.extend_from_slice(b"\"metadata\":{");
        for name in trailers.keys() {
            quote(&mut out, name.as_str());
            out.extend_from_slice(b":[");
            for value in trailers.get_all(name) {
                quote(&mut out, &String::from_utf8_lossy(value.as_bytes()));
                out.push(b',');
            }
            close(&mut out, b"],");
        }
        close(&mut out, b"},");
    }
    close(&mut out, b"}");
    out
}

/// The status of a gRPC call, to be sent as trailers.
pub(crate) fn grpc(failure: Option<&Failure>, trailers: &mut HeaderMap) {
    let number = failure.map_or(0, |failure| u16::from(failure.code.number()));
    trailers.insert(&GRPC_STATUS, HeaderValue::from(number));
    let Some(failure) = failure else { return };
    if let Ok(message) = HeaderValue::try_from(percent_encode(&failure.message)) {
        trailers.insert(&GRPC_MESSAGE, message);
    }
}

/// Trailers as the payload of the last envelope of gRPC-Web.
pub(crate) fn grpc_web(trailers: &HeaderMap) -> Vec<u8> {
    let mut out = Vec::with_capacity(64);
    for (name, value) in trailers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The older name of a code: there is no word for a caller who did not say who it is.
fn upper(code: Code) -> &'static str {
    match code {
        Code::Unauthenticated => Code::PermissionDenied.upper(),
        Code::Unknown => Code::Internal.upper(),
        other => other.upper(),
    }
}

fn shape(out: &mut Vec<u8>, code: &str, quoted: &[u8]) {
    out.extend_from_slice(b"{\"code\":\"");
    out.extend_from_slice(code.as_bytes());
    out.extend_from_slice(b"\",\"message\":");
    out.extend_from_slice(quoted);
    out.push(b'}');
}

fn quote(out: &mut Vec<u8>, text: &str) {
    // Writing text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Ends a list or an object: takes the last comma away, if there is one.
fn close(out: &mut Vec<u8>, end: &[u8]) {
    out.pop_if(|last| *last == b',');
    out.extend_from_slice(end);
}

fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' | 0..0x20 | 0x7f.. => out.push_str(&format!("%{byte:02X}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

fn percent_decode(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &tail[2..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[derive(Deserialize)]
struct WireFailure {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: String,
}

impl WireFailure {
    fn into_failure(self, otherwise: Code) -> Failure {
        let known = |name: &String| Code::all().find(|code| code.as_str() == name);
        let code = self.code.as_ref().and_then(known).unwrap_or(otherwise);
        Failure::new(code, self.message)
    }
}

/// Reads the answer of a unary call that failed. One that is not Connect's is understood by its status.
pub(crate) fn read_unary(status: StatusCode, body: &[u8]) -> Failure {
    let otherwise = by_status(status);
    match serde_json::from_slice::<WireFailure>(body) {
        Ok(wire) if wire.code.is_some() => wire.into_failure(otherwise),
        _ => Failure::new(
            otherwise,
            format!("the server answered with HTTP status {status}"),
        ),
    }
}

/// What the envelope that ends a Connect stream says.
pub(crate) fn read_end(payload: &[u8]) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct End {
        #[serde(default)]
        error: Option<WireFailure>,
    }
    match serde_json::from_slice::<End>(payload) {
        Ok(End { error: None }) => Ok(()),
        Ok(End { error: Some(wire) }) => Err(wire.into_failure(Code::Unknown)),
        Err(error) => {
            let message = format!("the end of the stream is not understood: {error}");
            Err(Failure::new(Code::Unknown, message))
        }
    }
}

/// What the trailers of a gRPC call say; `None` if they say nothing.
pub(crate) fn read_grpc(trailers: &HeaderMap) -> Option<Result<(), Failure>> {
    let status = trailers.get(&GRPC_STATUS)?;
    let number = status
        .to_str()
        .ok()
        .and_then(|text| text.trim().parse().ok());
    let message = trailers.get(&GRPC_MESSAGE).map(HeaderValue::as_bytes);
    Some(
        match number.map_or(Some(Code::Unknown), Code::from_number) {
            None => Ok(()),
            Some(code) => Err(Failure::new(
                code,
                percent_decode(message.unwrap_or_default()),
            )),
        },
    )
}

/// Reads the payload of the last envelope of gRPC-Web.
pub(crate) fn read_grpc_web(payload: &Bytes) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    for line in payload.split(|byte| *byte == b'\n') {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            trailers.append(name, value);
        }
    }
    trailers
}

fn by_status(status: StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502 | 503 | 504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_unary_failure_has_both_shapes() {
        let failure = Failure::no_clip("gh\"ost");
        assert_eq!(
            text(unary(&failure)),
            r#"{"code":"not_found","message":"Clip 'gh\"ost' not found","error":{"code":"NOT_FOUND","message":"Clip 'gh\"ost' not found"}}"#
        );
        let failure = Failure::new(Code::Unauthenticated, "token required");
        assert!(text(unary(&failure)).contains(r#""error":{"code":"PERMISSION_DENIED","#));
    }

    #[test]
    fn a_stream_ends_with_its_failure_and_its_trailers() {
        let mut trailers = HeaderMap::new();
        assert_eq!(text(end_of_stream(None, &trailers)), "{}");
        trailers.append("x-a", HeaderValue::from_static("1"));
        trailers.append("x-a", HeaderValue::from_static("2"));
        trailers.append("x-b", HeaderValue::from_static("\"3\""));
        let failure = Failure::new(Code::Aborted, "no");
        assert_eq!(
            text(end_of_stream(Some(&failure), &trailers)),
            r#"{"error":{"code":"aborted","message":"no"},"metadata":{"x-a":["1","2"],"x-b":["\"3\""]}}"#
        );
    }

    #[test]
    fn every_code_comes_back_from_every_form() {
        for code in Code::all() {
            let failure = Failure::new(code, "50 % of ünïcode\nand a line");
            let status = StatusCode::from_u16(code.http_status()).unwrap();
            assert_eq!(read_unary(status, &unary(&failure)), failure);
            assert_eq!(
                read_end(&end_of_stream(Some(&failure), &HeaderMap::new())),
                Err(failure.clone())
            );
            let mut trailers = HeaderMap::new();
            grpc(Some(&failure), &mut trailers);
            assert!(trailers[&GRPC_MESSAGE].to_str().is_ok());
            assert_eq!(read_grpc(&trailers), Some(Err(failure.clone())));
            let trailers = read_grpc_web(&grpc_web(&trailers).into());
            assert_eq!(read_grpc(&trailers), Some(Err(failure)));
        }
        assert_eq!(read_grpc(&HeaderMap::new()), None);
    }

    #[test]
    fn answers_of_strangers_are_understood_by_their_status() {
        let code = |status: u16, body: &str| {
            read_unary(StatusCode::from_u16(status).unwrap(), body.as_bytes()).code
        };
        assert_eq!(code(401, "<html>"), Code::Unauthenticated);
        assert_eq!(code(404, ""), Code::Unimplemented);
        assert_eq!(code(502, r#"{"error":"upstream"}"#), Code::Unavailable);
        assert_eq!(code(302, ""), Code::Unknown);
        assert_eq!(
            code(400, r#"{"code":"novel","message":"m"}"#),
            Code::Internal
        );
        assert_eq!(percent_decode(b"100% %zz %4"), "100% %zz %4");
    }
}
