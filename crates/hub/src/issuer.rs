//! Tokens of an issuer that the hub trusts: fetching the issuer's keys when they are first needed, and verifying tokens
//! signed with them.
//!
//! A verified token is entered in the token store until it expires, and is then treated like any other. Tokens that the
//! hub made never pass through this module, and a signed token only once.

mod fetch;

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use pinion_access::{KeySet, SignedToken, TokenStore, TrustedIssuer};
use pinion_clip::logs::{ClipLog, Level, Origin};
use pinion_http::{Url, is_loopback};
use pinion_status::{Code, Failure};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::time::Instant;

use self::fetch::KeySource;

/// The shortest time between two fetches that are caused by tokens with unknown keys, so that forged tokens cannot
/// cause many requests.
const UNKNOWN_KEY_INTERVAL: Duration = Duration::from_secs(60);
/// The wait after a failed fetch before the next attempt.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The age at which keys are fetched again; they stay valid meanwhile.
const REFRESH_AGE: Duration = Duration::from_secs(3600);

/// An issuer of tokens that a hub trusts.
#[derive(Debug, Clone)]
pub struct Issuer {
    address: Url,
    trust: TrustedIssuer,
}

impl Issuer {
    /// Creates the issuer at `address`, which its tokens contain as `iss`. The address must use https, or http on this
    /// machine.
    ///
    /// With an audience, only tokens for that audience are accepted. Without `manage`, their bearers cannot install,
    /// remove or bind clips.
    pub fn new(address: &str, audience: Option<String>, manage: bool) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::invalid(format!(
                "{address:?} is not the address of an issuer: {why}"
            ))
        };
        let issuer = address.trim().to_owned();
        let address = Url::parse(&issuer).map_err(|error| wrong(&error.to_string()))?;
        let is_safe = match address.scheme() {
            "https" => true,
            "http" => is_loopback(&address),
            _ => false,
        };
        if !is_safe {
            return Err(wrong("use an https address"));
        }
        let is_plain = address.query().is_none() && address.fragment().is_none();
        if !is_plain || !address.username().is_empty() || address.password().is_some() {
            return Err(wrong("remove the query, fragment, user name and password"));
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

/// The verifier of an issuer's tokens, with the keys fetched so far.
pub(crate) struct Keys {
    cache: Arc<KeyCache>,
}

struct KeyCache {
    issuer: Issuer,
    log: Arc<ClipLog>,
    cached: RwLock<CachedKeys>,
    /// Locked during a fetch, so that simultaneous requests cause only one.
    source: Arc<Mutex<KeySource>>,
}

#[derive(Default)]
struct CachedKeys {
    keys: Option<Arc<KeySet>>,
    /// The time of the latest fetch, successful or not.
    tried: Option<Instant>,
    /// The time of the latest fetch that an unknown key caused.
    missed: Option<Instant>,
}

impl Keys {
    pub fn new(issuer: Issuer, log: Arc<ClipLog>) -> Self {
        let cache = KeyCache {
            source: Arc::new(Mutex::new(KeySource::of(&issuer.address))),
            issuer,
            log,
            cached: RwLock::default(),
        };
        Self {
            cache: Arc::new(cache),
        }
    }

    /// Enters `token` in `store` if the issuer signed it. Ignores tokens of other kinds and tokens that are in the
    /// store already.
    pub async fn recognise(&self, store: &TokenStore, token: &str) -> Result<(), Failure> {
        let signed = match SignedToken::read(token) {
            None => return Ok(()),
            Some(_) if store.is_known(token) => return Ok(()),
            Some(signed) => signed?,
        };
        let vouched = signed.check(&self.cache.issuer.trust, store.clock().now())?;
        self.verify(&signed).await?;
        store.accept_signed(token, vouched)
    }

    async fn verify(&self, signed: &SignedToken) -> Result<(), Failure> {
        let cache = &self.cache;
        let mut keys = cache.keys();
        if keys.is_none() {
            keys = cache.fetch(Reason::First).await;
        }
        let keys = keys.ok_or_else(|| {
            let message = "the keys of the token's issuer could not be fetched; see the hub's log for the reason";
            Failure::new(Code::Unauthenticated, message)
        })?;
        cache.refresh();
        if let Some(outcome) = signed.is_signed_by(&keys) {
            return outcome;
        }
        let newer = cache.fetch(Reason::Missing(keys)).await;
        let outcome = newer.and_then(|keys| signed.is_signed_by(&keys));
        outcome.unwrap_or_else(|| {
            let message = "the token is not signed with a key that its issuer publishes";
            Err(Failure::new(Code::Unauthenticated, message))
        })
    }
}

/// The cause of a fetch.
enum Reason {
    /// No keys have been fetched.
    First,
    /// The key of a token is not among these.
    Missing(Arc<KeySet>),
}

impl KeyCache {
    fn keys(&self) -> Option<Arc<KeySet>> {
        self.read(|cached| cached.keys.clone())
    }

    /// Fetches keys unless another task just did or the last attempt is too recent. Returns the current keys, which are
    /// the earlier ones if the fetch failed.
    async fn fetch(self: &Arc<Self>, reason: Reason) -> Option<Arc<KeySet>> {
        let source = self.source.clone().lock_owned().await;
        let is_due = self.write(|cached| match &reason {
            Reason::First => {
                cached.keys.is_none()
                    && cached.tried.is_none_or(|it| it.elapsed() >= RETRY_INTERVAL)
            }
            Reason::Missing(keys) => {
                let is_same = cached.keys.as_ref().is_some_and(|it| Arc::ptr_eq(it, keys));
                let is_due = is_same
                    && cached
                        .missed
                        .is_none_or(|it| it.elapsed() >= UNKNOWN_KEY_INTERVAL);
                if is_due {
                    cached.missed = Some(Instant::now());
                }
                is_due
            }
        });
        if is_due {
            // The caller may stop waiting; the keys are still useful for the next one.
            let _ = tokio::spawn(self.clone().fetch_from(source)).await;
        }
        self.keys()
    }

    /// Starts to fetch keys in the background if the present ones are old.
    fn refresh(self: &Arc<Self>) {
        let is_old = |cached: &CachedKeys| cached.tried.is_none_or(|it| it.elapsed() > REFRESH_AGE);
        if !self.read(is_old) {
            return;
        }
        if let Ok(source) = self.source.clone().try_lock_owned()
            && self.read(is_old)
        {
            tokio::spawn(self.clone().fetch_from(source));
        }
    }

    async fn fetch_from(self: Arc<Self>, mut source: OwnedMutexGuard<KeySource>) {
        let fetched = source.fetch().await;
        let failed = self.write(|cached| {
            cached.tried = Some(Instant::now());
            fetched.map(|keys| cached.keys = Some(Arc::new(keys))).err()
        });
        if let Some(why) = failed {
            let issuer = &self.issuer.trust.issuer;
            let message = format!("the keys of {issuer} could not be fetched: {why}");
            self.log.push(Level::Warn, Origin::System, &message);
        }
    }

    fn read<T>(&self, inspect: impl FnOnce(&CachedKeys) -> T) -> T {
        inspect(&self.cached.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut CachedKeys) -> T) -> T {
        change(&mut self.cached.write().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Keys")
            .field("issuer", &self.cache.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
