//! What the hub answers over plain HTTP: whether it is well, the web pages of clips, and the portal.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use pinion_access as access;
use pinion_clip::web::{ByteRange, WebAnswer, WebRequest, content_range, decode_path, parse_range};
use pinion_connect::{Body, IncomingBody, Peer, authority};
use pinion_status::{Code, Failure};

use crate::table::{Owner, Route};
use crate::{Hub, portal};

const CLIPS: &str = "/clips/";
/// Behind an alias it means nothing: the pages are the same with it and without.
const SAME_TREE: &str = "web";
/// Pages of remote providers come from our address and would act with the rights of whoever looks at them. This makes them
/// strangers to it.
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
        return refusal(unreadable(request.method()));
    }
    if path == "/healthz" {
        return text(StatusCode::OK, "text/plain; charset=utf-8", "ok\n");
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
    if let Some(response) = other_spelling(hub, &parts, peer).await {
        return response;
    }
    portal::page(&parts).unwrap_or_else(|| {
        let message = format!("there is no {} {}", parts.method, parts.uri.path());
        refusal(Failure::new(Code::NotFound, message).into())
    })
}

/// Sessions and tokens. Their bodies are short.
async fn access_route(
    hub: &Hub,
    request: Request<IncomingBody>,
    peer: &Peer,
) -> Result<Response<Body>, Failure> {
    const LONGEST: usize = 16 * 1024;
    const SLOWEST: Duration = Duration::from_secs(10);
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(SLOWEST, Limited::new(body, LONGEST).collect())
        .await
        .map_err(|_| Failure::new(Code::DeadlineExceeded, "the request does not end"))?
        .map_err(|error| Failure::invalid(format!("the request cannot be read: {error}")))?;
    let visitor = portal::Visitor {
        peer: hub.visitor(&parts.headers, authority(&parts.uri, &parts.headers), peer),
        transport: match peer.secure {
            true => access::Transport::Tls,
            false => access::Transport::Plain,
        },
    };
    let request = Request::from_parts(parts, body.to_bytes());
    hub.recognise(portal::token_in(&request).as_deref()).await?;
    portal::answer(hub.gate(), &request, visitor)
}

/// Why there is no page.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    /// How long the file is of which a part was wanted that it does not have.
    whole: Option<u64>,
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
            whole: None,
        }
    }
}

/// That something which can only be read was to be changed.
fn unreadable(method: &Method) -> Refusal {
    Refusal {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        message: format!("pages are read with GET, not {method}"),
        whole: None,
    }
}

/// A refusal as the documented error object.
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
    let range = refusal.whole.map(|whole| format!("bytes */{whole}"));
    if let Some(Ok(range)) = range.map(HeaderValue::try_from) {
        headers.insert(header::CONTENT_RANGE, range);
    }
    response
}

fn text(status: StatusCode, kind: &'static str, text: &str) -> Response<Body> {
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
        None | Some(SAME_TREE) => return Ok(moved(parts, alias, "")),
        Some(file) => match file.strip_prefix(SAME_TREE) {
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
            let whole = web_file(&route, start).await.map(|page| page.total_size);
            return Err(Refusal {
                whole: whole.ok(),
                ..failure.into()
            });
        }
        page => page?,
    };
    let mut response = present(page, range);
    let is_foreign = matches!(route.owner, Owner::Session(_));
    if is_foreign && !hub.settings().trusts_provider_pages {
        response
            .headers_mut()
            .insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    }
    Ok(response)
}

/// Reads a web file of a clip. One that has none is like one whose file is not there.
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

/// `/<alias>/web/…` is where some look for pages. Who may not see the clip is told what everybody is told of any address.
async fn other_spelling(
    hub: &Hub,
    parts: &http::request::Parts,
    peer: &Peer,
) -> Option<Response<Body>> {
    let (alias, rest) = parts.uri.path().strip_prefix('/')?.split_once('/')?;
    let rest = rest.strip_prefix(SAME_TREE)?;
    let file = match rest {
        "" => "",
        rest => rest.strip_prefix('/')?,
    };
    let own = authority(&parts.uri, &parts.headers);
    let caller = hub.admit(&parts.headers, own, peer).await.ok()?;
    let route = hub.find(&caller, access::Method::GetClipWeb, alias).ok()?;
    Some(moved(parts, &route.alias, file))
}

/// The pages of a clip stand under its alias; relative addresses in them need the slash.
fn moved(parts: &http::request::Parts, alias: &str, file: &str) -> Response<Body> {
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
