//! Browser sessions: a cookie in place of a token, with the same permissions, for a limited time.
//!
//! They are in memory only. Each refers to the token it was opened with and ends with it.

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

/// The lifetime of a session: twelve hours.
const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// The number of sessions; opening one more ends the oldest.
const MAX_SESSIONS: usize = 256;

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
    pub fn new(clock: Clock) -> Self {
        let open = Mutex::default();
        Self { clock, open }
    }

    /// Opens a session for the bearer of `token`. Returns the value of a `Set-Cookie` header.
    pub fn open(&self, token: TokenId, transport: Transport) -> Result<String, Failure> {
        let secret = URL_SAFE_NO_PAD.encode(random::<32>()?);
        let id = Fingerprint::of(&secret);
        let (now, ends) = (self.clock.now(), self.clock.after(SESSION_LIFETIME));
        let mut open = self.sessions();
        open.retain(|session| session.ends > now);
        if open.len() >= MAX_SESSIONS {
            open.pop_front();
        }
        open.push_back(Session { id, token, ends });
        Ok(cookie(&secret, SESSION_LIFETIME, transport))
    }

    /// Returns the token that the session with this secret was opened with.
    pub fn token_of(&self, secret: &str) -> Option<TokenId> {
        let (id, now) = (Fingerprint::of(secret), self.clock.now());
        let open = self.sessions();
        let session = open.iter().find(|session| session.id == id)?;
        (session.ends > now).then(|| session.token.clone())
    }

    pub fn close(&self, secret: &str) {
        let id = Fingerprint::of(secret);
        self.sessions().retain(|session| session.id != id);
    }

    /// Returns the value of a `Set-Cookie` header that deletes the cookie.
    pub fn expired_cookie() -> String {
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
