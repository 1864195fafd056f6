//! Who may do what on a hub.
//!
//! [`TokenStore`] keeps tokens, hashed, in a file that a daemon and command lines may change at the same time. A [`Gate`] makes a
//! [`Caller`] of what a request presents: a bearer token, a session cookie, or nothing. The caller's [`Principal`] knows which
//! [`Method`]s it may call and which clips it sees, from one table. A [`Lease`] ends what is still open when its token goes.
//! A [`Signed`] token was made by somebody the hub trusts, and is recognised once the store was told so.
//! [`client`] is the other side: where programs find the token they present.
//!
//! Left to others: sockets, headers other than `Authorization` and `Cookie`, which origins and hosts are served, what a clip is,
//! the secrets some clips want to hear from their callers, and how a [`Failure`](pinion_status::Failure) looks on a wire.
//!
//! ```
//! # fn main() -> Result<(), pinion_status::Failure> {
//! # let root = tempfile::tempdir().unwrap();
//! use pinion_access::{Gate, Method, Mode, Peer, TokenStore, bootstrap};
//!
//! let store = TokenStore::open(root.path())?;
//! let entrance = bootstrap(&store)?; // the local token, in a file only its owner can read
//! let gate = Gate::new(Mode::Secured, store);
//! let authorization = format!("Bearer {}", entrance.token.reveal());
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
mod principal;
mod record;
mod rights;
mod scope;
mod sessions;
mod signed;
mod store;
mod token;

pub use bootstrap::{Entrance, bootstrap};
pub use clock::{Clock, Millis};
pub use gate::{Caller, Gate, Mode, Origin, Peer, Transport, Via};
pub use grant::{DEFAULT_LIFETIME, Grant, NewToken, parse_expiry};
pub use header::{SESSION_COOKIE, bearer, session_of};
pub use import::{Import, import_super_token};
pub use lease::Lease;
pub use local::{LOCAL_TOKEN, local_token};
pub use method::Method;
pub use principal::{ClipView, Principal};
pub use record::Record;
pub use rights::Right;
pub use scope::Scope;
pub use sessions::Sessions;
pub use signed::{KeySet, Signed, Trust, Vouched};
pub use store::{Minted, PassingToken, TOKENS, TokenStore};
pub use token::{Kind, Token, TokenId};
