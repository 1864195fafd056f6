//! The hub's answers over plain HTTP: the pages for monitoring, the web pages of clips, and the portal.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use pinion_access as access;
use pinion_clip::web::{ByteRange, WebAnswer, WebRequest, content_range, decode_path, parse_range};
use pinion_connect::{Body, IncomingBody, Peer, authority};
use pinion_status::{Code, Failure};

use crate::table::{Owner, Route};
use crate::{Hub, monitoring, portal};

const CLIPS: &str = "/clips/";
/// A path segment behind an alias that is ignored: the pages are the same with it and without.
const WEB_SEGMENT: &str = "web";
/// Pages of remote providers come from the hub's address and could act with the rights of the person who opens them.
/// The sandbox gives them an origin of their own.
const SANDBOX: HeaderValue =
    HeaderValue::from_static("sandbox allow-scripts allow-forms allow-popups allow-downloads");

pub(crate) async fn answer(
    hub: &Hub,
    request: Request<IncomingBody>,
    peer: &Peer,
) -> Response<Body> {
    let path = request.uri().path();
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    if !is_read && !portal::is_access(path) {
        return refusal(method_not_allowed(request.method()));
    }
    if let Some(page) = monitoring::page_of(path) {
        return monitoring::answer(hub, page, request, peer).await;
    }
    if path == "/cluster" && hub.neighbours().is_some() {
        let (parts, _) = request.into_parts();
        return cluster_report(hub, &parts, peer)
            .await
            .unwrap_or_else(refusal);
    }
    if path == "/clips" || path.starts_with(CLIPS) {
        let (parts, _) = request.into_parts();
        let mut response = clip_page(hub, &parts, peer).await.unwrap_or_else(refusal);
        if parts.method == Method::HEAD {
            portal::leave_out_body(&mut response);
        }
        return response;
    }
    if portal::is_access(path) {
        let answer = access_route(hub, request, peer).await;
        return answer.unwrap_or_else(|failure| refusal(failure.into()));
    }
    let (parts, _) = request.into_parts();
    if let Some(response) = alternative_address(hub, &parts, peer).await {
        return response;
    }
    portal::page(&parts).unwrap_or_else(|| {
        let message = format!("there is no {} {}", parts.method, parts.uri.path());
        refusal(Failure::new(Code::NotFound, message).into())
    })
}

/// Serves the report of the cluster, to callers with all rights.
async fn cluster_report(
    hub: &Hub,
    parts: &http::request::Parts,
    peer: &Peer,
) -> Result<Response<Body>, Refusal> {
    let own = authority(&parts.uri, &parts.headers);
    let caller = hub.admit(&parts.headers, own, peer).await?;
    caller.may_read_system_log()?;
    let report = hub.neighbours().map(|neighbours| neighbours.report());
    let report = report.unwrap_or_default().to_string();
    let mut response = Response::new(Body::from(report));
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    let uncached = HeaderValue::from_static("no-store");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, uncached);
    Ok(response)
}

/// Serves the routes of sessions and tokens, whose bodies are short.
async fn access_route(
    hub: &Hub,
    request: Request<IncomingBody>,
    peer: &Peer,
) -> Result<Response<Body>, Failure> {
    const MAX_BODY_BYTES: usize = 16 * 1024;
    const BODY_TIMEOUT: Duration = Duration::from_secs(10);
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, MAX_BODY_BYTES).collect())
        .await
        .map_err(|_| {
            Failure::new(
                Code::DeadlineExceeded,
                "the request body did not arrive in time",
            )
        })?
        .map_err(|error| Failure::invalid(format!("the request cannot be read: {error}")))?;
    let visitor = portal::Visitor {
        peer: hub.visitor(&parts.headers, authority(&parts.uri, &parts.headers), peer),
        transport: if peer.secure {
            access::Transport::Tls
        } else {
            access::Transport::Plain
        },
    };
    let request = Request::from_parts(parts, body.to_bytes());
    hub.recognise(portal::token_in(&request).as_deref()).await?;
    let neighbours = hub.neighbours().map(|neighbours| &**neighbours);
    portal::answer(hub.gate(), neighbours, &request, visitor).await
}

/// An error answer.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// The length of the file whose requested range does not exist.
    total_size: Option<u64>,
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        let status = match failure.code {
            Code::OutOfRange => StatusCode::RANGE_NOT_SATISFIABLE,
            code => StatusCode::from_u16(code.http_status())
                .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
        };
        Self {
            status,
            code: failure.code.as_str(),
            message: failure.message.into_owned(),
            total_size: None,
        }
    }
}

/// The refusal of a method that would change a page.
fn method_not_allowed(method: &Method) -> Refusal {
    Refusal {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        message: format!("pages do not support {method}; use GET"),
        total_size: None,
    }
}

/// Converts a refusal to the documented error object.
pub(crate) fn refusal(refusal: Refusal) -> Response<Body> {
    let error = serde_json::json!({
        "error": {"message": refusal.message, "code": refusal.code}
    });
    let mut response = text(refusal.status, "application/json", &format!("{error}\n"));
    let headers = response.headers_mut();
    match refusal.status {
        StatusCode::UNAUTHORIZED => {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        StatusCode::METHOD_NOT_ALLOWED => {
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, OPTIONS"));
        }
        _ => {}
    }
    let range = refusal
        .total_size
        .map(|total_size| format!("bytes */{total_size}"));
    if let Some(Ok(range)) = range.map(HeaderValue::try_from) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    response
}

pub(crate) fn text(status: StatusCode, kind: &'static str, text: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn clip_page(
    hub: &Hub,
    parts: &http::request::Parts,
    peer: &Peer,
) -> Result<Response<Body>, Refusal> {
    let path = parts.uri.path();
    let missing = || Failure::new(Code::NotFound, format!("there is nothing at {path}"));
    let rest = path.strip_prefix(CLIPS).ok_or_else(missing)?;
    let (alias, file) = rest
        .split_once('/')
        .map_or((rest, None), |(alias, file)| (alias, Some(file)));
    let own = authority(&parts.uri, &parts.headers);
    let caller = hub.admit(&parts.headers, own, peer).await?;
    let route = hub.find(&caller, access::Method::GetClipWeb, alias)?;
    let file = match file {
        None | Some(WEB_SEGMENT) => return Ok(redirect(parts, alias, "")),
        Some(file) => match file.strip_prefix(WEB_SEGMENT) {
            Some(file) if file.starts_with('/') => &file[1..],
            _ => file,
        },
    };
    let field = |name| {
        parts
            .headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok())
    };
    let range = field(header::RANGE).map(parse_range).transpose()?;
    let request = WebRequest {
        path: decode_path(file).ok_or_else(missing)?,
        if_none_match: field(header::IF_NONE_MATCH).unwrap_or_default().to_owned(),
        offset: range.map_or(0, |range| range.offset),
        length: range.map_or(0, |range| range.length),
    };
    let page = match web_file(&route, request.clone()).await {
        Err(failure) if failure.code == Code::OutOfRange => {
            let start = WebRequest {
                offset: 0,
                length: 1,
                ..request
            };
            let total_size = web_file(&route, start).await.map(|page| page.total_size);
            return Err(Refusal {
                total_size: total_size.ok(),
                ..failure.into()
            });
        }
        page => page?,
    };
    let mut response = present(page, range);
    let is_foreign = matches!(route.owner, Owner::Session(_) | Owner::Hub(_));
    if is_foreign && !hub.settings().trusts_provider_pages {
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    }
    Ok(response)
}

/// Reads a web file of a clip. A clip without web files is treated like one whose file does not exist.
pub(crate) async fn web_file(route: &Route, request: WebRequest) -> Result<WebAnswer, Failure> {
    let page = route.endpoint.web(request).await;
    page.map_err(|failure| match failure.code {
        Code::Unimplemented => {
            let message = format!("clip \"{}\" web unavailable", route.alias);
            Failure::new(Code::NotFound, message)
        }
        _ => failure,
    })
}

/// Redirects `/<alias>/web/…`, where some clients look for pages. A caller that may not see the clip gets the same
/// answer as for any unknown address.
async fn alternative_address(
    hub: &Hub,
    parts: &http::request::Parts,
    peer: &Peer,
) -> Option<Response<Body>> {
    let (alias, rest) = parts.uri.path().strip_prefix('/')?.split_once('/')?;
    let rest = rest.strip_prefix(WEB_SEGMENT)?;
    let file = match rest {
        "" => "",
        rest => rest.strip_prefix('/')?,
    };
    let own = authority(&parts.uri, &parts.headers);
    let caller = hub.admit(&parts.headers, own, peer).await.ok()?;
    let route = hub.find(&caller, access::Method::GetClipWeb, alias).ok()?;
    Some(redirect(parts, &route.alias, file))
}

/// Redirects to the page under the clip's alias. The slash behind the alias is required by relative addresses in pages.
fn redirect(parts: &http::request::Parts, alias: &str, file: &str) -> Response<Body> {
    let query = parts
        .uri
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    if let Ok(place) = HeaderValue::from_str(&format!("{CLIPS}{alias}/{file}{query}")) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

fn present(page: WebAnswer, range: Option<ByteRange>) -> Response<Body> {
    let mut headers = HeaderMap::new();
    let mut set = |name, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::ETAG, &page.etag);
    set(header::ACCEPT_RANGES, "bytes");
    set(header::CACHE_CONTROL, "no-cache");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    let mut status = StatusCode::OK;
    if page.not_modified {
        status = StatusCode::NOT_MODIFIED;
    } else {
        set(header::CONTENT_TYPE, &page.content_type);
        let length = page.content.len() as u64;
        let part = range.filter(|_| !page.is_fallback);
        if let Some(part) = part.and_then(|it| content_range(it.offset, length, page.total_size)) {
            set(header::CONTENT_RANGE, &part);
            status = StatusCode::PARTIAL_CONTENT;
        }
    }
    let mut response = Response::new(Body::from(page.content));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
