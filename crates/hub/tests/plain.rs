//! The portal's files, sessions and tokens over real HTTP, byte by byte and without a browser.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Answer, Running, request};
use pinion_access::Mode;
use pinion_connect::{Client, ClientOptions, Code, HttpVersion};
use pinion_hub::Settings;
use pinion_proto::hub::{ListClipsRequest, ListClipsResponse};
use serde_json::{Value, json};

const JSON: (&str, &str) = ("content-type", "application/json");
const LIST: &str = "/pinix.v2.HubService/ListClips";

fn ask(hub: &Running, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let (method, path) = line.split_once(' ').unwrap();
    request(hub.address, method, path, headers, body.as_bytes())
}

fn failure(answer: &Answer) -> (u16, String) {
    assert!(answer.body.ends_with(b"}\n"), "{answer:?}");
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(body["error"]["message"].is_string(), "{body}");
    let code = body["error"]["code"].as_str().unwrap().to_owned();
    (answer.status, code)
}

fn sign_in(hub: &Running) -> String {
    let body = json!({"token": hub.token}).to_string();
    let answer = ask(hub, "POST /auth/session", &[JSON], &body);
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let cookie = answer.header("set-cookie").unwrap();
    cookie.split(';').next().unwrap().to_owned()
}

#[test]
fn portal_files_are_public_and_contain_no_data() {
    let hub = Running::start(Mode::Secured);
    let page = ask(&hub, "GET /", &[], "");
    assert_eq!(page.status, 200);
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert!(!String::from_utf8_lossy(&page.body).contains(&hub.token));
    assert_eq!(ask(&hub, "GET /some/where", &[], "").body, page.body);

    let head = ask(&hub, "HEAD /portal/app.js", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    let etag = head.header("etag").unwrap();
    let known = ask(&hub, "GET /portal/app.js", &[("if-none-match", etag)], "");
    assert_eq!((known.status, known.body.len()), (304, 0));

    for line in ["GET /portal/none.js", "GET /etc/passwd.txt"] {
        assert_eq!(
            failure(&ask(&hub, line, &[], "")),
            (404, "not_found".into()),
            "{line}"
        );
    }
    for line in [
        "POST /",
        "PUT /foo",
        "POST /healthz",
        "DELETE /portal/app.js",
    ] {
        let refused = ask(&hub, line, &[], "");
        assert_eq!(
            failure(&refused),
            (405, "method_not_allowed".into()),
            "{line}"
        );
        assert_eq!(refused.header("allow"), Some("GET, OPTIONS"), "{line}");
    }
}

#[test]
fn clip_pages_are_served_at_all_their_addresses() {
    let hub = Running::start(Mode::Secured);
    let clip = common::python_clip(common::CLIP);
    std::fs::create_dir(clip.path().join("web")).unwrap();
    std::fs::write(clip.path().join("web/index.html"), "<p>start").unwrap();
    std::fs::write(clip.path().join("web/style.css"), "p{}").unwrap();
    hub.install("todo", clip.path());
    hub.install("bare", common::python_clip(common::CLIP).path());
    let bearer = format!("Bearer {}", hub.token);
    let me = [("authorization", bearer.as_str())];
    for path in ["/clips/todo/style.css", "/clips/todo/web/style.css"] {
        let page = ask(&hub, &format!("GET {path}"), &me, "");
        assert_eq!((page.status, page.body.as_slice()), (200, &b"p{}"[..]));
    }
    assert_eq!(ask(&hub, "GET /clips/todo/web/", &me, "").body, b"<p>start");
    for (from, to) in [
        ("/clips/todo", "/clips/todo/"),
        ("/clips/todo/web", "/clips/todo/"),
        ("/todo/web?a=1", "/clips/todo/?a=1"),
        ("/todo/web/", "/clips/todo/"),
        ("/todo/web/style.css", "/clips/todo/style.css"),
    ] {
        let moved = ask(&hub, &format!("GET {from}"), &me, "");
        assert_eq!((moved.status, moved.header("location")), (301, Some(to)));
    }
    // A caller that may not see the clip gets the answer for a clip that does not exist.
    for file in ["", "style.css"] {
        let there = ask(&hub, &format!("GET /todo/web/{file}"), &[], "");
        let nowhere = ask(&hub, &format!("GET /none/web/{file}"), &[], "");
        assert_eq!(there.status, nowhere.status);
        assert_eq!(there.header("location"), None);
    }

    let whole = ask(&hub, "HEAD /clips/todo/style.css", &me, "");
    assert_eq!((whole.status, whole.body.len()), (200, 0));
    assert_eq!(whole.header("content-length"), Some("3"));
    let beyond = [me[0], ("range", "bytes=99-")];
    let refused = ask(&hub, "GET /clips/todo/style.css", &beyond, "");
    assert_eq!(failure(&refused), (416, "out_of_range".into()));
    assert_eq!(refused.header("content-range"), Some("bytes */3"));

    let web = |alias: &str, offset: i64| {
        let headers = [me[0], JSON];
        let wanted = json!({"clip": alias, "path": "style.css", "offset": offset});
        let line = "POST /pinix.v2.HubService/GetClipWeb";
        let answer = ask(&hub, line, &headers, &wanted.to_string());
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, body["message"].as_str().map(str::to_owned))
    };
    assert_eq!(web("todo", 0), (200, None));
    assert_eq!(web("todo", 99).0, 400);
    let unavailable = "clip \"bare\" web unavailable";
    assert_eq!(web("bare", 0), (404, Some(unavailable.into())));
    let page = ask(&hub, "GET /clips/bare/", &me, "");
    assert_eq!(failure(&page), (404, "not_found".into()));
    assert!(String::from_utf8_lossy(&page.body).contains("web unavailable"));
}

#[test]
fn errors_of_a_call_are_reported_before_missing_rights() {
    let hub = Running::start(Mode::Secured);
    let invoke = |headers: &[(&str, &str)], body: &str| {
        let answer = ask(&hub, "POST /pinix.v2.HubService/Invoke", headers, body);
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        (answer.status, body["code"].as_str().unwrap().to_owned())
    };
    let bad = [JSON, ("authorization", "Bearer pnx_bad")];
    for headers in [&[JSON][..], &bad] {
        for wrong in ["{}", r#"{"clip":"todo"}"#, r#"{"command":"list"}"#, "{"] {
            let expected = (400, "invalid_argument".into());
            assert_eq!(invoke(headers, wrong), expected, "{wrong}");
        }
        let refused = (401, "unauthenticated".to_owned());
        let fine = r#"{"clip":"todo","command":"list"}"#;
        assert_eq!(invoke(headers, fine), refused);
        // The hub reads only the start of a request without a token.
        let long = format!("{{{}", " ".repeat(200_000));
        assert_eq!(invoke(headers, &long), refused);
    }
}

#[test]
fn a_session_calls_methods_only_from_the_hubs_own_pages() {
    let hub = Running::start(Mode::Secured);
    let cookie = sign_in(&hub);
    let with = |more: &[(&str, &str)]| {
        let mut headers = vec![JSON, ("cookie", cookie.as_str())];
        headers.extend(more);
        ask(&hub, &format!("POST {LIST}"), &headers, "{}").status
    };
    let own = format!("http://{}", hub.address);
    assert_eq!(with(&[]), 200);
    assert_eq!(
        with(&[("origin", &own), ("sec-fetch-site", "same-origin")]),
        200
    );
    assert_eq!(with(&[("sec-fetch-site", "cross-site")]), 401);
    assert_eq!(with(&[("sec-fetch-site", "same-site")]), 401);
    assert_eq!(with(&[("origin", "http://evil.example")]), 403);
    // Other ports of this machine are foreign origins.
    assert_eq!(with(&[("origin", "http://127.0.0.1:1")]), 403);

    let over = ask(
        &hub,
        "DELETE /auth/session",
        &[JSON, ("cookie", &cookie)],
        "",
    );
    assert_eq!(over.status, 204);
    assert_eq!(with(&[]), 401);
}

#[test]
fn a_session_works_over_both_http_versions_if_all_origins_may_call() {
    let settings = Settings {
        any_origin: true,
        ..Settings::default()
    };
    let hub = Running::with(Mode::Secured, settings);
    let cookie = sign_in(&hub);
    let own = format!("http://{}", hub.address);
    for http in [HttpVersion::One, HttpVersion::Two] {
        let code = |origin: &str| {
            let mut options = ClientOptions {
                http,
                ..ClientOptions::default()
            };
            options.headers.insert("cookie", cookie.parse().unwrap());
            options.headers.insert("origin", origin.parse().unwrap());
            let client = Client::new(&own, options).unwrap();
            let (name, question) = (LIST.trim_start_matches('/'), ListClipsRequest::default());
            let asking = client.unary::<_, ListClipsResponse>(name, &question, None);
            hub.runtime
                .block_on(asking)
                .map_err(|failure| failure.code)
                .err()
        };
        assert_eq!(code(&own), None, "{http:?}");
        assert_eq!(
            code("http://evil.example"),
            Some(Code::Unauthenticated),
            "{http:?}"
        );
    }
}

#[test]
fn requests_of_foreign_pages_change_nothing() {
    let hub = Running::start(Mode::Secured);
    let cookie = sign_in(&hub);
    let token = json!({"kind": "super"}).to_string();
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
    ] {
        let headers = [("content-type", kind), ("cookie", cookie.as_str())];
        assert_eq!(
            failure(&ask(&hub, "POST /auth/tokens", &headers, &token)),
            (400, "invalid_argument".into())
        );
        let call = ask(&hub, &format!("POST {LIST}"), &headers, "{}");
        assert_eq!(call.status, 415, "{kind}");
    }
    let headers = [
        JSON,
        ("cookie", cookie.as_str()),
        ("sec-fetch-site", "cross-site"),
    ];
    assert_eq!(
        failure(&ask(&hub, "POST /auth/tokens", &headers, &token)),
        (401, "unauthenticated".into())
    );
    let listed = ask(&hub, "GET /auth/tokens", &[("cookie", cookie.as_str())], "");
    let listed: Value = serde_json::from_slice(&listed.body).unwrap();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
}

#[test]
fn a_revoked_token_ends_its_session() {
    let hub = Running::start(Mode::Secured);
    let bearer = format!("Bearer {}", hub.token);
    let made = ask(
        &hub,
        "POST /auth/tokens",
        &[JSON, ("authorization", &bearer)],
        r#"{"kind":"super","label":"b"}"#,
    );
    assert_eq!(made.status, 201);
    let made: Value = serde_json::from_slice(&made.body).unwrap();
    let body = json!({"token": made["token"]}).to_string();
    let session = ask(&hub, "POST /auth/session", &[JSON], &body);
    let cookie = session
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let who = || ask(&hub, "GET /auth/session", &[("cookie", cookie)], "");
    assert_eq!(who().status, 200);
    let line = format!("DELETE /auth/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(
        ask(&hub, &line, &[JSON, ("authorization", &bearer)], "").status,
        204
    );
    let refused = who();
    assert_eq!(failure(&refused), (401, "unauthenticated".into()));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn long_and_odd_requests_are_refused() {
    let hub = Running::start(Mode::Secured);
    let long = format!(r#"{{"token":"{}"}}"#, "x".repeat(20_000));
    assert_eq!(
        failure(&ask(&hub, "POST /auth/session", &[JSON], &long)).0,
        400
    );
    for (line, status) in [
        ("GET /auth/nothing", 404),
        ("GET /auth/", 404),
        ("PUT /auth/session", 404),
        ("DELETE /auth/tokens", 404),
        ("DELETE /auth/tokens/", 401),
        ("GET /auth/tokens/x", 404),
        ("GET /auth/tokens", 401),
    ] {
        assert_eq!(failure(&ask(&hub, line, &[JSON], "")).0, status, "{line}");
    }
    assert_eq!(ask(&hub, "GET /healthz", &[], "").body, b"ok\n");
}
