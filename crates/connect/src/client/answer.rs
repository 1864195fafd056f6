//! The head of an answer: whether it is one, and how a call ended that failed at once.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;
use pinion_status::{Code, Failure};

use super::Inner;
use crate::arriving::Arriving;
use crate::failures;
use crate::inbound::{Inbound, Side};
use crate::protocol::{Protocol, Speech};

/// Bytes of an answer that is an error are read up to here.
const WORDS: usize = 256 * 1024;

/// An answer whose head was read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) headers: HeaderMap,
    /// Trailers that came with the head.
    pub(super) trailers: HeaderMap,
    /// The messages, unless the call failed at once.
    pub(super) messages: Result<Inbound, Failure>,
}

impl Inner {
    /// Reads the head of an answer; its messages follow, unless it is an error.
    pub(super) async fn read_head(&self, response: Response<Incoming>, speech: Speech) -> Answer {
        let (parts, body) = response.into_parts();
        let body = Arriving::answer(body);
        let mut headers = parts.headers;
        let mut trailers = HeaderMap::new();
        if !speech.enveloped {
            trailers = take_trailers(&mut headers);
        }
        let is_all = body.is_end_stream();
        let messages = if parts.status == StatusCode::OK {
            self.messages(&headers, body, speech)
        } else {
            Err(self.refused(parts.status, &headers, body, speech).await)
        };
        // A gRPC call that failed at once says so in its headers, which are its trailers then.
        if speech.protocol != Protocol::Connect
            && is_all
            && messages.is_ok()
            && let Some(Err(failure)) = failures::read_grpc(&headers)
        {
            return Answer {
                trailers: headers.clone(),
                headers,
                messages: Err(failure),
            };
        }
        Answer {
            headers,
            trailers,
            messages,
        }
    }

    /// The failure of an answer with an HTTP status other than 200.
    async fn refused(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        body: Arriving,
        speech: Speech,
    ) -> Failure {
        if speech.enveloped
            && let Some(Err(failure)) = failures::read_grpc(headers)
        {
            return failure;
        }
        let gzip = headers
            .get(CONTENT_ENCODING)
            .is_some_and(|value| value == "gzip");
        let mut words = Inbound::new(body, gzip, WORDS, None, Side::Answer);
        let words = words.bare().await.unwrap_or_default();
        failures::read_unary(status, &words)
    }

    /// The messages of an answer that is one.
    fn messages(
        &self,
        headers: &HeaderMap,
        body: Arriving,
        speech: Speech,
    ) -> Result<Inbound, Failure> {
        let kind = headers.get(CONTENT_TYPE);
        let spoken = kind.and_then(Speech::parse);
        if spoken != Some(speech) {
            let same = |spoken: Speech| {
                spoken.protocol == speech.protocol && spoken.enveloped == speech.enveloped
            };
            let code = if spoken.is_some_and(same) {
                Code::Internal
            } else {
                Code::Unknown
            };
            let kind = String::from_utf8_lossy(kind.map_or(b"", HeaderValue::as_bytes));
            let message = format!(
                "{} does not answer as {} is answered, but with {kind:?}; is this the right address?",
                self.address.authority,
                speech.content_type(),
            );
            return Err(Failure::new(code, message));
        }
        let name = speech.encoding_header();
        let gzip = match headers.get(name).map(HeaderValue::as_bytes) {
            None | Some(b"" | b"identity") => false,
            Some(b"gzip") => true,
            Some(other) => {
                let other = String::from_utf8_lossy(other);
                let message =
                    format!("the answer has the {name} {other:?}, which was not asked for");
                return Err(Failure::new(Code::Internal, message));
            }
        };
        let limit = self.options.message;
        Ok(Inbound::new(body, gzip, limit, None, Side::Answer))
    }
}

/// Takes the trailers out of the headers of a unary Connect answer.
fn take_trailers(headers: &mut HeaderMap) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let prefixed = |name: &&HeaderName| name.as_str().starts_with("trailer-");
    let names: Vec<HeaderName> = headers.keys().filter(prefixed).cloned().collect();
    for name in names {
        let Ok(plain) = HeaderName::try_from(&name.as_str()["trailer-".len()..]) else {
            continue;
        };
        for value in headers.get_all(&name) {
            trailers.append(plain.clone(), value.clone());
        }
        headers.remove(name);
    }
    trailers
}
