//! The crate against real servers. `PINION_TEST_NATS` names `nats-server`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod calls;
mod campaign;
mod epochs;
mod following;
mod hubs;
mod moving;
mod rights;
mod stage;
mod writing;
