use std::time::{SystemTime, UNIX_EPOCH};

use pinion_access::{Gate, Mode, Peer};
use pinion_testkit::issuer::{Issuer as Server, Manner, Signer};
use serde_json::{Value, json};

use super::*;

struct TestIssuerHub {
    keys: Keys,
    gate: Gate,
    _root: tempfile::TempDir,
}

impl TestIssuerHub {
    fn trusting(server: &Server) -> Self {
        let root = tempfile::tempdir().unwrap();
        let issuer = Issuer::new(server.url(), None, false).unwrap();
        let log = Arc::new(ClipLog::at(root.path().join("log")));
        let store = TokenStore::open(root.path()).unwrap();
        Self {
            keys: Keys::new(issuer, log),
            gate: Gate::new(Mode::Secured, store),
            _root: root,
        }
    }

    /// Who shows this token.
    async fn bearer(&self, token: &str) -> Result<String, String> {
        let known = self.keys.recognise(self.gate.store(), token).await;
        let caller = known.and_then(|()| self.gate.authenticate(Some(token), Peer::LOCAL));
        caller
            .map(|it| it.principal.to_string())
            .map_err(|failure| {
                assert_eq!(failure.code, Code::Unauthenticated);
                failure.message.into_owned()
            })
    }
}

fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs()
}

fn claims(server: &Server) -> Value {
    json!({"iss": server.url(), "exp": now() + 60, "username": "ada"})
}

#[tokio::test]
async fn keys_are_found_by_discovery_or_at_the_default_path() {
    for manner in [Manner::Discovery, Manner::KeysOnly] {
        let signer = Signer::p256("a");
        let server = Server::start(manner, &[&signer]);
        let hub = TestIssuerHub::trusting(&server);
        for count in 0..3 {
            let mut claims = claims(&server);
            claims["jti"] = json!(count);
            let token = signer.token(&claims);
            assert_eq!(hub.bearer(&token).await.unwrap(), "@ada");
        }
        assert_eq!(server.asked(), 1);
    }
    let signer = Signer::p256("a");
    let server = Server::start(Manner::Impostor, &[&signer]);
    let hub = TestIssuerHub::trusting(&server);
    let why = hub
        .bearer(&signer.token(&claims(&server)))
        .await
        .unwrap_err();
    assert!(why.contains("could not be fetched"), "{why}");
    assert_eq!(server.asked(), 0);
}

#[tokio::test]
async fn an_unknown_key_causes_at_most_one_fetch_per_minute() {
    let (old, new) = (Signer::ed25519("old"), Signer::ed25519("new"));
    let server = Server::start(Manner::Discovery, &[&old]);
    let hub = TestIssuerHub::trusting(&server);
    let claims = claims(&server);
    assert!(hub.bearer(&old.token(&claims)).await.is_ok());
    server.rotate(&[&new]);
    assert!(hub.bearer(&new.token(&claims)).await.is_ok());
    assert_eq!(server.asked(), 2);
    // Known already, although its key has gone.
    assert!(hub.bearer(&old.token(&claims)).await.is_ok());
    for stranger in ["x", "y", "z"] {
        let token = Signer::ed25519(stranger).token(&claims);
        let why = hub.bearer(&token).await.unwrap_err();
        assert!(why.contains("not signed with a key"), "{why}");
    }
    assert_eq!(server.asked(), 2);
    // And not at all for what is wrong anyway.
    let mut ended = claims.clone();
    ended["exp"] = json!(now() - 60);
    let why = hub.bearer(&Signer::ed25519("x").token(&ended)).await;
    assert_eq!(why.unwrap_err(), "token expired");
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn simultaneous_tokens_cause_one_fetch() {
    let signer = Signer::ed25519("a");
    let server = Server::start(Manner::Discovery, &[&signer]);
    let hub = TestIssuerHub::trusting(&server);
    let tokens: Vec<String> = (0..20)
        .map(|count| {
            let mut claims = claims(&server);
            claims["jti"] = json!(count);
            signer.token(&claims)
        })
        .collect();
    let bearers = tokens.iter().map(|token| hub.bearer(token));
    let bearers = futures_util::future::join_all(bearers).await;
    assert!(bearers.iter().all(|it| it.as_deref() == Ok("@ada")));
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn keys_stay_valid_while_the_issuer_is_down() {
    let signer = Signer::ed25519("a");
    let server = Server::start(Manner::Discovery, &[&signer]);
    let hub = TestIssuerHub::trusting(&server);
    let mut claims = claims(&server);
    assert!(hub.bearer(&signer.token(&claims)).await.is_ok());
    server.behave(Manner::Down);
    let stranger = Signer::ed25519("x").token(&claims);
    assert!(hub.bearer(&stranger).await.is_err());
    claims["username"] = json!("grace");
    assert_eq!(hub.bearer(&signer.token(&claims)).await.unwrap(), "@grace");
    // One that was never up is asked once in a while.
    let server = Server::start(Manner::Down, &[&signer]);
    let hub = TestIssuerHub::trusting(&server);
    let token = signer.token(&self::claims(&server));
    for _ in 0..3 {
        let why = hub.bearer(&token).await.unwrap_err();
        assert!(
            why.contains("its log") || why.contains("hub's log"),
            "{why}"
        );
        assert!(!why.contains(&token));
    }
    let asked = server.asked();
    assert!((1..=2).contains(&asked), "{asked}");
}

#[test]
fn issuers_require_safe_addresses() {
    for address in [
        "https://issuer.example",
        "https://issuer.example/realms/me/",
        "http://127.0.0.1:8080",
        "http://[::1]:8080/x",
        "http://localhost",
    ] {
        assert!(Issuer::new(address, None, false).is_ok(), "{address}");
    }
    for address in [
        "http://issuer.example",
        "http://localhost.example",
        "ftp://127.0.0.1",
        "issuer.example",
        "https://issuer.example?x=1",
        "https://me:secret@issuer.example",
        "",
    ] {
        assert!(Issuer::new(address, None, false).is_err(), "{address}");
    }
}
