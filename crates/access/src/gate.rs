//! Authenticates requests: turns their headers into a caller.

use std::ops::Deref;
use std::str::FromStr;

use pinion_status::Failure;

use crate::principal::token_required;
use crate::store::unreadable;
use crate::{Lease, Principal, Sessions, TokenId, TokenStore, bearer, session_of};

/// The rights of callers without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// They may only ask for the hub's description.
    #[default]
    Secured,
    /// They may list and call, but not install, remove, bind or write data.
    Manage,
    /// They may do everything, if they are on the same machine. Only for a hub that listens on loopback alone.
    OpenLocal,
}

impl Mode {
    /// Returns the name of the mode on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secured => "token",
            Self::Manage => "manage",
            Self::OpenLocal => "none",
        }
    }

    /// Reports whether calls require a token.
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
            Failure::invalid(format!("unknown mode {text:?}; use token, manage or none"))
        })
    }
}

/// The origin of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The connection comes from this machine.
    pub loopback: bool,
    /// The web page that sent the request.
    pub origin: Origin,
}

impl Peer {
    /// A program on this machine.
    pub const LOCAL: Self = Self {
        loopback: true,
        origin: Origin::Absent,
    };
}

/// The kind of web page that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Not a web page: a program, or an address typed into a browser.
    Absent,
    /// A page that the hub serves.
    Served,
    /// Any other page.
    Foreign,
}

impl Origin {
    /// Derives the origin from the headers `Origin` and `Sec-Fetch-Site`; `is_served` recognises the origins that the
    /// hub serves.
    ///
    /// Browsers omit `Origin` when a page fetches an image or a script, with cookies. `Sec-Fetch-Site` shows even then
    /// whether the page has another origin, including another port.
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

/// The way in which a caller authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The caller did not authenticate.
    Nothing,
    /// With a token in the `Authorization` header.
    Token,
    /// With a cookie. Browsers send cookies with every request, so check that the request does not come from another
    /// site.
    Session,
}

/// An authenticated caller and its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub principal: Principal,
    /// The id of the caller's token.
    pub token: Option<TokenId>,
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

/// Authenticates requests with the tokens of a store.
#[derive(Debug)]
pub struct Gate {
    mode: Mode,
    store: TokenStore,
    sessions: Sessions,
}

impl Gate {
    pub fn new(mode: Mode, store: TokenStore) -> Self {
        let sessions = Sessions::new(store.clock().clone());
        Self {
            mode,
            store,
            sessions,
        }
    }

    /// Returns the rights of callers without a token.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    pub fn store(&self) -> &TokenStore {
        &self.store
    }

    /// Authenticates the sender of these headers. An unknown, expired or revoked token fails with `unauthenticated` in
    /// every mode.
    ///
    /// Cookies are used only if there is no token and the page is not foreign.
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

    /// Authenticates the sender of this token, or of none.
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

    /// Opens a session for a caller with a token. Returns the value of the `Set-Cookie` header.
    pub fn open_session(&self, caller: &Caller, transport: Transport) -> Result<String, Failure> {
        let token = caller.token.clone().ok_or_else(token_required)?;
        self.sessions.open(token, transport)
    }

    /// Ends the session in a `Cookie` header. Returns the value of the `Set-Cookie` header that deletes the cookie.
    pub fn close_session(&self, cookie: Option<&str>) -> String {
        if let Some(session) = cookie.and_then(session_of) {
            self.sessions.close(session);
        }
        Sessions::expired_cookie()
    }

    /// Returns a lease that ends when the token of `caller` is revoked or expires.
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
            Ok(_) if self.store.read_error().is_some() => Err(unreadable()),
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

/// The transport of a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP without encryption, on loopback.
    Plain,
    /// TLS; the cookie is never sent without it.
    Tls,
}
