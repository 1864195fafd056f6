//! The portal: web pages about the hub, baked into the program, and the few plain routes they need besides its methods.
//!
//! The files are those of the directory `portal` at the root of the project, as they are. This module serves them and, in
//! [`access`], exchanges tokens for sessions and keeps tokens. It holds no page of its own and knows no clip.

mod access;
mod assets;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Body as _;
use pinion_connect::Body;

pub(crate) use access::{Visitor, answer, is_access, token_in};
use assets::Asset;

/// What pages may load and do: their own scripts and styles, pictures in results, and the hub. No markup from data, not even
/// by mistake.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

const FILES: &str = "/portal/";
const INDEX: &str = "index.html";
const ICON: &str = "icon.svg";

/// The file that a request for a page means, if it means one: its own files, and the start page for every other path that does
/// not look like a file.
pub(crate) fn page(parts: &Parts) -> Option<Response<Body>> {
    let path = parts.uri.path();
    let name = match path.strip_prefix(FILES) {
        Some(name) if !name.is_empty() => name,
        // Browsers ask for it whatever page they show, those of clips too.
        _ if path == "/favicon.ico" => ICON,
        _ if path
            .rsplit('/')
            .next()
            .is_some_and(|last| last.contains('.')) =>
        {
            return None;
        }
        _ => INDEX,
    };
    let asset = Asset::named(name)?;
    Some(present(asset, parts))
}

fn present(asset: &Asset, parts: &Parts) -> Response<Body> {
    let etag = asset.etag();
    let known = parts.headers.get_all(header::IF_NONE_MATCH);
    let is_known = known
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|tag| matches!(tag.trim(), "*") || tag.trim().trim_start_matches("W/") == etag);
    let mut response = Response::new(match is_known {
        false => Body::from(Bytes::from_static(asset.content)),
        true => Body::empty(),
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if parts.method == Method::HEAD {
        leave_out_body(&mut response);
    }
    let headers = response.headers_mut();
    guard(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, POLICY);
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Answers HEAD: all that GET would say, and how long it would be.
pub(crate) fn leave_out_body(response: &mut Response<Body>) {
    let body = std::mem::take(response.body_mut());
    let has_length = response.status() != StatusCode::NOT_MODIFIED;
    if let Some(length) = body.size_hint().exact().filter(|_| has_length) {
        let length = HeaderValue::from(length);
        response
            .headers_mut()
            .insert(header::CONTENT_LENGTH, length);
    }
}

/// What every answer of the portal carries.
fn guard(headers: &mut HeaderMap) {
    let fixed = HeaderValue::from_static;
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff"));
    headers.insert(header::REFERRER_POLICY, fixed("no-referrer"));
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn ask(method: &str, path: &str, known: Option<&str>) -> Option<Response<Body>> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        page(&request.body(()).unwrap().into_parts().0)
    }

    fn kind(response: &Response<Body>) -> &str {
        response.headers()[header::CONTENT_TYPE].to_str().unwrap()
    }

    #[test]
    fn paths_without_a_dot_are_the_start_page() {
        for path in ["/", "/anything", "/portal", "/portal/", "/a/b/c?x=1.2"] {
            let response = ask("GET", path, None).expect(path);
            assert_eq!(kind(&response), "text/html; charset=utf-8", "{path}");
        }
        for path in [
            "/portal/missing.js",
            "/portal/views/none",
            "/portal/../portal.css",
            "/a/b.html",
        ] {
            assert!(ask("GET", path, None).is_none(), "{path}");
        }
    }

    #[test]
    fn files_have_their_types_and_are_guarded() {
        for (path, expected) in [
            ("/portal/app.js", "text/javascript; charset=utf-8"),
            ("/portal/views/clips.js", "text/javascript; charset=utf-8"),
            ("/portal/portal.css", "text/css; charset=utf-8"),
            ("/portal/icon.svg", "image/svg+xml"),
            ("/favicon.ico", "image/svg+xml"),
        ] {
            let response = ask("GET", path, None).expect(path);
            assert_eq!(kind(&response), expected);
            let headers = response.headers();
            assert_eq!(headers[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
            assert_eq!(headers[header::REFERRER_POLICY], "no-referrer");
            let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().unwrap();
            assert!(policy.starts_with("default-src 'none'; script-src 'self';"));
            assert!(!policy.contains("unsafe"));
        }
    }

    #[test]
    fn a_file_the_browser_has_is_not_sent_again() {
        let first = ask("GET", "/portal/app.js", None).unwrap();
        let etag = first.headers()[header::ETAG].to_str().unwrap().to_owned();
        for known in [
            etag.clone(),
            format!("\"x\", {etag}"),
            format!("W/{etag}"),
            "*".into(),
        ] {
            let again = ask("GET", "/portal/app.js", Some(&known)).unwrap();
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert_eq!(again.headers()[header::ETAG], etag.as_str());
        }
        let other = ask("GET", "/portal/app.js", Some("\"x\"")).unwrap();
        assert_eq!(other.status(), StatusCode::OK);
    }
}
