//! What a signed token says.

use serde::Deserialize;
use serde_json::Value;

use pinion_status::Failure;

use super::{Trust, Vouched, refused};
use crate::{Grant, Millis, Scope};

/// How far the clocks of the issuer and the hub may be apart. Streams end so much after the token.
const LEEWAY: Millis = 5000;

/// Words of OpenID Connect that stand in `scope` for everybody and name nobody.
const NOBODY: [&str; 6] = [
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
];

/// What a signed token says, as far as we listen.
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
    /// What they are good for at this time.
    pub fn check(&self, trust: &Trust, now: Millis) -> Result<Vouched, Failure> {
        let plain = |address: &str| address.trim_end_matches('/').to_owned();
        if self.iss.as_deref().map(plain) != Some(plain(&trust.issuer)) {
            return Err(refused(
                "the token is of an issuer that is not trusted here",
            ));
        }
        let end = self.exp.ok_or_else(|| refused("the token has no end"))?;
        let expires = millis(end).saturating_add(LEEWAY);
        if expires <= now {
            return Err(refused("token expired"));
        }
        if self
            .nbf
            .is_some_and(|start| millis(start).saturating_sub(LEEWAY) > now)
        {
            return Err(refused("the token is not good yet"));
        }
        let is_meant = |name: &String| self.aud.as_ref().is_some_and(|aud| aud.has(name));
        if !trust.audience.as_ref().is_none_or(is_meant) {
            return Err(refused("the token is meant for somebody else"));
        }
        let scope = self
            .bearer()
            .ok_or_else(|| refused("the token names no user"))?;
        let manage = trust.manage;
        Ok(Vouched {
            grant: Grant::Hub { scope, manage },
            expires,
        })
    }

    /// Who the bearer is: `scope`, if it names somebody and is not a list of what OAuth allows, else `username`.
    fn bearer(&self) -> Option<Scope> {
        let named = |claim: &Option<Value>| claim.as_ref()?.as_str()?.parse::<Scope>().ok();
        let names_somebody = |scope: &Scope| !NOBODY.contains(&&scope.as_str()[1..]);
        let scope = named(&self.scope).filter(names_somebody);
        scope.or_else(|| named(&self.username))
    }
}

/// Seconds since 1970 as we count them. What is no time is long ago.
fn millis(seconds: f64) -> Millis {
    (seconds * 1000.0) as Millis
}
