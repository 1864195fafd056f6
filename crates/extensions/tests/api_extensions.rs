//! Extensions in a real session: their events, their changes and their requests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

#[path = "api/actions.rs"]
mod actions;
#[path = "api/children.rs"]
mod children;
#[path = "api/delivery.rs"]
mod delivery;
#[path = "api/dialogs.rs"]
mod dialogs;
#[path = "api/events.rs"]
mod events;
#[path = "api/flood.rs"]
mod flood;
#[path = "api/loading.rs"]
mod loading;
#[path = "api/memory.rs"]
mod memory;
#[path = "api/model.rs"]
mod model;
#[path = "api/modern.rs"]
mod modern;
#[path = "api/modern_runs.rs"]
mod modern_runs;
#[path = "api/nested.rs"]
mod nested;
#[path = "api/replacing.rs"]
mod replacing;
#[path = "api/room.rs"]
mod room;
#[path = "api/stage.rs"]
mod stage;
#[path = "api/tools.rs"]
mod tools;
