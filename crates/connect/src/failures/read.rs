//! Reads failures, statuses and trailers from the end of a call.

use base64::Engine;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use pinion_status::{Code, Detail, Failure};
use pinion_text::percent;
use serde::Deserialize;
use serde_json::Value;

use super::{GRPC_DETAILS, GRPC_MESSAGE, GRPC_STATUS, STANDARD, status};

/// A failure in Connect's JSON form.
#[derive(Deserialize)]
struct WireFailure {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    details: Option<Vec<Value>>,
}

impl WireFailure {
    fn into_failure(self, otherwise: Code) -> Failure {
        let known = |name: &String| Code::all().find(|code| code.as_str() == name);
        let code = self.code.as_ref().and_then(known).unwrap_or(otherwise);
        let mut failure = Failure::new(code, self.message.unwrap_or_default());
        failure.details = self.details.iter().flatten().filter_map(detail).collect();
        failure
    }
}

/// Reads one detail; ignores a detail that cannot be read.
fn detail(detail: &Value) -> Option<Detail> {
    let value = STANDARD.decode(detail["value"].as_str()?).ok()?;
    let type_name = detail["type"].as_str()?.to_owned();
    Some(Detail { type_name, value })
}

/// Reads the answer of a unary call that failed. If the body is not Connect's, the HTTP status decides the code.
pub(crate) fn read_unary(status: StatusCode, body: &[u8]) -> Failure {
    let otherwise = by_status(status);
    match serde_json::from_slice::<WireFailure>(body) {
        Ok(wire) if wire.code.is_some() || wire.message.is_some() => wire.into_failure(otherwise),
        _ => Failure::new(
            otherwise,
            format!("the server answered with HTTP status {status}"),
        ),
    }
}

/// Reads the envelope that ends a Connect stream: the result of the call, and its trailers.
pub(crate) fn read_end(payload: &[u8]) -> (Result<(), Failure>, HeaderMap) {
    #[derive(Deserialize)]
    struct End {
        #[serde(default)]
        error: Option<WireFailure>,
        #[serde(default)]
        metadata: Option<std::collections::BTreeMap<String, Vec<String>>>,
    }
    let end = match serde_json::from_slice::<End>(payload) {
        Ok(end) => end,
        Err(error) => {
            let message = format!("the end of the stream is malformed: {error}");
            return (Err(Failure::new(Code::Unknown, message)), HeaderMap::new());
        }
    };
    let mut trailers = HeaderMap::new();
    for (name, values) in end.metadata.iter().flatten() {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        for value in values
            .iter()
            .filter_map(|value| HeaderValue::from_str(value).ok())
        {
            trailers.append(name.clone(), value);
        }
    }
    let result = match end.error {
        None => Ok(()),
        Some(wire) => Err(wire.into_failure(Code::Unknown)),
    };
    (result, trailers)
}

/// Reads the status in the trailers of a gRPC call; `None` if there is none.
pub(crate) fn read_grpc(trailers: &HeaderMap) -> Option<Result<(), Failure>> {
    let number = trailers.get(&GRPC_STATUS)?.to_str().ok();
    let number = number.and_then(|text| text.trim().parse().ok());
    let Some(code) = number.map_or(Some(Code::Unknown), Code::from_number) else {
        return Some(Ok(()));
    };
    let message = trailers.get(&GRPC_MESSAGE).map(HeaderValue::as_bytes);
    let message = percent::decode(message.unwrap_or_default());
    let mut failure = Failure::new(code, String::from_utf8_lossy(&message).into_owned());
    let details = trailers.get(&GRPC_DETAILS);
    let details = details.and_then(|value| STANDARD.decode(value.as_bytes()).ok());
    failure.details = details
        .map(|bytes| status::read(&bytes))
        .unwrap_or_default();
    Some(Err(failure))
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

/// Returns the code for an HTTP status outside the protocols.
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
