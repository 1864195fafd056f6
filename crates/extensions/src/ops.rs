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

use std::time::Duration;

use rquickjs::object::{Accessor, Property};
use rquickjs::prelude::This;
use rquickjs::{Ctx, Object, Result};

use crate::script::Shared;
pub(crate) use crate::script::raw::bytes_of;

/// What adds a group to an object.
type Install<'js> = fn(&Ctx<'js>, &Object<'js>, &Shared) -> Result<()>;

/// Every operation, for one generation. A group is made when it is first touched: there are hundreds
/// of operations, and an extension uses a handful.
pub(crate) fn all<'js>(ctx: &Ctx<'js>, host: &Shared) -> Result<Object<'js>> {
    let ops = Object::new(ctx.clone())?;
    // Every realm needs these at once.
    api::install(ctx, &ops, host)?;
    core::install(ctx, &ops, host)?;
    let groups: [(&'static str, Install<'js>); 17] = [
        ("modules", modules::install),
        ("timers", timers::install),
        ("url", url::install),
        ("text", text::install),
        ("intl", intl::install),
        ("http", http::install),
        ("display", display::install),
        ("llm", llm::install),
        ("tools", tools::install),
        ("buffer", |ctx, ops, _| buffer::install(ctx, ops)),
        ("child", child::install),
        ("crypto", |ctx, ops, _| crypto::install(ctx, ops)),
        ("fs", fs::install),
        ("net", net::install),
        ("os", |ctx, ops, _| os::install(ctx, ops)),
        ("process", |ctx, ops, _| process::install(ctx, ops)),
        ("zlib", |ctx, ops, _| zlib::install(ctx, ops)),
    ];
    for (name, install) in groups {
        let host = host.clone();
        let made = move |ctx: Ctx<'js>, ops: This<Object<'js>>| -> Result<Object<'js>> {
            let made = Object::new(ctx.clone())?;
            install(&ctx, &made, &host)?;
            let group: Object<'js> = made.get(name)?;
            ops.prop(name, Property::from(group.clone()))?;
            Ok(group)
        };
        ops.prop(name, Accessor::new_get(made).configurable())?;
    }
    Ok(ops)
}

/// Lets go of everything that belongs to the engine of this thread; for before it ends.
pub(crate) fn forget() {
    api::forget();
}

/// A time that a script gave in milliseconds: never negative, and at most 30 years, which every clock can add.
pub(crate) fn span(milliseconds: f64) -> Duration {
    // What is not a number is zero.
    let given = milliseconds.max(0.0);
    Duration::from_secs_f64(given.clamp(0.0, 1e12) / 1000.0)
}

/// A new group of operations called `name`.
pub(crate) fn group<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, name: &str) -> Result<Object<'js>> {
    let group = Object::new(ctx.clone())?;
    ops.set(name, group.clone())?;
    Ok(group)
}
