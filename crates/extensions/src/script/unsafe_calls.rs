//! The few operations that the engine offers only as unsafe calls: bytecode, and the bytes of typed arrays. Apart from
//! these and the allocator (`heap.rs`), the crate is safe code.
#![allow(unsafe_code)]

use rquickjs::{Ctx, Exception, Module, Result, TypedArray};

/// Bytecode that the engine may run: built with the binary, or read from pinion's cache.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytecode<'a>(&'a [u8]);

impl<'a> Bytecode<'a> {
    /// Wraps bytecode that `build.rs` compiled, or that the cache has verified by its checksum.
    pub(crate) fn trusted(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// Declares the module that `code` holds.
pub(crate) fn load_module<'js>(ctx: &Ctx<'js>, code: Bytecode<'_>) -> Result<Module<'js>> {
    // SAFETY: a `Bytecode` contains only output of this same engine, see `Bytecode::trusted`.
    unsafe { Module::load(ctx.clone(), code.0) }
}

/// Copies the bytes of `array`.
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
