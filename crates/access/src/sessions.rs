//! Sessions of browsers: a cookie instead of a token, with the same rights, for a while.
//!
//! They are in memory only. Each names the token it was opened with, and is worth nothing without it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use pinion_status::Failure;

use crate::gate::Transport;
use crate::token::{Fingerprint, random};
use crate::{Clock, Millis, SESSION_COOKIE, TokenId};

/// How long a session lasts.
const LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// How many there may be; the oldest goes when there is one more.
const MOST: usize = 256;

/// The sessions there are.
pub struct Sessions {
    clock: Clock,
    open: Mutex<VecDeque<Session>>,
}

struct Session {
    id: Fingerprint,
    token: TokenId,
    ends: Millis,
}

impl Sessions {
    /// No sessions yet.
    pub fn new(clock: Clock) -> Self {
        let open = Mutex::default();
        Self { clock, open }
    }

    /// Opens a session for the bearer of `token`; the value of a `Set-Cookie` header.
    pub fn open(&self, token: TokenId, transport: Transport) -> Result<String, Failure> {
        let secret = URL_SAFE_NO_PAD.encode(random::<32>()?);
        let id = Fingerprint::of(&secret);
        let (now, ends) = (self.clock.now(), self.clock.after(LIFETIME));
        let mut open = self.sessions();
        open.retain(|session| session.ends > now);
        if open.len() >= MOST {
            open.pop_front();
        }
        open.push_back(Session { id, token, ends });
        Ok(cookie(&secret, LIFETIME, transport))
    }

    /// The token that the session with this secret was opened with.
    pub fn token_of(&self, secret: &str) -> Option<TokenId> {
        let (id, now) = (Fingerprint::of(secret), self.clock.now());
        let open = self.sessions();
        let session = open.iter().find(|session| session.id == id)?;
        (session.ends > now).then(|| session.token.clone())
    }

    /// Ends a session.
    pub fn close(&self, secret: &str) {
        let id = Fingerprint::of(secret);
        self.sessions().retain(|session| session.id != id);
    }

    /// The value of a `Set-Cookie` header after which there is no cookie.
    pub fn cookie_taken_back() -> String {
        cookie("", Duration::ZERO, Transport::Plain)
    }

    fn sessions(&self) -> MutexGuard<'_, VecDeque<Session>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn cookie(secret: &str, lifetime: Duration, transport: Transport) -> String {
    let secure = match transport {
        Transport::Tls => "; Secure",
        Transport::Plain => "",
    };
    let seconds = lifetime.as_secs();
    format!(
        "{SESSION_COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}"
    )
}

impl fmt::Debug for Sessions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.sessions().len();
        formatter
            .debug_struct("Sessions")
            .field("open", &open)
            .finish_non_exhaustive()
    }
}
