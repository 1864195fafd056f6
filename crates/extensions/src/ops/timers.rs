//! `ops.timers`: starting and stopping timers.

use std::time::Duration;

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Function, Object, Persistent, Result};

use super::group;
use crate::script::Host;

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let timers = group(ctx, ops, "timers")?;
    let shared = host.clone();
    timers.set(
        "onFire",
        Func::from(move |fire: Persistent<Function<'static>>| {
            shared.timers().borrow_mut().set_fire(fire);
        }),
    )?;
    let shared = host.clone();
    timers.set(
        "start",
        Func::from(move |timer: f64, milliseconds: f64| {
            if shared.closed().is_cancelled() {
                return;
            }
            let after =
                Duration::from_micros((milliseconds.clamp(0.0, 2_147_483_647.0) * 1000.0) as u64);
            shared.timers().borrow_mut().start(timer as u64, after);
        }),
    )?;
    let shared = host.clone();
    timers.set(
        "soon",
        Func::from(move |timer: f64| {
            if !shared.closed().is_cancelled() {
                shared.timers().borrow_mut().soon(timer as u64);
            }
        }),
    )?;
    let shared = host.clone();
    timers.set(
        "stop",
        Func::from(move |timer: f64| shared.timers().borrow_mut().stop(timer as u64)),
    )?;
    Ok(())
}
