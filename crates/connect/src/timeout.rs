//! Time limits of calls and the headers that carry them.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use pinion_status::{Code, Failure};
use tokio::time::Instant;

use crate::protocol::Protocol;

static CONNECT: HeaderName = HeaderName::from_static("connect-timeout-ms");
static GRPC: HeaderName = HeaderName::from_static("grpc-timeout");

/// The time at which a call must end, and the limit it was computed from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    /// Counts from now. Create it before sending the request: the server counts from the arrival of the request, so its
    /// deadline is never earlier.
    pub(crate) fn of(limit: Duration) -> Option<Self> {
        let at = Instant::now().checked_add(limit)?;
        Some(Self { at, limit })
    }

    /// Runs `work` until the deadline.
    pub(crate) async fn limit<T>(
        self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let worked = tokio::time::timeout_at(self.at, work).await;
        let worked = worked.unwrap_or_else(|_| Err(timed_out(self.limit)));
        worked.map_err(|failure| self.explain(failure))
    }

    /// Replaces a lost connection or stream by the deadline that has passed. Servers reset streams at their deadline, and the
    /// reset may be read before the client's own timer fires. A failure that the server reported itself stays as it is.
    pub(crate) fn explain(self, failure: Failure) -> Failure {
        let is_lost = matches!(failure.code, Code::Unavailable | Code::Canceled)
            || failure.message == BROKEN_OFF;
        if is_lost && Instant::now() >= self.at {
            timed_out(self.limit)
        } else {
            failure
        }
    }

    pub(crate) fn at(self) -> Instant {
        self.at
    }

    pub(crate) fn timed_out(self) -> Failure {
        timed_out(self.limit)
    }
}

/// The message of a stream that ended without a status.
pub(crate) const BROKEN_OFF: &str = "the stream broke off before its end";

/// Reads the time limit of a request.
pub(crate) fn read(headers: &HeaderMap, protocol: Protocol) -> Result<Option<Duration>, Failure> {
    let name = header(protocol);
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default();
    let parsed = match protocol {
        Protocol::Connect => digits(text, 10).map(Duration::from_millis),
        Protocol::Grpc | Protocol::GrpcWeb => grpc(text),
    };
    let garbage = || Failure::invalid(format!("{name} {text:?} is not a time limit"));
    parsed.map(Some).ok_or_else(garbage)
}

/// Returns the header with this limit, in milliseconds rounded up, so that the server does not give up before the
/// client.
pub(crate) fn write(limit: Duration, protocol: Protocol) -> (&'static HeaderName, HeaderValue) {
    let millis = limit.as_nanos().div_ceil(1_000_000);
    let millis = u64::try_from(millis).unwrap_or(u64::MAX);
    let value = match protocol {
        Protocol::Connect => HeaderValue::from(millis.min(9_999_999_999)),
        _ if millis < 100_000_000 => text(format!("{millis}m")),
        _ => text(format!("{}S", millis.div_ceil(1000).min(99_999_999))),
    };
    (header(protocol), value)
}

/// The failure of a call that exceeded its time limit.
pub fn timed_out(limit: Duration) -> Failure {
    let millis = limit.as_millis();
    Failure::new(
        Code::DeadlineExceeded,
        format!("invocation timed out after {millis} ms"),
    )
}

fn header(protocol: Protocol) -> &'static HeaderName {
    match protocol {
        Protocol::Connect => &CONNECT,
        Protocol::Grpc | Protocol::GrpcWeb => &GRPC,
    }
}

fn text(text: String) -> HeaderValue {
    HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("99999999S"))
}

fn grpc(text: &str) -> Option<Duration> {
    let unit = text.as_bytes().last()?;
    let count = digits(text.get(..text.len() - 1)?, 8)?;
    match unit {
        b'H' => Some(Duration::from_secs(count * 3600)),
        b'M' => Some(Duration::from_secs(count * 60)),
        b'S' => Some(Duration::from_secs(count)),
        b'm' => Some(Duration::from_millis(count)),
        b'u' => Some(Duration::from_micros(count)),
        b'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

fn digits(text: &str, most: usize) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= most && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(
        name: &'static HeaderName,
        value: &str,
        protocol: Protocol,
    ) -> Result<Option<Duration>, Failure> {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        read(&headers, protocol)
    }

    #[test]
    fn limits_are_read_and_garbage_is_refused() {
        let connect = |value| of(&CONNECT, value, Protocol::Connect);
        assert_eq!(connect("2000"), Ok(Some(Duration::from_secs(2))));
        assert_eq!(connect("0"), Ok(Some(Duration::ZERO)));
        assert!(connect("9999999999").is_ok());
        for bad in ["", "-1", "+1", "1.5", "abc", "12345678901", "1 "] {
            assert_eq!(
                connect(bad).map_err(|f| f.code),
                Err(Code::InvalidArgument),
                "{bad}"
            );
        }
        let grpc = |value| of(&GRPC, value, Protocol::Grpc);
        assert_eq!(grpc("250m"), Ok(Some(Duration::from_millis(250))));
        assert_eq!(grpc("2H"), Ok(Some(Duration::from_secs(7200))));
        assert_eq!(
            grpc("99999999n"),
            Ok(Some(Duration::from_nanos(99_999_999)))
        );
        for bad in ["", "m", "1", "123456789S", "1x", "-1S", "é"] {
            assert_eq!(
                grpc(bad).map_err(|f| f.code),
                Err(Code::InvalidArgument),
                "{bad}"
            );
        }
    }

    #[test]
    fn parts_of_a_millisecond_are_rounded_up() {
        let written = |limit, protocol| write(limit, protocol).1;
        let limit = Duration::from_micros(200_001);
        assert_eq!(written(limit, Protocol::Connect), "201");
        assert_eq!(written(limit, Protocol::Grpc), "201m");
        let limit = Duration::from_millis(100_000_001);
        assert_eq!(written(limit, Protocol::Grpc), "100001S");
    }

    #[test]
    fn only_a_lost_call_is_explained_by_a_deadline_that_has_passed() {
        let passed = Deadline::of(Duration::ZERO).unwrap();
        let ahead = Deadline::of(Duration::from_secs(600)).unwrap();
        let lost = [
            Failure::new(Code::Unavailable, "the connection broke off"),
            Failure::new(Code::Canceled, "stream reset"),
            Failure::new(Code::Internal, BROKEN_OFF),
        ];
        for failure in lost {
            let code = passed.explain(failure.clone()).code;
            assert_eq!(code, Code::DeadlineExceeded, "{failure:?}");
            assert_eq!(ahead.explain(failure.clone()), failure);
        }
        for code in [Code::Internal, Code::Aborted, Code::NotFound] {
            let said = Failure::new(code, "by the server");
            assert_eq!(passed.explain(said.clone()), said);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for limit in [
            Duration::ZERO,
            Duration::from_millis(1500),
            Duration::from_secs(200_000),
        ] {
            for protocol in [Protocol::Connect, Protocol::Grpc] {
                let (name, value) = write(limit, protocol);
                assert_eq!(of(name, value.to_str().unwrap(), protocol), Ok(Some(limit)));
            }
        }
    }
}
