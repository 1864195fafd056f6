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

/// Keys of a set that are read.
const MAX_KEYS: usize = 64;

/// A signature algorithm. Only algorithms with a key pair are supported.
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

/// The result of checking a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Good,
    Wrong,
    /// No key has that name, or none fits.
    Unknown,
}

/// The public keys of an issuer: a JSON Web Key Set.
#[derive(Debug)]
pub struct KeySet {
    keys: Vec<Key>,
}

/// A public key. The key itself, not the token, decides which algorithms it is for.
struct Key {
    id: Option<String>,
    /// The only algorithm the key is for, if it names one.
    only_algorithm: Option<Algorithm>,
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
    /// Parses a key set. Keys of other types, and keys for encryption, are skipped.
    pub fn from_json(json: &[u8]) -> Result<Self, Failure> {
        let document: Document = serde_json::from_slice(json)
            .map_err(|error| Failure::invalid(format!("it is not a set of keys: {error}")))?;
        let keys = document.keys.into_iter().take(MAX_KEYS);
        let keys: Vec<Key> = keys
            .filter_map(|key| Key::from_jwk(serde_json::from_value(key).ok()?))
            .collect();
        if keys.is_empty() {
            let message = "it has no usable key; supported are RSA, P-256, P-384 or Ed25519";
            return Err(Failure::invalid(message));
        }
        Ok(Self { keys })
    }

    /// Checks a signature with the key of this name, or with any key if no name is given.
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
        for key in fitting.filter(|key| key.accepts(algorithm)) {
            if key.verifies(algorithm, message, signature) {
                return Outcome::Good;
            }
            // Without a name, the signing key may be one that the hub does not have yet.
            if id.is_some() {
                outcome = Outcome::Wrong;
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
        let only_algorithm = match &jwk.alg {
            // A key for an unknown algorithm cannot be used.
            Some(name) => Some(Algorithm::from_name(name)?),
            None => None,
        };
        Some(Self {
            id: jwk.kid,
            only_algorithm,
            material,
        })
    }

    fn accepts(&self, algorithm: Algorithm) -> bool {
        let is_its_kind = match self.material {
            Material::Rsa { .. } => algorithm.rsa().is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        };
        is_its_kind
            && self
                .only_algorithm
                .is_none_or(|only_algorithm| only_algorithm == algorithm)
    }

    fn verifies(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
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

/// Removes leading zeros, which some issuers write and the library does not accept.
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
