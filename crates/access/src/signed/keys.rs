//! The keys of an issuer.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinion_status::Failure;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// As many keys of a set are looked at.
const MOST: usize = 64;

/// How a token is signed. Only what needs a key pair is here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rs256,
            "RS384" => Self::Rs384,
            "RS512" => Self::Rs512,
            "PS256" => Self::Ps256,
            "PS384" => Self::Ps384,
            "PS512" => Self::Ps512,
            "ES256" => Self::Es256,
            "ES384" => Self::Es384,
            "EdDSA" | "Ed25519" => Self::EdDsa,
            _ => return None,
        })
    }

    fn rsa(self) -> Option<&'static RsaParameters> {
        Some(match self {
            Self::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
            Self::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
            Self::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
            Self::Ps256 => &RSA_PSS_2048_8192_SHA256,
            Self::Ps384 => &RSA_PSS_2048_8192_SHA384,
            Self::Ps512 => &RSA_PSS_2048_8192_SHA512,
            Self::Es256 | Self::Es384 | Self::EdDsa => return None,
        })
    }
}

/// What became of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Good,
    Wrong,
    /// There is no key of that name, or none that fits.
    Unknown,
}

/// The public keys of an issuer: a JSON Web Key Set.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<Key>,
}

/// A key. What it is made for is its own to say, not the token's.
struct Key {
    id: Option<String>,
    /// The only algorithm it is for, if it says so.
    only: Option<Algorithm>,
    material: Material,
}

enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct Document {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct Jwk {
    kty: String,
    kid: Option<String>,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a key set. Keys of other kinds, and those for encryption, are left out.
    pub fn from_json(json: &[u8]) -> Result<Self, Failure> {
        let document: Document = serde_json::from_slice(json)
            .map_err(|error| Failure::invalid(format!("it is not a set of keys: {error}")))?;
        let keys = document.keys.into_iter().take(MOST);
        let keys: Vec<Key> = keys
            .filter_map(|key| Key::from_jwk(serde_json::from_value(key).ok()?))
            .collect();
        if keys.is_empty() {
            let message = "there is no key in it that could be used: RSA, P-256, P-384 or Ed25519";
            return Err(Failure::invalid(message));
        }
        Ok(Self { keys })
    }

    /// Whether a key of this name, or any if none is named, made this signature.
    pub(super) fn verify(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        message: &[u8],
        signature: &[u8],
    ) -> Outcome {
        let named = |key: &&Key| id.is_none() || key.id.as_deref() == id;
        let fitting = self.keys.iter().filter(named);
        let mut outcome = Outcome::Unknown;
        for key in fitting.filter(|key| key.fits(algorithm)) {
            match key.made(algorithm, message, signature) {
                true => return Outcome::Good,
                false if id.is_some() => outcome = Outcome::Wrong,
                // Without a name it may be one that we do not have yet.
                false => {}
            }
        }
        outcome
    }
}

impl Key {
    fn from_jwk(jwk: Jwk) -> Option<Self> {
        if jwk.purpose.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        let decode = |part: &Option<String>| {
            let part = part.as_deref()?.trim_end_matches('=');
            URL_SAFE_NO_PAD.decode(part).ok()
        };
        let point = |size: usize| {
            let (x, y) = (decode(&jwk.x)?, decode(&jwk.y)?);
            let is_point = x.len() == size && y.len() == size;
            is_point.then(|| [vec![4], x, y].concat())
        };
        let material = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            ("RSA", _) => Material::Rsa {
                n: without_zeros(decode(&jwk.n)?),
                e: without_zeros(decode(&jwk.e)?),
            },
            ("EC", Some("P-256")) => Material::P256(point(32)?),
            ("EC", Some("P-384")) => Material::P384(point(48)?),
            ("OKP", Some("Ed25519")) => {
                Material::Ed25519(decode(&jwk.x).filter(|x| x.len() == 32)?)
            }
            _ => return None,
        };
        let only = match &jwk.alg {
            // A key for something we do not know is for nothing here.
            Some(name) => Some(Algorithm::from_name(name)?),
            None => None,
        };
        Some(Self {
            id: jwk.kid,
            only,
            material,
        })
    }

    fn fits(&self, algorithm: Algorithm) -> bool {
        let is_its_kind = match self.material {
            Material::Rsa { .. } => algorithm.rsa().is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_its_kind && self.only.is_none_or(|only| only == algorithm)
    }

    fn made(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm.rsa()) {
            (Material::Rsa { n, e }, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Material::P256(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Material::P384(point), _) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signature)
            }
            (Material::Ed25519(key), _) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature)
            }
            (Material::Rsa { .. }, None) => return false,
        };
        verified.is_ok()
    }
}

/// Some write numbers with zeros in front, which are not taken.
fn without_zeros(number: Vec<u8>) -> Vec<u8> {
    number.into_iter().skip_while(|byte| *byte == 0).collect()
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Key")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
