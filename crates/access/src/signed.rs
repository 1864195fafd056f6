//! Tokens that somebody else signed: JSON Web Tokens of an issuer that the hub trusts.
//!
//! Here is what such a token says and whether that is so. Where the issuer's keys come from is for the owner of the gate.

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

/// Longer ones are not looked at.
const LONGEST: usize = 16 * 1024;

/// Whose tokens are good, and for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trust {
    /// The issuer, as its tokens name it in `iss`; a slash at the end does not matter.
    pub issuer: String,
    /// Whom tokens must be meant for, in `aud`; everybody's are good without.
    pub audience: Option<String>,
    /// Whether their bearers may install, remove and bind what they own.
    pub manage: bool,
}

/// A token of three parts, of which nothing is believed yet. It does not print itself.
pub struct Signed {
    /// What was signed: the first two parts and the dot between them.
    message: Box<str>,
    signature: Vec<u8>,
    algorithm: Algorithm,
    key: Option<String>,
    claims: Claims,
}

/// What a token is good for, if its signature is right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    /// Whom it makes of its bearer.
    pub grant: Grant,
    /// When it ends.
    pub expires: Millis,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<serde_json::Value>,
}

impl Signed {
    /// Reads a token; `None` if it is of another make.
    pub fn read(token: &str) -> Option<Result<Self, Failure>> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, payload) = message.split_once('.')?;
        if token.len() > LONGEST || payload.contains('.') {
            return None;
        }
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).ok();
        let header: Header = serde_json::from_slice(&decode(header)?).ok()?;
        let (payload, signature) = (decode(payload)?, decode(signature)?);
        Some(Self::from_parts(message, header, &payload, signature))
    }

    fn from_parts(
        message: &str,
        header: Header,
        payload: &[u8],
        signature: Vec<u8>,
    ) -> Result<Self, Failure> {
        let algorithm = Algorithm::from_name(&header.alg).ok_or_else(|| {
            // Only names we know are repeated: nothing of a token is shown.
            refused(match header.alg.as_str() {
                "none" => "the token is not signed",
                "HS256" | "HS384" | "HS512" => {
                    "the token is signed with a shared secret, which proves nothing here"
                }
                _ => "the token is signed in a way that is not known here",
            })
        })?;
        if header.crit.is_some() {
            return Err(refused("the token wants something that is not known here"));
        }
        let claims = serde_json::from_slice(payload)
            .map_err(|_| refused("what the token says cannot be read"))?;
        Ok(Self {
            message: message.into(),
            signature,
            algorithm,
            key: header.kid,
            claims,
        })
    }

    /// What the token is good for at this time, if its signature is right.
    pub fn check(&self, trust: &Trust, now: Millis) -> Result<Vouched, Failure> {
        self.claims.check(trust, now)
    }

    /// Whether one of `keys` signed it; `None` if none of them is the one it names.
    pub fn is_signed_by(&self, keys: &KeySet) -> Option<Result<(), Failure>> {
        let (message, signature) = (self.message.as_bytes(), &self.signature);
        match keys.verify(self.key.as_deref(), self.algorithm, message, signature) {
            Outcome::Good => Some(Ok(())),
            Outcome::Wrong => Some(Err(refused("the signature of the token is wrong"))),
            Outcome::Unknown => None,
        }
    }
}

impl fmt::Debug for Signed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Signed(***)")
    }
}

/// That a token is not good, in words that show nothing of it.
pub(crate) fn refused(why: &'static str) -> Failure {
    Failure::new(Code::Unauthenticated, why)
}

#[cfg(test)]
mod tests;
