//! Tokens that an issuer signed: their holders, their lifetime, and the reasons to refuse them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pinion_testkit::issuer::{Issuer, Manner, Signer, encoded};
use serde_json::{Value, json};

use crate::stage::{Home, Hub, Ran};

fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    now.as_secs()
}

fn claims(issuer: &Issuer, username: &str) -> Value {
    json!({"iss": issuer.url(), "exp": now() + 600, "username": username})
}

fn serve(home: &Home, issuer: &Issuer, flags: &[&str]) -> Hub {
    let mut all = vec!["--jwt-issuer", issuer.url()];
    all.extend(flags);
    home.serve_with(&all)
}

fn list(home: &Home, token: &str) -> Ran {
    home.run(&["clip", "list", "--auth-token", token])
}

fn names(home: &Home, token: &str) -> Vec<String> {
    let listed = list(home, token).json();
    let clips = listed.as_array().unwrap().iter();
    clips
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Checks that the token is refused and returns the message, which must not contain any part of the token.
#[track_caller]
fn refused(home: &Home, token: &str) -> String {
    let said = list(home, token).failed(1);
    assert!(said.contains("does not accept this token"), "{said}");
    assert!(
        !token
            .split('.')
            .any(|part| part.len() > 4 && said.contains(part)),
        "{said}"
    );
    said
}

#[test]
fn a_signed_token_is_a_hub_token_of_its_user() {
    let home = Home::new();
    let signers = [Signer::ed25519("a"), Signer::p256("b"), Signer::rsa("c")];
    let issuer = Issuer::start(Manner::Discovery, &signers.each_ref());
    let hub = serve(&home, &issuer, &["--jwt-manage"]);
    home.write_probe("probe");
    home.write_probe("common");
    home.run(&["clip", "add", "./common"]).fine();
    let ada = signers[0].token(&claims(&issuer, "Ada"));
    home.run(&["clip", "add", "./probe", "--auth-token", &ada])
        .fine();
    // Every kind of key is accepted, and `scope` names the user too.
    let mut scoped = claims(&issuer, "somebody");
    scoped["scope"] = json!("@ada");
    for token in [
        &ada,
        &signers[1].token(&scoped),
        &signers[2].token(&claims(&issuer, "ada")),
    ] {
        assert!(names(&home, token).contains(&"probe".to_owned()));
        let call = ["invoke", "--auth-token", token, "probe", "echo", "--n", "1"];
        assert_eq!(home.run(&call).json(), json!({"n": 1}));
    }
    let bob = signers[1].token(&claims(&issuer, "bob"));
    let seen = names(&home, &bob);
    assert!(
        seen.contains(&"common".to_owned()) && !seen.contains(&"probe".to_owned()),
        "{seen:?}"
    );
    let call = ["invoke", "--auth-token", &bob, "probe", "echo"];
    assert!(home.run(&call).failed(1).contains("not found"));
    assert!(
        home.run(&["clip", "remove", "common", "--auth-token", &ada])
            .code
            != 0
    );
    // It does not permit what needs the owner of the hub, and it is not stored in any file.
    let kept = std::fs::read_to_string(home.root().join("tokens.json")).unwrap();
    assert_eq!(kept.matches("\"id\"").count(), 1, "{kept}");
    let url = hub.url.as_str();
    let create = [
        "hub",
        "token",
        "create",
        "--scope",
        "@eve",
        "--server",
        url,
        "--auth-token",
        &ada,
    ];
    assert_eq!(home.run(&create).code, 1);
    assert!(!hub.said().contains(&ada));
}

#[test]
fn a_signed_token_manages_nothing_unless_it_may() {
    let home = Home::new();
    let signer = Signer::ed25519("a");
    let issuer = Issuer::start(Manner::KeysOnly, &[&signer]);
    let _hub = serve(&home, &issuer, &[]);
    home.write_probe("probe");
    let token = signer.token(&claims(&issuer, "ada"));
    assert!(!names(&home, &token).contains(&"probe".to_owned()));
    let said = home.run(&["clip", "add", "./probe", "--auth-token", &token]);
    let said = said.failed(1);
    assert!(said.contains("does not allow AddClip"), "{said}");
    assert!(names(&home, &token).iter().all(|name| name != "probe"));
}

#[test]
fn what_is_wrong_with_a_token_is_said_without_showing_it() {
    let home = Home::new();
    let signer = Signer::ed25519("a");
    let issuer = Issuer::start(Manner::Discovery, &[&signer]);
    let _hub = serve(&home, &issuer, &["--jwt-audience", "hub"]);
    let with = |name: &str, value: Value| {
        let mut claims = claims(&issuer, "ada");
        claims["aud"] = json!(["hub"]);
        claims[name] = value;
        claims
    };
    let good = with("x", Value::Null);
    assert_eq!(list(&home, &signer.token(&good)).code, 0);
    let expect = |token: String, words: &str| {
        let said = refused(&home, &token);
        assert!(said.contains(words), "{said}");
    };
    expect(
        signer.token(&with("exp", json!(now() - 30))),
        "token expired",
    );
    expect(signer.token(&with("exp", Value::Null)), "has no expiry");
    expect(
        signer.token(&with("nbf", json!(now() + 60))),
        "not valid yet",
    );
    expect(
        signer.token(&with("aud", json!("shop"))),
        "for another audience",
    );
    expect(
        signer.token(&with("iss", json!("https://other.example"))),
        "not trusted",
    );
    expect(
        signer.token(&with("username", json!("a b"))),
        "names no user",
    );
    expect(
        Signer::ed25519("a").token(&good),
        "signature of the token is wrong",
    );
    expect(Signer::ed25519("b").token(&good), "not signed with a key");
    let header = json!({"alg": "none", "kid": "a"});
    expect(signer.token_with(&header, &good), "is not signed");
    let bare = [header.to_string(), good.to_string()].map(|part| encoded(part.as_bytes()));
    expect(format!("{}.{}.", bare[0], bare[1]), "is not signed");
    let header = json!({"alg": "HS256", "kid": "a"});
    expect(signer.token_with(&header, &good), "shared secret");
    let header = json!({"alg": "ES256", "kid": "a"});
    expect(signer.token_with(&header, &good), "not signed with a key");
    expect("one.two.three-and-more".to_owned(), "invalid token");
}

#[test]
fn keys_are_changed_and_kept() {
    let home = Home::new();
    let (old, new) = (Signer::ed25519("old"), Signer::p256("new"));
    let issuer = Issuer::start(Manner::Down, &[&old]);
    let hub = serve(&home, &issuer, &[]);
    // Tokens of the hub itself do not depend on the issuer.
    assert_eq!(home.run(&["clip", "list"]).code, 0);
    let first = old.token(&claims(&issuer, "ada"));
    let said = refused(&home, &first);
    assert!(said.contains("could not be fetched"), "{said}");
    home.until("a word in the log", || hub.said().contains("the keys of"));
    issuer.behave(Manner::Discovery);
    home.until("the issuer's return", || list(&home, &first).code == 0);
    issuer.rotate(&[&new]);
    assert_eq!(list(&home, &new.token(&claims(&issuer, "ada"))).code, 0);
    let asked = issuer.asked();
    refused(&home, &old.token(&claims(&issuer, "grace")));
    assert_eq!(issuer.asked(), asked);
    issuer.behave(Manner::Down);
    assert_eq!(list(&home, &new.token(&claims(&issuer, "bob"))).code, 0);
    assert!(!hub.said().contains(&first));
}

#[test]
fn a_stream_ends_with_its_token() {
    let home = Home::new();
    let signer = Signer::ed25519("a");
    let issuer = Issuer::start(Manner::Discovery, &[&signer]);
    let _hub = serve(&home, &issuer, &[]);
    home.write_probe("probe");
    home.run(&["clip", "add", "./probe"]).fine();
    let mut claims = claims(&issuer, "ada");
    claims["exp"] = json!(now() + 1);
    let token = signer.token(&claims);
    let start = Instant::now();
    let call = [
        "invoke",
        "--stream",
        "--auth-token",
        &token,
        "probe",
        "count",
        "600",
        "--pause",
        "0.1",
    ];
    let ran = home.run(&call);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.starts_with("1\n2\n"), "{ran:?}");
    assert!(ran.stderr.contains("token expired"), "{ran:?}");
    assert!(
        start.elapsed() < Duration::from_secs(25),
        "{:?}",
        start.elapsed()
    );
    assert!(refused(&home, &token).contains("token expired"));
}

#[test]
fn the_portal_takes_a_signed_token() {
    let home = Home::new();
    let signer = Signer::ed25519("a");
    let issuer = Issuer::start(Manner::Discovery, &[&signer]);
    let hub = serve(&home, &issuer, &[]);
    let token = signer.token(&claims(&issuer, "ada"));
    let body = json!({ "token": token }).to_string();
    let signed_in = http(&hub.url, "POST", "/auth/session", &[], &body);
    assert!(signed_in.starts_with("HTTP/1.1 204"), "{signed_in}");
    let cookie = signed_in.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie")
            .then(|| value.split(';').next())?
    });
    let cookie = format!("Cookie: {}", cookie.unwrap());
    let session = http(&hub.url, "GET", "/auth/session", &[&cookie], "");
    assert!(session.contains("@ada"), "{session}");
    let header = format!("Authorization: Bearer {token}");
    let session = http(&hub.url, "GET", "/auth/session", &[&header], "");
    assert!(session.contains("@ada"), "{session}");
}

#[test]
fn pinixd_trusts_an_issuer_too() {
    let home = Home::new();
    let signer = Signer::ed25519("a");
    let issuer = Issuer::start(Manner::Discovery, &[&signer]);
    let mut token = claims(&issuer, "ada");
    token["aud"] = json!("hub");
    let token = signer.token(&token);
    let flags = [
        "--port",
        "0",
        "--jwt-issuer",
        issuer.url(),
        "--jwt-audience",
        "hub",
        "--jwt-manage",
    ];
    let _hub = Hub::start(home.command("pinixd", &flags), home.path("pinixd.err"));
    home.write_probe("probe");
    home.run(&["clip", "add", "./probe", "--auth-token", &token])
        .fine();
    assert!(names(&home, &token).contains(&"probe".to_owned()));
}

#[test]
fn an_issuer_is_reached_safely_or_not_at_all() {
    let home = Home::new();
    for (flags, words) in [
        (&["--jwt-issuer", "http://issuer.example"][..], "https"),
        (&["--jwt-issuer", "issuer.example"], "--jwt-issuer"),
        (&["--jwt-manage"], "needs --jwt-issuer"),
        (&["--jwt-audience", "x"], "needs --jwt-issuer"),
    ] {
        let mut line = vec!["hub", "serve", "--port", "0"];
        line.extend(flags);
        let said = home.run(&line).failed(2);
        assert!(said.contains(words), "{said}");
    }
    let joined = ["--hub", "http://x", "--jwt-manage"];
    let said = home.run_as("pinixd", &joined).failed(1);
    assert!(said.contains("--jwt-manage"), "{said}");
}

/// Sends one request and returns the whole answer.
fn http(url: &str, method: &str, path: &str, headers: &[&str], body: &str) -> String {
    use std::io::{Read, Write};
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    head += &format!(
        "Content-Type: application/json\r\nContent-Length: {}\r\n",
        body.len()
    );
    for header in headers {
        head += &format!("{header}\r\n");
    }
    write!(stream, "{head}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
