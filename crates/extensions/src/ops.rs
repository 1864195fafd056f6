//! The native functions behind `pinion:ops`, through which scripts use the machine; one file per group.
//!
//! A group is an object: `ops.fs.readFile(…)`. Synchronous operations are plain functions. Asynchronous ones return a
//! promise and run on the engine's thread, with blocking work moved off it. An operation that may wait for long ends
//! when `Host::closed` is cancelled.

mod api;
mod buffer;
mod bytes;
mod child;
mod core;
mod crypto;
mod display;
mod fs;
mod http;
mod intl;
mod llm;
mod modules;
mod net;
mod os;
mod process;
mod sqlite;
mod syscall_error;
mod text;
mod timers;
mod tools;
mod url;
mod wasm;
mod zlib;

pub(crate) use process::environment;
pub use process::{changed_environment, environment_variable};

use std::time::Duration;

use rquickjs::object::{Accessor, Property};
use rquickjs::prelude::This;
use rquickjs::{Ctx, Object, Result};

use crate::script::Host;
pub(crate) use crate::script::unsafe_calls::bytes_of;

/// A function that adds a group to an object.
type Install<'js> = fn(&Ctx<'js>, &Object<'js>, &Host) -> Result<()>;

/// Returns the operations for one generation. A group is built when it is first accessed: there are hundreds of
/// operations, and an extension uses a handful.
pub(crate) fn all<'js>(ctx: &Ctx<'js>, host: &Host) -> Result<Object<'js>> {
    let ops = Object::new(ctx.clone())?;
    // Every realm needs these two immediately.
    api::install(ctx, &ops, host)?;
    core::install(ctx, &ops, host)?;
    let groups: [(&'static str, Install<'js>); 19] = [
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
        ("sqlite", sqlite::install),
        ("wasm", wasm::install),
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

/// Releases everything that belongs to the engine of this thread, before the engine ends.
pub(crate) fn forget() {
    api::forget();
}

/// Converts a script's milliseconds to a duration between zero and 30 years, which every clock can add.
pub(crate) fn duration_from_millis(milliseconds: f64) -> Duration {
    // `max` turns NaN into zero.
    let given = milliseconds.max(0.0);
    Duration::from_secs_f64(given.clamp(0.0, 1e12) / 1000.0)
}

/// Adds an empty group of operations called `name`.
pub(crate) fn group<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, name: &str) -> Result<Object<'js>> {
    let group = Object::new(ctx.clone())?;
    ops.set(name, group.clone())?;
    Ok(group)
}
