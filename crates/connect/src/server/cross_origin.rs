//! Checks the host name of a request and the origin of the web page that sent it.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HOST, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri};
use pinion_status::{Code, Failure};

use super::bare;
use super::options::{Origins, ServerOptions};
use crate::body::Body;

const METHODS: HeaderValue = HeaderValue::from_static("GET, POST, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Connect-Protocol-Version, Connect-Timeout-Ms, X-User-Agent, Grpc-Timeout, X-Grpc-Web",
);
const EXPOSED: HeaderValue = HeaderValue::from_static("Grpc-Status, Grpc-Message");

/// Rejects a request to a host name that is not the server's, or that other programs may parse differently.
pub(crate) fn check_host(options: &ServerOptions, parts: &Parts) -> Result<(), Failure> {
    if parts.headers.get_all(HOST).iter().count() > 1 {
        return Err(Failure::invalid(
            "the request has more than one Host header",
        ));
    }
    let asked = authority(&parts.uri, &parts.headers).unwrap_or_default();
    let name = without_port(asked)
        .ok_or_else(|| Failure::invalid(format!("{asked:?} is not a host name and a port")))?;
    let Some(hosts) = &options.hosts else {
        return Ok(());
    };
    if hosts.iter().any(|host| host.eq_ignore_ascii_case(name)) {
        return Ok(());
    }
    let message = format!("this server does not answer to the host name {name:?}");
    Err(Failure::new(Code::PermissionDenied, message))
}

/// Checks whether the web page that sent the request may call, and returns the value of `Access-Control-Allow-Origin`;
/// `None` if no header is needed.
pub(crate) fn check_origin(
    options: &ServerOptions,
    parts: &Parts,
) -> Result<Option<HeaderValue>, Failure> {
    let Some(origin) = parts.headers.get(ORIGIN) else {
        let any = options.origins == Origins::Any;
        return Ok(any.then(|| HeaderValue::from_static("*")));
    };
    let text = origin.to_str().unwrap_or_default();
    match &options.origins {
        Origins::Any => return Ok(Some(HeaderValue::from_static("*"))),
        Origins::Listed(list) if list.iter().any(|known| known == text) => {
            return Ok(Some(origin.clone()));
        }
        Origins::Listed(_) => {}
    }
    let own = authority(&parts.uri, &parts.headers);
    if own.is_some_and(|own| is_own_origin(text, own, options.tls.is_some())) {
        return Ok(Some(origin.clone()));
    }
    let message = format!("pages of {text:?} may not call this server");
    Err(Failure::new(Code::PermissionDenied, message))
}

/// Answers a browser's preflight request.
pub(crate) fn preflight(allowed: Option<HeaderValue>) -> Response<Body> {
    let mut response = bare(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("7200"));
    match allowed {
        Some(origin) => allow(headers, origin),
        None => {
            headers.insert(VARY, HeaderValue::from_static("Origin"));
        }
    }
    response
}

/// Permits the web page to read the answer.
pub(crate) fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// Returns the host name and port that a request addressed. HTTP/2 has no header for them.
pub fn authority<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    match uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => headers.get(HOST)?.to_str().ok(),
    }
}

/// Reports whether `origin` is the server itself, which the client addressed as `own` (host and port), over TLS or not.
pub fn is_own_origin(origin: &str, own: &str, secure: bool) -> bool {
    let scheme = if secure { "https" } else { "http" };
    origin.split_once("://").is_some_and(|(its, authority)| {
        its.eq_ignore_ascii_case(scheme) && authority.eq_ignore_ascii_case(own)
    })
}

/// Returns the name without the port; `None` if the text has other parts, such as a user.
fn without_port(authority: &str) -> Option<&str> {
    let bracket = authority.rfind(']').map_or(0, |at| at + 1);
    let (name, port) = match authority[bracket..].find(':') {
        Some(colon) => {
            let (name, port) = authority.split_at(bracket + colon);
            (name, &port[1..])
        }
        None => (authority, ""),
    };
    let is_plain = !name.contains(['@', '/', '\\', ' ', ',']);
    (is_plain && port.bytes().all(|byte| byte.is_ascii_digit())).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(host: &str, origin: Option<&str>) -> Parts {
        let mut request = http::Request::builder().header(HOST, host);
        if let Some(origin) = origin {
            request = request.header(ORIGIN, origin);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn only_names_of_the_server_are_answered() {
        let options = ServerOptions::default().loopback_and(["hub.example"]);
        let check = |host| check_host(&options, &parts(host, None)).is_ok();
        for own in [
            "localhost",
            "LOCALHOST:9000",
            "127.0.0.1:9000",
            "[::1]:9000",
            "[::1]",
            "hub.example",
        ] {
            assert!(check(own), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.nip.io:9000",
            "",
            "user@localhost",
            "localhost:80@evil.example",
            "localhost:9000:9000",
            "localhost, evil.example",
            "[::1].evil",
        ] {
            assert!(!check(other), "{other}");
        }
        assert!(check_host(&ServerOptions::default(), &parts("evil.example", None)).is_ok());
    }

    #[test]
    fn a_name_that_can_be_read_in_two_ways_is_refused_by_every_server() {
        let options = ServerOptions::default();
        let code = |parts: &Parts| check_host(&options, parts).unwrap_err().code;
        for unclear in ["user@localhost", "localhost:80@evil.example", "a b"] {
            assert_eq!(
                code(&parts(unclear, None)),
                Code::InvalidArgument,
                "{unclear}"
            );
        }
        let mut twice = parts("localhost", None);
        twice
            .headers
            .append(HOST, HeaderValue::from_static("localhost"));
        assert_eq!(code(&twice), Code::InvalidArgument);
    }

    #[test]
    fn only_pages_of_the_server_and_listed_ones_may_ask() {
        let mut options = ServerOptions {
            origins: Origins::Listed(vec!["https://app.example".into()]),
            ..ServerOptions::default()
        };
        let check = |options: &ServerOptions, origin: &str| {
            check_origin(options, &parts("127.0.0.1:9000", Some(origin)))
                .ok()
                .flatten()
        };
        assert_eq!(check_origin(&options, &parts("x", None)), Ok(None));
        for fine in ["https://app.example", "http://127.0.0.1:9000"] {
            assert_eq!(check(&options, fine).unwrap(), fine);
        }
        for foreign in [
            "http://app.example",
            "https://app.example.evil",
            "null",
            "http://127.0.0.1:9001",
            "http://127.0.0.1",
            "https://127.0.0.1:9000",
            "127.0.0.1:9000",
            "",
        ] {
            assert_eq!(check(&options, foreign), None, "{foreign}");
        }
        options.origins = Origins::Any;
        assert_eq!(check(&options, "https://evil.example").unwrap(), "*");
    }
}
