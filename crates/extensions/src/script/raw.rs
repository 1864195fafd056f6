//! The few things the engine offers only as unsafe calls: bytecode, bytes of typed arrays, and
//! memory. Nothing else in the crate is unsafe.
#![allow(unsafe_code)]

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rquickjs::allocator::{Allocator, RustAllocator};
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

/// Memory of the engine, counted, with a size it never exceeds.
pub(crate) struct Counted {
    used: Arc<AtomicUsize>,
    most: usize,
}

impl Counted {
    /// Counts into `used`; refuses what would exceed `most`.
    pub(crate) fn new(used: Arc<AtomicUsize>, most: usize) -> Self {
        Self { used, most }
    }

    fn fits(&self, size: usize) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(size) <= self.most
    }

    fn count(&self, pointer: *mut u8) -> *mut u8 {
        if !pointer.is_null() {
            // SAFETY: the pointer comes from the same allocator a moment ago.
            let size = unsafe { RustAllocator::usable_size(pointer) };
            self.used.fetch_add(size, Ordering::Relaxed);
        }
        pointer
    }
}

// SAFETY: every request is passed on to `RustAllocator`, which keeps the contract; this only counts.
unsafe impl Allocator for Counted {
    fn alloc(&mut self, size: usize) -> *mut u8 {
        if !self.fits(size) {
            return ptr::null_mut();
        }
        let pointer = RustAllocator.alloc(size);
        self.count(pointer)
    }

    fn calloc(&mut self, count: usize, size: usize) -> *mut u8 {
        if !self.fits(count.saturating_mul(size)) {
            return ptr::null_mut();
        }
        let pointer = RustAllocator.calloc(count, size);
        self.count(pointer)
    }

    unsafe fn dealloc(&mut self, pointer: *mut u8) {
        if pointer.is_null() {
            return;
        }
        // SAFETY: the caller hands back what this allocator gave out.
        unsafe {
            let size = RustAllocator::usable_size(pointer);
            self.used.fetch_sub(size, Ordering::Relaxed);
            RustAllocator.dealloc(pointer);
        }
    }

    unsafe fn realloc(&mut self, pointer: *mut u8, new_size: usize) -> *mut u8 {
        if pointer.is_null() {
            return self.alloc(new_size);
        }
        // SAFETY: the caller hands back what this allocator gave out.
        unsafe {
            let old = RustAllocator::usable_size(pointer);
            if new_size > old && !self.fits(new_size - old) {
                return ptr::null_mut();
            }
            let moved = RustAllocator.realloc(pointer, new_size);
            if !moved.is_null() {
                self.used.fetch_sub(old, Ordering::Relaxed);
            }
            self.count(moved)
        }
    }

    unsafe fn usable_size(pointer: *mut u8) -> usize {
        // SAFETY: the caller hands back what this allocator gave out.
        unsafe { RustAllocator::usable_size(pointer) }
    }
}
