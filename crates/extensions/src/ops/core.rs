//! `ops.core`: the operations that the globals need.

use std::io::Write as _;
use std::time::Instant;

use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Function, Object, Persistent, Result, Value};

use super::{duration_from_millis, group};
use crate::script::{Host, ScriptError, UncaughtKind, describe, import_now};

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let core = group(ctx, ops, "core")?;
    core.set("stderr", Func::from(stderr))?;
    core.set("load", Func::from(load))?;
    core.set("message", Func::from(message))?;
    core.set("collect", Func::from(|ctx: Ctx<'js>| ctx.run_gc()))?;
    let started = Instant::now();
    core.set(
        "now",
        Func::from(move || started.elapsed().as_secs_f64() * 1000.0),
    )?;
    core.set("sleep", Func::from(Async(sleep)))?;
    core.set("generation", host.generation().number())?;

    let shared = host.clone();
    core.set(
        "setUncaughtHandler",
        Func::from(move |handler: Option<Persistent<Function<'static>>>| {
            shared.set_uncaught_handler(handler);
        }),
    )?;
    let shared = host.clone();
    core.set(
        "reportUncaught",
        Func::from(move |ctx: Ctx<'js>, error: Value<'js>| {
            shared.report(&ctx, UncaughtKind::Callback, &error);
        }),
    )?;
    let shared = host.clone();
    core.set(
        "exit",
        Func::from(move |code: i32| shared.services().exit(code)),
    )?;
    Ok(())
}

/// Writes text for people to standard error. Standard output belongs to the protocol.
fn stderr(text: String) {
    // A failure of standard error cannot be reported anywhere.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Loads a built-in module synchronously and returns its namespace.
fn load<'js>(ctx: Ctx<'js>, name: String) -> Result<Object<'js>> {
    if !name.starts_with("pinion:") {
        return Err(Exception::throw_type(&ctx, "Not a module of the host"));
    }
    import_now(&ctx, &name)
}

/// Returns the message of a thrown value, in the form that leaves the engine.
fn message<'js>(ctx: Ctx<'js>, value: Value<'js>) -> String {
    match describe(&ctx, &value) {
        ScriptError::Thrown { message, .. } => message,
        other => other.to_string(),
    }
}

async fn sleep(milliseconds: f64) -> Result<()> {
    tokio::time::sleep(duration_from_millis(milliseconds)).await;
    Ok(())
}
