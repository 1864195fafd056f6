//! The portal: web pages about the hub, built into the program, and the plain HTTP routes they need besides its
//! methods.
//!
//! The files are those of the directory `portal` at the root of the project, unchanged. This module serves them;
//! [`access`] exchanges tokens for sessions and manages tokens. It contains no page of its own and no knowledge of
//! clips.

mod access;
mod assets;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use hyper::body::Body as _;
use pinion_connect::Body;

pub(crate) use access::{Visitor, answer, is_access, token_in};
use assets::Asset;

/// Pages may load their own scripts and styles, show pictures in results, and call the hub. Trusted types prevent data
/// from becoming markup even if a script contains a mistake.
const CONTENT_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; \
     base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
);

const FILES: &str = "/portal/";
const INDEX: &str = "index.html";
const ICON: &str = "icon.svg";

/// Answers with the file that a request names: a file of the portal, or the start page for every other path that does
/// not look like a file.
pub(crate) fn page(parts: &Parts) -> Option<Response<Body>> {
    let path = parts.uri.path();
    let name = match path.strip_prefix(FILES) {
        Some(name) if !name.is_empty() => name,
        // Browsers request it for every page, including those of clips.
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
    let mut response = Response::new(if is_known {
        Body::empty()
    } else {
        Body::from(Bytes::from_static(asset.content))
    });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else if parts.method == Method::HEAD {
        leave_out_body(&mut response);
    }
    let headers = response.headers_mut();
    add_security_headers(headers);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(asset.kind()));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, CONTENT_POLICY);
    if let Ok(etag) = HeaderValue::from_str(etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Turns the answer to GET into that to HEAD: the headers stay, with the length of the body.
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

/// Adds the headers of every answer of the portal.
fn add_security_headers(headers: &mut HeaderMap) {
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
