//! Hubs of a cluster through the binary, over real NATS servers. `PINION_TEST_NATS` names `nats-server`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    dead_code,
    reason = "tests; the stage is shared with those of single hubs"
)]

mod losing;
mod refusing;
mod sharing;
#[path = "../hub/stage.rs"]
mod stage;
