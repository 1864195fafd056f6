//! The hub: a server that makes clips available to people, programs and agents.
//!
//! A [`Hub`] maps aliases to endpoints ([`Table`]) and passes calls on to any [`Endpoint`]: a clip installed here
//! ([`Runtime`]), a clip of a remote provider, or a part of this program. It serves its methods over Connect and gRPC,
//! and clip pages and the portal over HTTP. `pinion-access` decides who may do what, `pinion-connect` implements the
//! wire protocols, and `pinion-clip` runs processes. The owner of the hub chooses which parts of the program are
//! endpoints.

mod background;
mod call_record;
mod convert;
mod endpoint;
mod hub;
mod import;
mod input;
mod issuer;
mod join;
mod limits;
mod local_hub;
mod monitoring;
mod neighbours;
mod open;
mod pages;
mod pid_file;
mod portal;
mod provider;
mod queue;
mod root_dir;
mod runtime;
mod serve;
mod service;
mod service_manager;
mod signals;
mod table;

pub use background::BackgroundHub;
pub use endpoint::{
    Answers, DeadlineOrigin, Endpoint, HubCall, Input, InputPart, PartPosition, answered, failed,
};
pub use hub::{Hub, Mode, Settings};
pub use import::PinixDirectory;
pub use input::with_whole_input;
pub use issuer::Issuer;
pub use join::{
    Accepts, JoinOptions, JoinState, Joined, Offer, OfferedClips, RemoteHub, host_name, join,
    open_runtime, provider_name, stable_port,
};
pub use limits::Limits;
pub use local_hub::LocalHub;
pub use neighbours::{
    CLUSTER_ID, Claim, Claimant, Claimed, Neighbours, NotHere, RemoteProvider, RemoteRequest,
    SharedRoute, Standing, isolated, own_provider_name, state_of,
};
pub use open::{OpenedHub, open};
pub use pid_file::{HubLock, HubProcess, ProcessRole, STOP_TIMEOUT, pid_file};
pub use root_dir::root_dir;
pub use runtime::{ConfigureClip, Installed, Runtime};
pub use serve::{HubListener, Listening, allowed_origins, shut_down};
pub use service::PREFIXES;
pub use service_manager::{ServiceState, report};
pub use signals::Signals;
pub use table::{Conflict, Departure, Owner, Reservation, Route, Table};
