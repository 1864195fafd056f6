//! Tokens of an issuer that the hub trusts: its keys, fetched when they are first needed, and what to do with a token signed by one.
//!
//! A token that was found good is entered in the store until it ends; from then on it is like any other. So the way of tokens made
//! here does not lead through this file at all, and that of a signed one only once.

mod fetch;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pinion_access::{KeySet, SignedToken, TokenStore, TrustedIssuer};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_status::{Code, Failure};
use reqwest::Url;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use self::fetch::{Source, is_loopback};

/// How often keys are fetched because a token names one that is not there.
const ASK_AGAIN: Duration = Duration::from_secs(60);
/// How soon an issuer is asked again whose keys could not be had.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// Keys that are older are fetched anew, while they go on being good.
const FRESH: Duration = Duration::from_secs(3600);

/// An issuer of tokens that a hub trusts.
#[derive(Debug, Clone)]
pub struct Issuer {
    address: Url,
    trust: TrustedIssuer,
}

impl Issuer {
    /// The issuer at `address`, which is what its tokens say in `iss`: https, or http on this machine.
    ///
    /// With an audience only tokens count that are meant for it; without `manage` their bearers install, remove and bind nothing.
    pub fn new(address: &str, audience: Option<String>, manage: bool) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::invalid(format!("{address:?} is no issuer: {why}"));
        let issuer = address.trim().to_owned();
        let address = Url::parse(&issuer).map_err(|error| wrong(&error.to_string()))?;
        let is_safe = match address.scheme() {
            "https" => true,
            "http" => is_loopback(&address),
            _ => false,
        };
        if !is_safe {
            return Err(wrong("it takes an https address"));
        }
        let is_plain = address.query().is_none() && address.fragment().is_none();
        if !is_plain || !address.username().is_empty() || address.password().is_some() {
            return Err(wrong("it is more than an address"));
        }
        Ok(Self {
            address,
            trust: TrustedIssuer {
                issuer,
                audience,
                manage,
            },
        })
    }
}

/// What is known of an issuer's keys.
pub(crate) struct Keys {
    shared: Arc<Shared>,
}

struct Shared {
    issuer: Issuer,
    log: Arc<ClipLog>,
    known: RwLock<Known>,
    /// Held while keys are fetched, so that many who miss one ask once.
    source: Arc<Mutex<Source>>,
}

#[derive(Default)]
struct Known {
    keys: Option<Arc<KeySet>>,
    /// When they were fetched, or that was last tried.
    tried: Option<Instant>,
    /// When they were last fetched because of a key that was not there.
    missed: Option<Instant>,
}

impl Keys {
    pub fn new(issuer: Issuer, log: Arc<ClipLog>) -> Self {
        let shared = Shared {
            source: Arc::new(Mutex::new(Source::of(&issuer.address))),
            issuer,
            log,
            known: RwLock::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Enters `token` in `store` if the issuer signed it. Tokens of another make, and those that are known, are left alone.
    pub async fn recognise(&self, store: &TokenStore, token: &str) -> Result<(), Failure> {
        let signed = match SignedToken::read(token) {
            None => return Ok(()),
            Some(_) if store.is_known(token) => return Ok(()),
            Some(signed) => signed?,
        };
        let vouched = signed.check(&self.shared.issuer.trust, store.clock().now())?;
        self.verify(&signed).await?;
        store.accept_signed(token, vouched)
    }

    async fn verify(&self, signed: &SignedToken) -> Result<(), Failure> {
        let shared = &self.shared;
        let mut keys = shared.keys();
        if keys.is_none() {
            keys = shared.fetch(Reason::First).await;
        }
        let keys = keys.ok_or_else(|| {
            let message = "the keys of the token's issuer cannot be had; the hub's log says why";
            Failure::new(Code::Unauthenticated, message)
        })?;
        shared.refresh();
        if let Some(outcome) = signed.is_signed_by(&keys) {
            return outcome;
        }
        let newer = shared.fetch(Reason::Missing(keys)).await;
        let outcome = newer.and_then(|keys| signed.is_signed_by(&keys));
        outcome.unwrap_or_else(|| {
            let message = "the token is not signed with a key that its issuer shows";
            Err(Failure::new(Code::Unauthenticated, message))
        })
    }
}

/// Why keys are to be fetched.
enum Reason {
    /// There are none yet.
    First,
    /// The one that is wanted is not among these.
    Missing(Arc<KeySet>),
}

impl Shared {
    fn keys(&self) -> Option<Arc<KeySet>> {
        self.read(|known| known.keys.clone())
    }

    /// Fetches keys unless somebody else just did or it is too soon. The keys there are then; those from before if it failed.
    async fn fetch(self: &Arc<Self>, reason: Reason) -> Option<Arc<KeySet>> {
        let source = self.source.clone().lock_owned().await;
        let is_due = self.write(|known| match &reason {
            Reason::First => {
                known.keys.is_none() && known.tried.is_none_or(|it| it.elapsed() >= TRY_AGAIN)
            }
            Reason::Missing(keys) => {
                let is_same = known.keys.as_ref().is_some_and(|it| Arc::ptr_eq(it, keys));
                let is_due = is_same && known.missed.is_none_or(|it| it.elapsed() >= ASK_AGAIN);
                if is_due {
                    known.missed = Some(Instant::now());
                }
                is_due
            }
        });
        if is_due {
            // Whoever asks may go away; what was begun is of use to the next.
            let _ = tokio::spawn(self.clone().fetch_from(source)).await;
        }
        self.keys()
    }

    /// Fetches keys that are old, without anybody waiting for it.
    fn refresh(self: &Arc<Self>) {
        let is_old = |known: &Known| known.tried.is_none_or(|it| it.elapsed() > FRESH);
        if !self.read(is_old) {
            return;
        }
        if let Ok(source) = self.source.clone().try_lock_owned()
            && self.read(is_old)
        {
            tokio::spawn(self.clone().fetch_from(source));
        }
    }

    async fn fetch_from(self: Arc<Self>, mut source: OwnedMutexGuard<Source>) {
        let fetched = source.fetch().await;
        let failed = self.write(|known| {
            known.tried = Some(Instant::now());
            fetched.map(|keys| known.keys = Some(Arc::new(keys))).err()
        });
        if let Some(why) = failed {
            let issuer = &self.issuer.trust.issuer;
            let message = format!("the keys of {issuer} cannot be had: {why}");
            self.log.push(Level::Warn, Origin::System, &message);
        }
    }

    fn read<T>(&self, look: impl FnOnce(&Known) -> T) -> T {
        look(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Known) -> T) -> T {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Keys")
            .field("issuer", &self.shared.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
