//! Authentication and permissions of a hub.
//!
//! [`TokenStore`] stores hashed tokens in a file that a daemon and command lines may change at the same time. A
//! [`Gate`] turns the credentials of a request (a bearer token, a session cookie, or nothing) into a [`Caller`]. The
//! caller's [`Principal`] decides from one table which [`Method`]s it may call and which clips it sees. A [`Lease`]
//! ends open streams when their token is revoked or expires. A [`SignedToken`] was created by an issuer that the hub
//! trusts; the store accepts it after its signature was checked. [`client`] is the other side: it finds the token that
//! a program sends.
//!
//! Not part of this crate: sockets, headers other than `Authorization` and `Cookie`, the list of served origins and
//! hosts, clips themselves, the call secrets of clips, and the wire form of a [`Failure`](pinion_status::Failure).
//!
//! ```
//! # fn main() -> Result<(), pinion_status::Failure> {
//! # let root = tempfile::tempdir().unwrap();
//! use pinion_access::{Gate, Method, Mode, Peer, TokenStore, bootstrap};
//!
//! let store = TokenStore::open(root.path())?;
//! let local = bootstrap(&store)?; // the local token, in a file only its owner can read
//! let gate = Gate::new(Mode::Secured, store);
//! let authorization = format!("Bearer {}", local.token.reveal());
//! let caller = gate.admit(Some(&authorization), None, Peer::LOCAL)?;
//! caller.may(Method::AddClip)?;
//! # Ok(())
//! # }
//! ```

mod bootstrap;
pub mod client;
mod clock;
mod disk;
mod gate;
mod grant;
mod header;
mod import;
mod lease;
mod local;
mod method;
mod permissions;
mod principal;
mod record;
mod scope;
mod sessions;
mod signed;
mod store;
mod token;

pub use bootstrap::{LocalToken, bootstrap};
pub use clock::{Clock, Millis};
pub use gate::{Caller, Gate, Mode, Origin, Peer, Transport, Via};
pub use grant::{DEFAULT_LIFETIME, Grant, NewToken, parse_expiry};
pub use header::{SESSION_COOKIE, bearer, session_of};
pub use import::{Import, import_super_token};
pub use lease::Lease;
pub use local::{LOCAL_TOKEN, local_token};
pub use method::Method;
pub use permissions::Permission;
pub use principal::{ClipView, Principal};
pub use record::Record;
pub use scope::Scope;
pub use sessions::Sessions;
pub use signed::{KeySet, SignedToken, TrustedIssuer, VerifiedGrant};
pub use store::{EphemeralToken, Minted, SharedTrust, TOKENS, TokenStore};
pub use token::{Token, TokenId, TokenKind};
