//! From what a request presents to who asks.

use std::ops::Deref;
use std::str::FromStr;

use pinion_status::Failure;

use crate::principal::token_required;
use crate::store::unreadable;
use crate::{Lease, Principal, Sessions, TokenId, TokenStore, bearer, session_of};

/// What a hub lets callers do who show no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing but ask what it is.
    #[default]
    Secured,
    /// List and call, but not install, remove, bind or write data.
    Manage,
    /// Everything, if they are on the same machine. Only for a hub that listens on loopback alone.
    OpenLocal,
}

impl Mode {
    /// The mode as the command line names it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secured => "token",
            Self::Manage => "manage",
            Self::OpenLocal => "none",
        }
    }

    /// Whether calls need a token.
    pub fn requires_token(self) -> bool {
        self == Self::Secured
    }
}

impl FromStr for Mode {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let modes = [Self::Secured, Self::Manage, Self::OpenLocal];
        let named = modes.into_iter().find(|mode| mode.as_str() == text);
        named.ok_or_else(|| {
            Failure::invalid(format!(
                "{text:?} is not a way to let callers in: there are token, manage and none"
            ))
        })
    }
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Whether its connection comes from this machine.
    pub loopback: bool,
    /// Whose web page sent it.
    pub origin: Origin,
}

impl Peer {
    /// A program on this machine.
    pub const LOCAL: Self = Self {
        loopback: true,
        origin: Origin::Absent,
    };
}

/// Whose web page a request comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// From none: a program, or somebody who typed the address.
    Absent,
    /// From one that we serve.
    Served,
    /// From any other.
    Foreign,
}

impl Origin {
    /// What the headers `Origin` and `Sec-Fetch-Site` say; `is_served` knows the origins we serve.
    ///
    /// Browsers leave `Origin` out when a page fetches a picture or a script, with cookies; `Sec-Fetch-Site` tells even then whether the page
    /// is another's, also where only the port is.
    pub fn of(
        origin: Option<&str>,
        sec_fetch_site: Option<&str>,
        is_served: impl Fn(&str) -> bool,
    ) -> Self {
        match (origin.map(str::trim), sec_fetch_site.map(str::trim)) {
            (Some(origin), _) if is_served(origin) => Self::Served,
            (Some(_), _) => Self::Foreign,
            (None, None | Some("none")) => Self::Absent,
            (None, Some("same-origin")) => Self::Served,
            (None, Some(_)) => Self::Foreign,
        }
    }
}

/// How a caller showed who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Not at all.
    Nothing,
    /// With a token in the `Authorization` header.
    Token,
    /// With a cookie, which browsers send without being asked: see that the request could not come from another page.
    Session,
}

/// Who asks, and with which token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub principal: Principal,
    /// The id of the token it showed.
    pub token: Option<TokenId>,
    /// How it showed it.
    pub via: Via,
}

impl Caller {
    fn without_token(principal: Principal) -> Self {
        let (token, via) = (None, Via::Nothing);
        Self {
            principal,
            token,
            via,
        }
    }
}

impl Deref for Caller {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.principal
    }
}

/// Where requests come in.
#[derive(Debug)]
pub struct Gate {
    mode: Mode,
    store: TokenStore,
    sessions: Sessions,
}

impl Gate {
    /// A gate that knows these tokens.
    pub fn new(mode: Mode, store: TokenStore) -> Self {
        let sessions = Sessions::new(store.clock().clone());
        Self {
            mode,
            store,
            sessions,
        }
    }

    /// What it lets callers do who show no token.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The tokens it knows.
    pub fn store(&self) -> &TokenStore {
        &self.store
    }

    /// Who presents these headers. A token that is unknown, expired or revoked is `unauthenticated`, whatever the mode.
    ///
    /// Cookies count only where there is no token, and not from pages of others.
    pub fn admit(
        &self,
        authorization: Option<&str>,
        cookie: Option<&str>,
        peer: Peer,
    ) -> Result<Caller, Failure> {
        let token = authorization.and_then(bearer);
        let session = cookie.and_then(session_of);
        match (token, session) {
            (None, Some(session)) if peer.origin != Origin::Foreign => {
                self.by_session(session, peer)
            }
            _ => self.authenticate(token, peer),
        }
    }

    /// Who shows this token, or none.
    pub fn authenticate(&self, token: Option<&str>, peer: Peer) -> Result<Caller, Failure> {
        let Some(token) = token else {
            return self.without_token(peer);
        };
        let entry = self.store.recognise(token)?;
        Ok(Caller {
            principal: entry.principal.clone(),
            token: Some(entry.record.id.clone()),
            via: Via::Token,
        })
    }

    /// Opens a session for whoever showed a token, and gives the value of the `Set-Cookie` header that carries it.
    pub fn open_session(&self, caller: &Caller, transport: Transport) -> Result<String, Failure> {
        let token = caller.token.clone().ok_or_else(token_required)?;
        self.sessions.open(token, transport)
    }

    /// Ends the session in a `Cookie` header, and gives the value of the `Set-Cookie` header that takes it back.
    pub fn close_session(&self, cookie: Option<&str>) -> String {
        if let Some(session) = cookie.and_then(session_of) {
            self.sessions.close(session);
        }
        Sessions::cookie_taken_back()
    }

    /// Ends when the token that `caller` showed is revoked or expires.
    pub fn watch(&self, caller: &Caller) -> Lease {
        Lease::new(self.store.clone(), caller.token.clone())
    }

    fn without_token(&self, peer: Peer) -> Result<Caller, Failure> {
        let foreign = peer.origin == Origin::Foreign;
        match self.mode {
            Mode::OpenLocal if peer.loopback && !foreign => {
                Ok(Caller::without_token(Principal::Super))
            }
            Mode::OpenLocal => Err(token_required()),
            Mode::Manage if !foreign => Ok(Caller::without_token(Principal::Guest)),
            Mode::Manage | Mode::Secured => Ok(Caller::without_token(Principal::Anonymous)),
        }
    }

    fn by_session(&self, session: &str, peer: Peer) -> Result<Caller, Failure> {
        let Some(token) = self.sessions.token_of(session) else {
            return self.without_token(peer);
        };
        match self.store.by_id(&token) {
            Ok(_) if self.store.trouble().is_some() => Err(unreadable()),
            Ok(entry) => Ok(Caller {
                principal: entry.principal.clone(),
                token: Some(token),
                via: Via::Session,
            }),
            Err(_) => {
                self.sessions.close(session);
                self.without_token(peer)
            }
        }
    }
}

/// What carries a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP in the clear, on loopback.
    Plain,
    /// TLS; the cookie is never sent without it.
    Tls,
}
