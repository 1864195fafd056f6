//! What scripts may do to the machine: the native functions behind `pinion:ops`, one file per group.
//!
//! A group is an object: `ops.fs.readFile(…)`. Synchronous operations are plain functions;
//! asynchronous ones give a promise and run on the thread of the engine, with blocking work moved
//! off it. An operation that may wait for long ends when `Shared::closed` is cancelled.

mod api;
mod buffer;
mod bytes;
mod child;
mod core;
mod crypto;
mod display;
mod fault;
mod fs;
mod http;
mod intl;
mod llm;
mod modules;
mod net;
mod os;
mod process;
mod text;
mod timers;
mod tools;
mod url;
mod zlib;

pub(crate) use process::environment;
pub use process::{changed_environment, environment_variable};

use rquickjs::{Ctx, Object, Result};

use crate::script::Shared;
pub(crate) use crate::script::raw::bytes_of;

/// Every operation, for one generation.
pub(crate) fn all<'js>(ctx: &Ctx<'js>, host: &Shared) -> Result<Object<'js>> {
    let ops = Object::new(ctx.clone())?;
    api::install(ctx, &ops, host)?;
    core::install(ctx, &ops, host)?;
    modules::install(ctx, &ops, host)?;
    timers::install(ctx, &ops, host)?;
    url::install(ctx, &ops, host)?;
    text::install(ctx, &ops, host)?;
    intl::install(ctx, &ops, host)?;
    http::install(ctx, &ops, host)?;
    display::install(ctx, &ops, host)?;
    llm::install(ctx, &ops, host)?;
    tools::install(ctx, &ops, host)?;
    buffer::install(ctx, &ops)?;
    child::install(ctx, &ops, host)?;
    crypto::install(ctx, &ops)?;
    fs::install(ctx, &ops, host)?;
    net::install(ctx, &ops, host)?;
    os::install(ctx, &ops)?;
    process::install(ctx, &ops)?;
    zlib::install(ctx, &ops)?;
    Ok(ops)
}

/// Lets go of everything that belongs to the engine of this thread; for before it ends.
pub(crate) fn forget() {
    api::forget();
}

/// A new group of operations called `name`.
pub(crate) fn group<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, name: &str) -> Result<Object<'js>> {
    let group = Object::new(ctx.clone())?;
    ops.set(name, group.clone())?;
    Ok(group)
}
