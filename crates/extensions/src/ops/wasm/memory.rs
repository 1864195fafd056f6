//! Memories of modules, and the buffers through which scripts see them.
#![allow(
    unsafe_code,
    reason = "a buffer of the engine shows the memory of the interpreter"
)]

use std::rc::Rc;

use rquickjs::prelude::Func;
use rquickjs::{ArrayBuffer, ArrayBufferSource, Ctx, Exception, Object, Persistent, Result, Value};
use wasmi::{AsContext, Memory, MemoryType};

use super::store::{StoreState, Wasm};

/// The buffer of a memory as it was when a script asked for it.
pub(super) struct View {
    buffer: Persistent<ArrayBuffer<'static>>,
    start: *mut u8,
    length: usize,
}

impl View {
    /// Reports whether the memory is still where the buffer shows it.
    pub fn is_current(&self, memory: &Memory, store: &impl AsContext<Data = StoreState>) -> bool {
        self.start == memory.data_ptr(store) && self.length == memory.data_size(store)
    }

    pub fn detach(self, ctx: &Ctx<'_>) -> Result<()> {
        self.buffer.restore(ctx)?.detach();
        Ok(())
    }
}

/// The bytes of a memory, and the store that owns them.
struct MemoryBytes {
    start: *mut u8,
    length: usize,
    _store: Rc<Wasm>,
}

// SAFETY: the bytes stay in place until the memory grows, which detaches the buffer before a script runs again
// (`Wasm::detach_stale`); the store that owns them lives as long as this value.
unsafe impl ArrayBufferSource for MemoryBytes {
    fn as_ptr(&self) -> *mut u8 {
        self.start
    }

    fn len(&self) -> usize {
        self.length
    }
}

pub(super) fn install<'js>(group: &Object<'js>, wasm: &Rc<Wasm>) -> Result<()> {
    let shared = Rc::clone(wasm);
    group.set(
        "memory",
        Func::from(
            move |ctx: Ctx<'js>, minimum: u32, maximum: Option<u32>| -> Result<u32> {
                let ty = MemoryType::new(minimum, maximum);
                let memory = shared
                    .with(|store| Memory::new(store, ty))
                    .map_err(|error| Exception::throw_range(&ctx, &error.to_string()))?;
                Ok(shared.memories.id_of(memory))
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "memoryGrow",
        Func::from(move |ctx: Ctx<'js>, id: u32, pages: u32| -> Result<u32> {
            let memory = shared.memories.get(&ctx, id)?;
            let before = shared.with(|store| memory.grow(store, u64::from(pages)));
            let before = before.map_err(|_| {
                let message = "WebAssembly.Memory.grow(): Maximum memory size exceeded";
                Exception::throw_range(&ctx, message)
            })?;
            shared.detach_stale(&ctx)?;
            Ok(before as u32)
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "memoryBuffer",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<Value<'js>> {
            if let Some(view) = shared.views.borrow().get(&id) {
                return Ok(view.buffer.clone().restore(&ctx)?.into_value());
            }
            let memory = shared.memories.get(&ctx, id)?;
            let (start, length) =
                shared.with(|store| (memory.data_ptr(&store), memory.data_size(&store)));
            let bytes = MemoryBytes {
                start,
                length,
                _store: Rc::clone(&shared),
            };
            let buffer = ArrayBuffer::from_source(ctx.clone(), bytes)?;
            let view = View {
                buffer: Persistent::save(&ctx, buffer.clone()),
                start,
                length,
            };
            shared.views.borrow_mut().insert(id, view);
            Ok(buffer.into_value())
        }),
    )
}
