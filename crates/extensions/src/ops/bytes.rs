//! Bytes that cross between Rust and scripts as a `Uint8Array`.

use rquickjs::{Ctx, FromJs, IntoJs, TypedArray, Value};

/// The most bytes that one operation passes to a script: a file, a random value, an unpacked archive.
///
/// An operation builds these bytes outside of the engine, where the engine's memory limit does not count.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// Owned bytes: a copy of a script's array, or the source of such a copy. The copy in the script is memory of the
/// engine, so it counts against the limit of scripts.
#[derive(Debug, Default, Clone)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl<'js> FromJs<'js> for Bytes {
    fn from_js(_: &Ctx<'js>, value: Value<'js>) -> rquickjs::Result<Self> {
        let array = TypedArray::<u8>::from_value(value)?;
        Ok(Self(with_bytes(&array, <[u8]>::to_vec)))
    }
}

impl<'js> IntoJs<'js> for Bytes {
    fn into_js(self, ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
        Ok(TypedArray::new_copy(ctx.clone(), self.0)?.into_value())
    }
}

/// Passes the bytes of `array` to `look` without copying them. A detached array is empty.
#[allow(unsafe_code, reason = "the engine owns the memory that is looked at")]
pub(crate) fn with_bytes<R>(array: &TypedArray<'_, u8>, look: impl FnOnce(&[u8]) -> R) -> R {
    // SAFETY: `look` has no access to the engine, so no script runs while the slice is alive.
    let bytes = unsafe { array.as_bytes() };
    look(bytes.unwrap_or_default())
}
