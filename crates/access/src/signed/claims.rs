//! The claims of a signed token.

use serde::Deserialize;
use serde_json::Value;

use pinion_status::Failure;

use super::{TrustedIssuer, VerifiedGrant, refused};
use crate::{Grant, Millis, Scope};

/// Milliseconds by which the clocks of the issuer and the hub may differ. Streams end this much after the token.
const CLOCK_LEEWAY: Millis = 5000;

/// Standard values of `scope` in OpenID Connect, which do not name a user.
const OPENID_SCOPES: [&str; 6] = [
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
];

/// The claims of a signed token that the hub reads.
#[derive(Deserialize)]
pub(super) struct Claims {
    iss: Option<String>,
    exp: Option<f64>,
    nbf: Option<f64>,
    aud: Option<Audience>,
    scope: Option<Value>,
    username: Option<Value>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn has(&self, name: &str) -> bool {
        match self {
            Self::One(one) => one == name,
            Self::Several(several) => several.iter().any(|one| one == name),
        }
    }
}

impl Claims {
    /// Checks the claims at this time and returns the grant.
    pub fn check(&self, trust: &TrustedIssuer, now: Millis) -> Result<VerifiedGrant, Failure> {
        let plain = |address: &str| address.trim_end_matches('/').to_owned();
        if self.iss.as_deref().map(plain) != Some(plain(&trust.issuer)) {
            return Err(refused("the issuer of the token is not trusted"));
        }
        let end = self.exp.ok_or_else(|| refused("the token has no expiry"))?;
        let expires = millis(end).saturating_add(CLOCK_LEEWAY);
        if expires <= now {
            return Err(refused("token expired"));
        }
        if self
            .nbf
            .is_some_and(|start| millis(start).saturating_sub(CLOCK_LEEWAY) > now)
        {
            return Err(refused("the token is not valid yet"));
        }
        let is_meant = |name: &String| self.aud.as_ref().is_some_and(|aud| aud.has(name));
        if !trust.audience.as_ref().is_none_or(is_meant) {
            return Err(refused("the token is for another audience"));
        }
        let scope = self
            .bearer()
            .ok_or_else(|| refused("the token names no user"))?;
        let manage = trust.manage;
        Ok(VerifiedGrant {
            grant: Grant::Hub { scope, manage },
            expires,
        })
    }

    /// Returns the user: `scope`, if it names one and is not a list of OAuth permissions, else `username`.
    fn bearer(&self) -> Option<Scope> {
        let named = |claim: &Option<Value>| claim.as_ref()?.as_str()?.parse::<Scope>().ok();
        let names_user = |scope: &Scope| !OPENID_SCOPES.contains(&&scope.as_str()[1..]);
        let scope = named(&self.scope).filter(names_user);
        scope.or_else(|| named(&self.username))
    }
}

/// Converts seconds since 1970 to milliseconds. A value that is not a number is in the distant past.
fn millis(seconds: f64) -> Millis {
    (seconds * 1000.0) as Millis
}
