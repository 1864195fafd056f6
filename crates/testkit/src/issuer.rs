//! An issuer of signed tokens on loopback: real keys, real signatures, and a server of the public keys.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::rsa::{KeyPair as RsaKeyPair, PublicKeyComponents};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
};
use serde_json::{Value, json};

/// A key that signs tokens.
pub struct Signer {
    id: String,
    pair: Pair,
}

enum Pair {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl Signer {
    /// Creates a signer with a new Ed25519 key of this name.
    pub fn ed25519(id: &str) -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap();
        Self::new(id, Pair::Ed25519(pair))
    }

    /// Creates a signer with a new P-256 key of this name.
    pub fn p256(id: &str) -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap();
        Self::new(id, Pair::P256(pair))
    }

    /// Creates a signer with an RSA key of this name. The key is always the same, because ring cannot generate one.
    pub fn rsa(id: &str) -> Self {
        let document = include_bytes!("issuer/rsa-test-only.der");
        let pair = RsaKeyPair::from_der(document).unwrap();
        Self::new(id, Pair::Rsa(Box::new(pair)))
    }

    fn new(id: &str, pair: Pair) -> Self {
        let id = id.to_owned();
        Self { id, pair }
    }

    /// Returns the name of the signature algorithm.
    pub fn algorithm(&self) -> &'static str {
        match self.pair {
            Pair::Ed25519(_) => "EdDSA",
            Pair::P256(_) => "ES256",
            Pair::Rsa(_) => "RS256",
        }
    }

    /// Returns the public key, in the form of key sets.
    pub fn jwk(&self) -> Value {
        let (id, alg) = (&self.id, self.algorithm());
        match &self.pair {
            Pair::Ed25519(pair) => {
                let x = encoded(pair.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "x": x, "kid": id, "alg": alg, "use": "sig"})
            }
            Pair::P256(pair) => {
                let point = pair.public_key().as_ref();
                let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "x": x, "y": y, "kid": id, "alg": alg})
            }
            Pair::Rsa(pair) => {
                let PublicKeyComponents { n, e }: PublicKeyComponents<Vec<u8>> =
                    pair.public().into();
                json!({"kty": "RSA", "n": encoded(&n), "e": encoded(&e), "kid": id, "use": "sig"})
            }
        }
    }

    /// Creates a token with these claims.
    pub fn token(&self, claims: &Value) -> String {
        let header = json!({"alg": self.algorithm(), "kid": self.id, "typ": "JWT"});
        self.token_with(&header, claims)
    }

    /// Creates a token with another header.
    pub fn token_with(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| encoded(value.to_string().as_bytes());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = self.sign(message.as_bytes());
        format!("{message}.{}", encoded(&signature))
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Ed25519(pair) => pair.sign(message).as_ref().to_vec(),
            Pair::P256(pair) => pair.sign(&random, message).unwrap().as_ref().to_vec(),
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, message, &mut signature)
                    .unwrap();
                signature
            }
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Signer").field(&self.id).finish()
    }
}

/// Encodes bytes as tokens do.
pub fn encoded(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The behaviour of an issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Manner {
    /// Publishes the location of its keys, like OpenID Connect.
    Discovery,
    /// Has its keys at the usual location, and does not publish it.
    KeysOnly,
    /// Closes every connection.
    Down,
    /// Claims to be another issuer.
    Impostor,
}

/// An issuer on loopback.
#[derive(Debug)]
pub struct Issuer {
    url: String,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<(Manner, Value)>,
    asked: AtomicUsize,
}

impl Issuer {
    /// Starts an issuer with the keys of `signers`.
    pub fn start(manner: Manner, signers: &[&Signer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            state: Mutex::new((manner, key_set(signers))),
            asked: AtomicUsize::new(0),
        });
        let (at, served) = (url.clone(), shared.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // The client sees that there is no answer.
                let _ = served.answer(&at, stream);
            }
        });
        Self { url, shared }
    }

    /// Returns the value of `iss` in its tokens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of requests for its keys.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// Replaces the published keys.
    pub fn rotate(&self, signers: &[&Signer]) {
        self.shared.state().1 = key_set(signers);
    }

    /// Changes the behaviour.
    pub fn behave(&self, manner: Manner) {
        self.shared.state().0 = manner;
    }
}

impl Shared {
    fn state(&self) -> std::sync::MutexGuard<'_, (Manner, Value)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, url: &str, mut stream: TcpStream) -> std::io::Result<()> {
        let (manner, keys) = self.state().clone();
        if manner == Manner::Down {
            self.asked.fetch_add(1, Ordering::SeqCst);
            return Ok(());
        }
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut lines = BufReader::new(stream.try_clone()?).lines();
        let first = lines.next().transpose()?.unwrap_or_default();
        for line in lines {
            if line?.is_empty() {
                break;
            }
        }
        let discovery = |issuer: &str| json!({"issuer": issuer, "jwks_uri": format!("{url}/keys")});
        let path = first.split(' ').nth(1).unwrap_or_default();
        let body = match (manner, path) {
            (Manner::Discovery, "/.well-known/openid-configuration") => Some(discovery(url)),
            (Manner::Impostor, "/.well-known/openid-configuration") => {
                Some(discovery("https://issuer.example"))
            }
            (Manner::Discovery | Manner::Impostor, "/keys")
            | (Manner::KeysOnly, "/.well-known/jwks.json") => {
                self.asked.fetch_add(1, Ordering::SeqCst);
                Some(keys)
            }
            _ => None,
        };
        let status = if body.is_some() {
            "200 OK"
        } else {
            "404 Not Found"
        };
        let body = body.unwrap_or_default().to_string();
        write!(
            stream,
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

fn key_set(signers: &[&Signer]) -> Value {
    let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
    json!({ "keys": keys })
}
