use pinion_testkit::issuer::{Signer, encoded};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const NOW: Millis = 1_800_000_000_000;

fn trust() -> TrustedIssuer {
    TrustedIssuer {
        issuer: "https://issuer.example".into(),
        audience: None,
        manage: false,
    }
}

fn good() -> Value {
    json!({"iss": "https://issuer.example", "exp": 1_800_000_600, "username": "Ada"})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = good();
    claims[name] = value;
    claims
}

fn keys(signers: &[&Signer]) -> KeySet {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
    KeySet::from_json(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn read(token: &str) -> SignedToken {
    SignedToken::read(token).unwrap().unwrap()
}

fn said(claims: &Value, trust: &TrustedIssuer) -> Result<VerifiedGrant, String> {
    let token = Signer::ed25519("a").token(claims);
    read(&token).check(trust, NOW).map_err(|failure| {
        assert_eq!(failure.code, Code::Unauthenticated);
        failure.message.into_owned()
    })
}

fn scope_of(claims: &Value) -> Option<String> {
    match said(claims, &trust()) {
        Ok(signed) => match signed.grant {
            Grant::Hub { scope, manage } => {
                assert!(!manage);
                Some(scope.to_string())
            }
            other => panic!("{other:?}"),
        },
        Err(why) => {
            assert_eq!(why, "the token names no user");
            None
        }
    }
}

#[test]
fn signatures_of_every_kind_are_checked() {
    let signers = [Signer::ed25519("a"), Signer::p256("b"), Signer::rsa("c")];
    let all = keys(&signers.each_ref());
    for signer in &signers {
        let token = signer.token(&good());
        assert!(read(&token).is_signed_by(&all).unwrap().is_ok());
        // Without a name every key is tried.
        let nameless = signer.token_with(&json!({"alg": signer.algorithm()}), &good());
        assert!(read(&nameless).is_signed_by(&all).unwrap().is_ok());
        // Another text with the same signature.
        let (_, signature) = token.rsplit_once('.').unwrap();
        let (header, _) = token.split_once('.').unwrap();
        let claims = encoded(with("username", json!("eve")).to_string().as_bytes());
        let forged = read(&format!("{header}.{claims}.{signature}"));
        let why = forged.is_signed_by(&all).unwrap().unwrap_err();
        assert_eq!(why.message, "the signature of the token is wrong");
        // No signature at all.
        let bare = read(&format!("{header}.{claims}."));
        assert!(bare.is_signed_by(&all).unwrap().is_err());
    }
    let stranger = Signer::ed25519("z").token(&good());
    assert!(read(&stranger).is_signed_by(&all).is_none());
    let impostor = Signer::ed25519("a").token(&good());
    assert!(read(&impostor).is_signed_by(&all).unwrap().is_err());
}

#[test]
fn a_key_is_only_for_what_it_says() {
    let signer = Signer::p256("a");
    let token = signer.token(&good());
    for (name, value) in [
        ("alg", json!("ES384")),
        ("alg", json!("RS256")),
        ("use", json!("enc")),
        ("crv", json!("P-384")),
        ("kty", json!("OKP")),
        ("x", json!("AAAA")),
    ] {
        let mut jwk = signer.jwk();
        jwk[name] = value;
        let other = Signer::ed25519("b").jwk();
        let set = json!({"keys": [jwk, other, 7, {"kty": "oct", "k": "AAAA", "kid": "a"}]});
        let set = KeySet::from_json(set.to_string().as_bytes()).unwrap();
        assert!(read(&token).is_signed_by(&set).is_none(), "{name}");
    }
    for text in [
        "",
        "{}",
        "[]",
        "{\"keys\":[]}",
        "{\"keys\":[{\"kty\":\"oct\"}]}",
    ] {
        assert!(KeySet::from_json(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn tokens_without_a_key_pair_are_refused() {
    let signer = Signer::ed25519("a");
    for (header, words) in [
        (json!({"alg": "none"}), "is not signed"),
        (json!({"alg": "HS256", "kid": "a"}), "shared secret"),
        (json!({"alg": "NoNe"}), "unsupported signature algorithm"),
        (
            json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}),
            "unsupported extension",
        ),
    ] {
        let token = signer.token_with(&header, &good());
        let why = SignedToken::read(&token).unwrap().unwrap_err();
        assert_eq!(why.code, Code::Unauthenticated);
        assert!(why.message.contains(words), "{}", why.message);
    }
}

#[test]
fn what_a_token_must_say() {
    assert_eq!(said(&good(), &trust()).unwrap().expires, 1_800_000_605_000);
    let slash = with("iss", json!("https://issuer.example/"));
    assert!(said(&slash, &trust()).is_ok());
    for (claims, words) in [
        (
            with("iss", json!("https://other.example")),
            "issuer of the token is not trusted",
        ),
        (
            with("iss", Value::Null),
            "issuer of the token is not trusted",
        ),
        (with("exp", Value::Null), "has no expiry"),
        (with("exp", json!(1_799_999_994)), "token expired"),
        (with("exp", json!(-1)), "token expired"),
        (with("nbf", json!(1_800_000_006)), "not valid yet"),
    ] {
        assert!(
            said(&claims, &trust()).unwrap_err().contains(words),
            "{claims}"
        );
    }
    for claims in [
        with("exp", json!(1_799_999_996.5)),
        with("exp", json!(1e300)),
        with("nbf", json!(1_800_000_004)),
    ] {
        assert!(said(&claims, &trust()).is_ok(), "{claims}");
    }
    let meant = TrustedIssuer {
        audience: Some("hub".into()),
        ..trust()
    };
    for (audience, is_fine) in [
        (json!("hub"), true),
        (json!(["api", "hub"]), true),
        (json!("hub2"), false),
        (json!([]), false),
        (Value::Null, false),
    ] {
        let outcome = said(&with("aud", audience.clone()), &meant);
        assert_eq!(outcome.is_ok(), is_fine, "{audience}");
    }
}

#[test]
fn the_bearer_is_named_by_scope_or_username() {
    for (scope, username, expected) in [
        (json!("@grace"), json!("ada"), Some("@grace")),
        (json!("grace"), json!("ada"), Some("@grace")),
        (Value::Null, json!("@ada"), Some("@ada")),
        (json!("openid profile"), json!("ada"), Some("@ada")),
        (json!("openid"), json!("ada"), Some("@ada")),
        (json!("api:read"), json!("ada"), Some("@ada")),
        (json!(["x"]), json!("ada"), Some("@ada")),
        (json!("openid email"), Value::Null, None),
        (Value::Null, json!("a b"), None),
        (json!(""), json!(7), None),
    ] {
        let mut claims = with("scope", scope);
        claims["username"] = username;
        assert_eq!(scope_of(&claims).as_deref(), expected, "{claims}");
    }
}

#[test]
fn nothing_of_a_token_is_printed() {
    let token = Signer::ed25519("a").token(&good());
    assert_eq!(format!("{:?}", read(&token)), "Signed(***)");
}

#[test]
fn other_tokens_are_not_taken_for_signed_ones() {
    let long = Signer::ed25519("a").token(&with("pad", json!("x".repeat(20_000))));
    for token in [
        "pnx_abc",
        "a.b",
        "a.b.c",
        "e30.e30.",
        "....",
        "super.token.of-mine",
        &long,
    ] {
        assert!(SignedToken::read(token).is_none(), "{token}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read(text in "[A-Za-z0-9_.=-]{0,80}", header in "\\PC{0,40}", claims in "\\PC{0,40}") {
        let _ = SignedToken::read(&text);
        let _ = SignedToken::read(&format!("{}.{}.", encoded(header.as_bytes()), encoded(claims.as_bytes())));
        let _ = KeySet::from_json(claims.as_bytes());
    }
}
