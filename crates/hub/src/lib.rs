//! The hub: where clips, remote providers and their callers meet.
//!
//! A [`Hub`] knows who answers to which alias ([`Table`]) and lets calls through to whatever is an [`Endpoint`]: a clip installed
//! here ([`Runtime`]), a clip of a remote provider, a part of this program. It serves its methods over Connect and gRPC, clip
//! pages and the portal over HTTP; who may do what is decided by `pinion-access`, the wire is spoken by `pinion-connect`, and
//! processes are run by `pinion-clip`. Which parts of the program are endpoints is left to the owner.

mod convert;
mod endpoint;
mod hub;
mod input;
mod inside;
mod issuer;
mod join;
mod limits;
mod open;
mod pages;
mod portal;
mod provider;
mod queue;
mod runtime;
mod service;
mod table;

pub use endpoint::{Answers, Call, Endpoint, Input, Part, Patience, Rank, answered, failed};
pub use hub::{Hub, Mode, Settings};
pub use input::with_whole_input;
pub use inside::Inside;
pub use issuer::Issuer;
pub use join::{
    Abroad, Accepts, JoinOptions, JoinState, Joined, Offer, Shown, host_name, join, open_runtime,
    provider_name,
};
pub use limits::Limits;
pub use open::{Opened, open};
pub use runtime::{Equip, Installed, Runtime};
pub use service::PREFIXES;
pub use table::{Conflict, Departure, Owner, Reservation, Route, Table};
