//! Encodes failures in the form of each protocol and reads them back.

mod read;
mod status;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD_NO_PAD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};
use http::{HeaderMap, HeaderName, HeaderValue};
use pinion_status::{Detail, Failure};

pub(crate) use read::{read_end, read_grpc, read_grpc_web, read_unary};

static GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
static GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
static GRPC_DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Decodes base64 with or without padding.
const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
/// The base64 alphabet of headers and JSON.
const STANDARD: GeneralPurpose = GeneralPurpose::new(&base64::alphabet::STANDARD, ANY_PADDING);
/// The base64 alphabet of URLs.
pub(crate) const URL_SAFE: GeneralPurpose =
    GeneralPurpose::new(&base64::alphabet::URL_SAFE, ANY_PADDING);

/// Returns the body of a unary Connect answer that failed, in Connect's own form.
///
/// ```
/// use pinion_connect::{Code, Failure, error_body};
///
/// let body = error_body(&Failure::new(Code::NotFound, "no such clip"));
/// assert_eq!(body, br#"{"code":"not_found","message":"no such clip"}"#);
/// ```
pub fn error_body(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + failure.message.len());
    object(&mut out, failure);
    out
}

/// Returns the payload of the envelope that ends a Connect stream.
pub(crate) fn end_of_stream(failure: Option<&Failure>, trailers: &HeaderMap) -> Vec<u8> {
    let mut out = vec![b'{'];
    if let Some(failure) = failure {
        out.extend_from_slice(b"\"error\":");
        object(&mut out, failure);
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

/// Adds the status of a gRPC call to its trailers.
pub(crate) fn grpc(failure: Option<&Failure>, trailers: &mut HeaderMap) {
    let number = failure.map_or(0, |failure| u16::from(failure.code.number()));
    trailers.insert(&GRPC_STATUS, HeaderValue::from(number));
    let Some(failure) = failure else { return };
    if let Ok(message) = HeaderValue::try_from(percent_encode(&failure.message)) {
        trailers.insert(&GRPC_MESSAGE, message);
    }
    if failure.details.is_empty() {
        return;
    }
    if let Ok(status) = HeaderValue::try_from(STANDARD_NO_PAD.encode(status::write(failure))) {
        trailers.insert(&GRPC_DETAILS, status);
    }
}

/// Encodes trailers as the payload of the last envelope of gRPC-Web.
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

/// Writes a failure as Connect's JSON object.
fn object(out: &mut Vec<u8>, failure: &Failure) {
    out.extend_from_slice(b"{\"code\":\"");
    out.extend_from_slice(failure.code().as_bytes());
    out.extend_from_slice(b"\",\"message\":");
    quote(out, &failure.message);
    if !failure.details.is_empty() {
        out.extend_from_slice(b",\"details\":[");
        for Detail { type_name, value } in &failure.details {
            out.extend_from_slice(b"{\"type\":");
            quote(out, type_name);
            out.extend_from_slice(b",\"value\":");
            quote(out, &STANDARD_NO_PAD.encode(value));
            out.extend_from_slice(b"},");
        }
        close(out, b"]");
    }
    out.push(b'}');
}

fn quote(out: &mut Vec<u8>, text: &str) {
    // Writing text into memory cannot fail.
    let _ = serde_json::to_writer(out, text);
}

/// Ends a list or an object: removes the trailing comma, if there is one.
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

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use pinion_status::Code;

    use super::*;

    fn text(bytes: Vec<u8>) -> String {
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_unary_failure_is_connects_own_object() {
        let failure = Failure::no_clip("gh\"ost");
        assert_eq!(
            text(error_body(&failure)),
            r#"{"code":"not_found","message":"Clip 'gh\"ost' not found"}"#
        );
        let failure = failure.with_detail("a.B", *b"\xff\xfe");
        assert_eq!(
            text(error_body(&failure)),
            r#"{"code":"not_found","message":"Clip 'gh\"ost' not found","details":[{"type":"a.B","value":"//4"}]}"#
        );
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
            let failure = Failure::new(code, "50 % of ünïcode\nand a line")
                .with_detail("google.rpc.RetryInfo", *b"\x0a\x02\x08\x01")
                .with_detail("a.Empty", []);
            let status = StatusCode::from_u16(code.http_status()).unwrap();
            assert_eq!(read_unary(status, &error_body(&failure)), failure);
            let mut trailers = HeaderMap::new();
            trailers.append("x-a", HeaderValue::from_static("1"));
            trailers.append("x-a", HeaderValue::from_static("2"));
            assert_eq!(
                read_end(&end_of_stream(Some(&failure), &trailers)),
                (Err(failure.clone()), trailers.clone())
            );
            grpc(Some(&failure), &mut trailers);
            assert!(trailers[&GRPC_MESSAGE].to_str().is_ok());
            assert_eq!(read_grpc(&trailers), Some(Err(failure.clone())));
            let trailers = read_grpc_web(&grpc_web(&trailers).into());
            assert_eq!(read_grpc(&trailers), Some(Err(failure)));
        }
        assert_eq!(read_grpc(&HeaderMap::new()), None);
        let mut trailers = HeaderMap::new();
        trailers.insert(&GRPC_STATUS, HeaderValue::from_static("2"));
        trailers.insert(&GRPC_MESSAGE, HeaderValue::from_static("100%+f %20%zz"));
        let failure = Failure::new(Code::Unknown, "100%+f  %zz");
        assert_eq!(read_grpc(&trailers), Some(Err(failure)));
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
    }
}
