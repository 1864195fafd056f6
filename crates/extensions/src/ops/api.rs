//! `ops.api`: the connection to the session that extensions are hooks of.

use std::cell::RefCell;
use std::sync::Arc;

use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, Persistent, Result};

use super::group;
use crate::Bridge;
use crate::script::Host;

thread_local! {
    /// The bus of the newest generation, which the next one may take over.
    static BUS: RefCell<Option<Persistent<Object<'static>>>> = const { RefCell::new(None) };
}

const NO_SESSION: &str = "There is no session here.";

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let api = group(ctx, ops, "api")?;
    let shared = host.clone();
    api.set(
        "stale",
        Func::from(move |generation: f64| {
            let bridge = shared.bridge();
            bridge.is_none_or(|bridge| bridge.is_stale(generation as u64))
        }),
    )?;
    let shared = host.clone();
    api.set(
        "now",
        Func::from(
            move |ctx: Ctx<'js>, generation: f64, method: String, arguments: String| {
                let bridge = known(&ctx, shared.bridge())?;
                bridge
                    .now(generation as u64, &method, &arguments)
                    .map_err(|error| Exception::throw_message(&ctx, &error))
            },
        ),
    )?;
    let shared = host.clone();
    api.set(
        "later",
        Func::from(Async(
            move |ctx: Ctx<'js>, generation: f64, method: String, arguments: String| {
                let answer = known(&ctx, shared.bridge())
                    .map(|bridge| bridge.later(generation as u64, &method, &arguments));
                async move {
                    answer?
                        .await
                        .map_err(|error| Exception::throw_message(&ctx, &error))
                }
            },
        )),
    )?;
    api.set(
        "keepBus",
        Func::from(|bus: Persistent<Object<'static>>| {
            BUS.with(|cell| drop(cell.replace(Some(bus))));
        }),
    )?;
    api.set(
        "keptBus",
        Func::from(|ctx: Ctx<'js>| {
            let bus = BUS.with(|cell| cell.borrow().clone());
            bus.map(|bus| bus.restore(&ctx)).transpose()
        }),
    )?;
    Ok(())
}

/// Releases everything that belongs to the engine of this thread.
pub(crate) fn forget() {
    BUS.with(|bus| drop(bus.take()));
}

fn known<'a>(ctx: &Ctx<'_>, bridge: Option<&'a Arc<dyn Bridge>>) -> Result<&'a Arc<dyn Bridge>> {
    bridge.ok_or_else(|| Exception::throw_message(ctx, NO_SESSION))
}
