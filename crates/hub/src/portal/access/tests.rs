use http_body_util::BodyExt as _;
use pinion_access::{Mode, Origin, TokenStore};
use serde_json::{Value, json};
use tempfile::TempDir;

use futures_util::FutureExt;

use super::*;

struct TestGate {
    gate: Gate,
    first: String,
    _root: TempDir,
}

impl TestGate {
    fn new(mode: Mode) -> Self {
        let root = tempfile::tempdir().unwrap();
        let store = TokenStore::open(root.path()).unwrap();
        let minted = store.mint(NewToken::new(Grant::Super)).unwrap();
        Self {
            gate: Gate::new(mode, store),
            first: minted.token.reveal().to_owned(),
            _root: root,
        }
    }

    fn ask(
        &self,
        line: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Result<(StatusCode, HeaderMap, Value), Code> {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if method != "GET" && !headers.iter().any(|(name, _)| *name == "content-type") {
            request = request.header("content-type", "application/json; charset=utf-8");
        }
        let body = if body.is_null() {
            Bytes::new()
        } else {
            Bytes::from(body.to_string())
        };
        let visitor = Visitor {
            peer: Peer::LOCAL,
            transport: Transport::Plain,
        };
        let response = answer(&self.gate, None, &request.body(body).unwrap(), visitor)
            .now_or_never()
            .unwrap()
            .map_err(|failure| failure.code)?;
        let (parts, body) = response.into_parts();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        let bytes = runtime.block_on(body.collect()).unwrap().to_bytes();
        Ok((
            parts.status,
            parts.headers,
            serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        ))
    }

    fn as_super(&self, line: &str, body: &Value) -> Result<(StatusCode, Value), Code> {
        let bearer = format!("Bearer {}", self.first);
        let (status, _, value) = self.ask(line, &[("authorization", &bearer)], body)?;
        Ok((status, value))
    }
}

#[test]
fn a_token_becomes_a_session_and_the_session_ends() {
    let gate = TestGate::new(Mode::Secured);
    let none = Value::Null;
    assert_eq!(
        gate.ask("GET /auth/session", &[], &none).unwrap_err(),
        Code::Unauthenticated
    );
    let (status, headers, _) = gate
        .ask(
            "POST /auth/session",
            &[],
            &json!({"token": format!(" {}\n", gate.first)}),
        )
        .unwrap();
    assert_eq!(status, StatusCode::NO_CONTENT);
    let cookie = headers[header::SET_COOKIE].to_str().unwrap();
    assert!(
        cookie.contains("HttpOnly")
            && cookie.contains("SameSite=Strict")
            && !cookie.contains(&gate.first)
    );
    let cookie = cookie.split(';').next().unwrap();
    let (_, headers, session) = gate
        .ask("GET /auth/session", &[("cookie", cookie)], &none)
        .unwrap();
    assert_eq!(
        session,
        json!({"kind": "super", "scope": "", "alias": "", "manage": true, "signedIn": true})
    );
    assert_eq!(headers[header::CACHE_CONTROL], "no-store");
    let (status, headers, _) = gate
        .ask("DELETE /auth/session", &[("cookie", cookie)], &none)
        .unwrap();
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(
        headers[header::SET_COOKIE]
            .to_str()
            .unwrap()
            .contains("Max-Age=0")
    );
    assert_eq!(
        gate.ask("GET /auth/session", &[("cookie", cookie)], &none)
            .unwrap_err(),
        Code::Unauthenticated
    );
}

#[test]
fn wrong_tokens_and_bodies_open_no_session() {
    let gate = TestGate::new(Mode::OpenLocal);
    for (body, code) in [
        (json!({"token": "pns_wrong"}), Code::Unauthenticated),
        (json!({"token": ""}), Code::Unauthenticated),
        (json!({"token": 7}), Code::InvalidArgument),
        (json!([]), Code::InvalidArgument),
        (Value::Null, Code::InvalidArgument),
    ] {
        assert_eq!(
            gate.ask("POST /auth/session", &[], &body).unwrap_err(),
            code,
            "{body}"
        );
    }
}

#[test]
fn forms_of_other_pages_are_refused() {
    let gate = TestGate::new(Mode::OpenLocal);
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "application/jsonp",
    ] {
        for line in [
            "POST /auth/session",
            "POST /auth/tokens",
            "DELETE /auth/session",
            "DELETE /auth/tokens/x",
        ] {
            let refused = gate.ask(
                line,
                &[("content-type", kind)],
                &json!({"token": gate.first}),
            );
            assert_eq!(refused.unwrap_err(), Code::InvalidArgument, "{line} {kind}");
        }
    }
}

#[test]
fn open_hubs_show_a_session_without_a_token() {
    let session = |mode| {
        TestGate::new(mode)
            .ask("GET /auth/session", &[], &Value::Null)
            .unwrap()
            .2
    };
    let expected = |kind: &str, manage| json!({"kind": kind, "scope": "", "alias": "", "manage": manage, "signedIn": false});
    assert_eq!(session(Mode::OpenLocal), expected("super", true));
    assert_eq!(session(Mode::Manage), expected("guest", false));
}

#[test]
fn tokens_are_made_listed_and_revoked() {
    let gate = TestGate::new(Mode::Secured);
    let wanted = json!({"kind": "hub", "scope": "@Ana", "ttlSeconds": 3600, "label": " laptop "});
    let (status, made) = gate.as_super("POST /auth/tokens", &wanted).unwrap();
    assert_eq!(status, StatusCode::CREATED);
    let token = made["token"].as_str().unwrap().to_owned();
    assert!(token.starts_with("pnx_"));
    assert_eq!(
        (&made["scope"], &made["label"], &made["manage"]),
        (&json!("@ana"), &json!("laptop"), &json!(false))
    );
    let times = ["created", "expires"]
        .map(|name| made[name].as_str().unwrap().parse::<Timestamp>().unwrap());
    assert_eq!(times[1].duration_since(times[0]).as_secs(), 3600);

    let (_, listed) = gate.as_super("GET /auth/tokens", &Value::Null).unwrap();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 2);
    assert!(!listed.to_string().contains(&token));

    let bearer = format!("Bearer {token}");
    let as_ana = |line| {
        gate.ask(
            line,
            &[("authorization", &bearer)],
            &json!({"kind": "super"}),
        )
    };
    assert_eq!(as_ana("GET /auth/session").unwrap().2["scope"], "@ana");
    let who = json!({"username": "ana", "scope": "@ana", "kind": "hub"});
    assert_eq!(as_ana("GET /auth/whoami").unwrap().2, who);
    let nobody = gate.ask("GET /auth/whoami", &[], &Value::Null);
    assert_eq!(nobody.unwrap_err(), Code::Unauthenticated);
    for line in [
        "GET /auth/tokens",
        "POST /auth/tokens",
        "DELETE /auth/tokens/x",
    ] {
        assert_eq!(as_ana(line).unwrap_err(), Code::PermissionDenied, "{line}");
        assert_eq!(
            gate.ask(line, &[], &json!({})).unwrap_err(),
            Code::Unauthenticated,
            "{line}"
        );
    }

    let line = format!("DELETE /auth/tokens/{}", made["id"].as_str().unwrap());
    assert_eq!(
        gate.as_super(&line, &Value::Null).unwrap().0,
        StatusCode::NO_CONTENT
    );
    assert_eq!(
        as_ana("GET /auth/session").unwrap_err(),
        Code::Unauthenticated
    );
    assert_eq!(
        gate.as_super(&line, &Value::Null).unwrap_err(),
        Code::NotFound
    );
}

#[test]
fn invalid_token_requests_are_rejected() {
    let gate = TestGate::new(Mode::Secured);
    for wanted in [
        json!({"kind": "root"}),
        json!({"kind": "hub"}),
        json!({"kind": "hub", "scope": "a b"}),
        json!({"kind": "clip", "alias": "@/"}),
        json!({"kind": "super", "ttlSeconds": u64::MAX}),
        json!({"kind": "super", "ttlSeconds": -1}),
        json!({"kind": "super", "label": "x".repeat(201)}),
    ] {
        assert_eq!(
            gate.as_super("POST /auth/tokens", &wanted).unwrap_err(),
            Code::InvalidArgument,
            "{wanted}"
        );
    }
    let (_, listed) = gate.as_super("GET /auth/tokens", &Value::Null).unwrap();
    assert_eq!(listed["tokens"].as_array().unwrap().len(), 1);
    let (_, made) = gate
        .as_super(
            "POST /auth/tokens",
            &json!({"kind": "clip", "alias": "My Todo"}),
        )
        .unwrap();
    assert_eq!(
        (&made["kind"], &made["alias"]),
        (&json!("clip"), &json!("my-todo"))
    );
    let times = ["created", "expires"]
        .map(|name| made[name].as_str().unwrap().parse::<Timestamp>().unwrap());
    let days = times[1].duration_since(times[0]).as_hours() / 24;
    assert_eq!(days, 90, "unless the caller says otherwise");
    let endless = json!({"kind": "super", "ttlSeconds": 0});
    let (_, made) = gate.as_super("POST /auth/tokens", &endless).unwrap();
    assert!(made.get("expires").is_none(), "{made}");
}

#[test]
fn cookies_are_ignored_for_foreign_pages() {
    let gate = TestGate::new(Mode::Secured);
    let (_, headers, _) = gate
        .ask("POST /auth/session", &[], &json!({"token": gate.first}))
        .unwrap();
    let cookie = headers[header::SET_COOKIE]
        .to_str()
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let request = Request::builder()
        .uri("/auth/tokens")
        .header("cookie", cookie)
        .body(Bytes::new())
        .unwrap();
    for (origin, allowed) in [
        (Origin::Served, true),
        (Origin::Absent, true),
        (Origin::Foreign, false),
    ] {
        let peer = Peer {
            loopback: true,
            origin,
        };
        let answer = answer(
            &gate.gate,
            None,
            &request,
            Visitor {
                peer,
                transport: Transport::Plain,
            },
        );
        assert_eq!(
            answer.now_or_never().unwrap().is_ok(),
            allowed,
            "{origin:?}"
        );
    }
}
