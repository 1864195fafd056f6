//! The few things the engine offers only as unsafe calls: bytecode, and bytes of typed arrays. Beside
//! its memory (`heap.rs`) nothing else in the crate is unsafe.
#![allow(unsafe_code)]

use rquickjs::{Ctx, Exception, Module, Result, TypedArray};

/// Bytecode the engine may run: made at build time, or read back from our own cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytecode<'a>(&'a [u8]);

impl<'a> Bytecode<'a> {
    /// Bytecode that `build.rs` compiled, or that the cache has found unchanged by its checksum.
    pub(crate) fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// Declares the module that `code` holds.
pub(crate) fn load_module<'js>(ctx: &Ctx<'js>, code: Bytecode<'_>) -> Result<Module<'js>> {
    // SAFETY: a `Bytecode` is made only of what this same engine wrote, see `Bytecode::trusted`.
    unsafe { Module::load(ctx.clone(), code.0) }
}

/// A copy of the bytes of `array`.
pub(crate) fn bytes_of<'js>(ctx: &Ctx<'js>, array: &TypedArray<'js, u8>) -> Result<Vec<u8>> {
    // SAFETY: no JavaScript runs while the slice is alive, so the buffer can neither move nor end.
    let bytes = unsafe { array.as_bytes() };
    match bytes {
        Some(bytes) => Ok(bytes.to_vec()),
        None => Err(Exception::throw_type(
            ctx,
            "The buffer of the array is detached",
        )),
    }
}
