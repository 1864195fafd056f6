//! Promises that were rejected without a handler.

use rquickjs::{Ctx, Persistent, Value};

/// Rejections of the current turn. Those that still have no handler at the end of the turn are reported.
#[derive(Default)]
pub(crate) struct Rejections(Vec<Rejected>);

pub(crate) struct Rejected {
    /// The context the promise belongs to.
    pub(crate) realm: usize,
    promise: Persistent<Value<'static>>,
    pub(crate) reason: Persistent<Value<'static>>,
}

/// Identifies a context.
pub(crate) fn realm_of(ctx: &Ctx<'_>) -> usize {
    ctx.as_raw().as_ptr() as usize
}

impl Rejections {
    /// Records a rejection, or removes one whose promise got a handler later.
    pub(crate) fn track<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        promise: Value<'js>,
        reason: Value<'js>,
        handled: bool,
    ) {
        let promise = Persistent::save(ctx, promise);
        if handled {
            self.0.retain(|rejected| rejected.promise != promise);
        } else {
            let reason = Persistent::save(ctx, reason);
            self.0.push(Rejected {
                realm: realm_of(ctx),
                promise,
                reason,
            });
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn take(&mut self) -> Vec<Rejected> {
        std::mem::take(&mut self.0)
    }
}
