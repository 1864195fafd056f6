//! Many hubs as one namespace of clips, over NATS.
//!
//! Nothing here elects, replicates or gossips: the servers do. An [`Epoch`](bus::Epoch) is a connection that never reconnects
//! by itself, so that nothing in flight is sent later. [`store`] makes the few requests to JetStream, [`feed`] follows
//! a bucket without a gap, and [`members`] judges who is there.
//!
//! This is the only crate that knows NATS. The hub knows it through traits of its own.

pub mod access;
pub mod bus;
mod clock;
pub mod credentials;
pub mod feed;
pub mod members;
mod mirror;
pub mod names;
mod node;
pub mod rights;
pub mod servers;
pub mod store;
pub mod stream;
pub mod talk;
mod values;

pub use node::{Node, NodeOptions};
