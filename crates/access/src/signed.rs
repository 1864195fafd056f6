//! Tokens signed by an external issuer: JSON Web Tokens of an issuer that the hub trusts.
//!
//! This module parses and verifies such tokens. The owner of the gate fetches the issuer's keys.

mod claims;
mod keys;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinion_status::{Code, Failure};
use serde::Deserialize;

use self::claims::Claims;
pub use self::keys::KeySet;
use self::keys::{Algorithm, Outcome};
use crate::{Grant, Millis};

/// The longest token that is parsed, in bytes.
const MAX_TOKEN_BYTES: usize = 16 * 1024;

/// The trusted issuer and the rights of its tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustedIssuer {
    /// The issuer, as its tokens name it in `iss`; a slash at the end is ignored.
    pub issuer: String,
    /// The required audience in `aud`; `None` accepts any audience.
    pub audience: Option<String>,
    /// Bearers may install, remove and bind clips of their scope.
    pub manage: bool,
}

/// A parsed token that is not verified yet. Its `Debug` form does not contain it.
pub struct SignedToken {
    /// The signed text: the first two parts and the dot between them.
    message: Box<str>,
    signature: Vec<u8>,
    algorithm: Algorithm,
    key: Option<String>,
    claims: Claims,
}

/// The grant of a token, valid if its signature is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedGrant {
    pub grant: Grant,
    pub expires: Millis,
}

#[derive(Deserialize)]
struct TokenHeader {
    alg: String,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

impl SignedToken {
    /// Parses a token; `None` if it is not a JSON Web Token.
    pub fn read(token: &str) -> Option<Result<Self, Failure>> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        if token.len() > MAX_TOKEN_BYTES || payload.contains('.') {
            return None;
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: TokenHeader = serde_json::from_slice(&decode(header)?).ok()?;
        let (payload, signature) = (decode(payload)?, decode(signature)?);
        Some(Self::from_parts(message, header, &payload, signature))
    }

    fn from_parts(
        message: &str,
        header: TokenHeader,
        payload: &[u8],
        signature: Vec<u8>,
    ) -> Result<Self, Failure> {
        let algorithm = Algorithm::from_name(&header.alg).ok_or_else(|| {
            // The message repeats only known names, because errors must not contain parts of a token.
            refused(match header.alg.as_str() {
                "none" => "the token is not signed",
                "HS256" | "HS384" | "HS512" => {
                    "the token is signed with a shared secret, which the hub does not accept"
                }
                _ => "the token has an unsupported signature algorithm",
            })
        })?;
        if header.crit.is_some() {
            return Err(refused("the token requires an unsupported extension"));
        }
        let claims = serde_json::from_slice(payload)
            .map_err(|_| refused("the claims of the token are malformed"))?;
        Ok(Self {
            message: message.into(),
            signature,
            algorithm,
            key: header.kid,
            claims,
        })
    }

    /// Checks the claims and returns the grant of the token at this time. The signature is checked separately.
    pub fn check(&self, trust: &TrustedIssuer, now: Millis) -> Result<VerifiedGrant, Failure> {
        self.claims.check(trust, now)
    }

    /// Checks the signature against `keys`; `None` if they do not contain the key that the token names.
    pub fn is_signed_by(&self, keys: &KeySet) -> Option<Result<(), Failure>> {
        let (message, signature) = (self.message.as_bytes(), &self.signature);
        match keys.verify(self.key.as_deref(), self.algorithm, message, signature) {
            Outcome::Good => Some(Ok(())),
            Outcome::Wrong => Some(Err(refused("the signature of the token is wrong"))),
            Outcome::Unknown => None,
        }
    }
}

impl fmt::Debug for SignedToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signed(***)")
    }
}

/// The failure of an invalid token, in words that contain no part of it.
pub(crate) fn refused(why: &'static str) -> Failure {
    Failure::new(Code::Unauthenticated, why)
}

#[cfg(test)]
mod tests;
