//! The store of a generation: its objects by number, and the calls into it and out of it.
#![allow(
    unsafe_code,
    reason = "a call out of the store passes on the access that the interpreter lends it"
)]

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Debug;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};

use rquickjs::{Array, Ctx, Exception, Function, Persistent, Result, Value, qjs};
use wasmi::{
    AsContextMut, Caller, Config, Engine, Error, Func, FuncType, Global, Memory, Module,
    ResourceLimiter, ResumableCall, Store, StoreContextMut, Table, TrapCode, Val,
};
use wasmi_core::LimiterError;

use super::memory::View;
use super::values::{from_script, to_script};
use crate::script::Host;

/// Bytes of all memories of a generation.
const MAX_MEMORY_BYTES: usize = 256 << 20;

/// Elements of one table.
const MAX_TABLE_ELEMENTS: usize = 1 << 20;

/// Instances, memories and tables of a generation, each.
const MAX_OBJECTS: usize = 10_000;

/// Fuel between two checks of the watchdog: a few milliseconds.
const SLICE: u64 = 2_000_000;

/// Fuel of a start function, which cannot be continued: a few seconds.
const START_FUEL: u64 = 1_000_000_000;

/// Nested calls of functions of modules.
const MAX_DEPTH: usize = 4_000;

/// Calls of modules that call scripts that call modules. Each takes native stack.
const MAX_NESTING: usize = 64;

/// Marks the trap of an import whose function threw.
const THREW: &str = "an import threw";

/// Marks the trap of a call that the watchdog ended.
const INTERRUPTED: &str = "the call was interrupted";

/// Objects of one kind, by number.
pub(super) struct Numbered<T> {
    objects: RefCell<Vec<T>>,
    /// The handles of the interpreter compare only in print.
    known: RefCell<HashMap<String, u32>>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self {
            objects: RefCell::default(),
            known: RefCell::default(),
        }
    }
}

impl<T: Clone> Numbered<T> {
    pub fn add(&self, object: T) -> u32 {
        let mut objects = self.objects.borrow_mut();
        objects.push(object);
        objects.len() as u32 - 1
    }

    pub fn get(&self, ctx: &Ctx<'_>, id: u32) -> Result<T> {
        let found = self.objects.borrow().get(id as usize).cloned();
        found.ok_or_else(|| Exception::throw_type(ctx, "unknown WebAssembly object"))
    }
}

impl<T: Clone + Debug> Numbered<T> {
    /// Returns the number of `object`, which is always the same.
    pub fn id_of(&self, object: T) -> u32 {
        let name = format!("{object:?}");
        if let Some(id) = self.known.borrow().get(&name) {
            return *id;
        }
        let id = self.add(object);
        self.known.borrow_mut().insert(name, id);
        id
    }
}

/// The state of the interpreter's store.
pub(super) struct StoreState {
    wasm: Weak<Wasm>,
    memory_bytes: usize,
}

impl ResourceLimiter for StoreState {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> std::result::Result<bool, LimiterError> {
        let total = self
            .memory_bytes
            .saturating_add(desired - current.min(desired));
        if total > MAX_MEMORY_BYTES {
            return Ok(false);
        }
        self.memory_bytes = total;
        Ok(true)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> std::result::Result<bool, LimiterError> {
        Ok(desired <= MAX_TABLE_ELEMENTS)
    }

    fn instances(&self) -> usize {
        MAX_OBJECTS
    }

    fn tables(&self) -> usize {
        MAX_OBJECTS
    }

    fn memories(&self) -> usize {
        MAX_OBJECTS
    }
}

/// A call into the store.
struct Active {
    context: NonNull<qjs::JSContext>,
    dispatch: Persistent<Function<'static>>,
}

pub(super) struct Wasm {
    engine: Engine,
    store: RefCell<Store<StoreState>>,
    host: Host,
    pub modules: Numbered<Module>,
    pub funcs: Numbered<Func>,
    pub memories: Numbered<Memory>,
    pub tables: Numbered<Table>,
    pub globals: Numbered<Global>,
    pub views: RefCell<HashMap<u32, View>>,
    active: RefCell<Vec<Active>>,
    /// The access to the store that the innermost call of an import has. It is valid while that call lasts.
    callers: RefCell<Vec<NonNull<Caller<'static, StoreState>>>>,
    /// The exception that the engine of scripts holds ended the call.
    uncatchable: Cell<bool>,
}

/// The end of a call.
pub(super) enum Outcome<T> {
    Done(T),
    /// A script's function threw; the script holds the error.
    Threw,
}

impl Wasm {
    pub fn new(host: &Host) -> Rc<Self> {
        let mut config = Config::default();
        config.consume_fuel(true).set_max_recursion_depth(MAX_DEPTH);
        let engine = Engine::new(&config);
        let wasm = Rc::new_cyclic(|wasm| {
            let state = StoreState {
                wasm: wasm.clone(),
                memory_bytes: 0,
            };
            let mut store = Store::new(&engine, state);
            store.limiter(|state| state);
            Self {
                engine,
                store: RefCell::new(store),
                host: host.clone(),
                modules: Numbered::default(),
                funcs: Numbered::default(),
                memories: Numbered::default(),
                tables: Numbered::default(),
                globals: Numbered::default(),
                views: RefCell::default(),
                active: RefCell::default(),
                callers: RefCell::default(),
                uncatchable: Cell::new(false),
            }
        });
        // Views are values of the engine, which must be released before it ends.
        let closing = Rc::downgrade(&wasm);
        host.on_close(move || {
            if let Some(wasm) = closing.upgrade() {
                wasm.views.borrow_mut().clear();
            }
        });
        wasm
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Passes the store to `work`: the store itself, or the access that the innermost import has.
    pub fn with<R>(&self, work: impl FnOnce(StoreContextMut<'_, StoreState>) -> R) -> R {
        let caller = self.callers.borrow().last().copied();
        match caller {
            // SAFETY: the call of the import that owns the caller is suspended while scripts run, and removes the
            // pointer before it continues. `work` cannot call scripts without going through another import.
            Some(mut caller) => work(unsafe { caller.as_mut() }.as_context_mut()),
            None => work(self.store.borrow_mut().as_context_mut()),
        }
    }

    /// Runs `work` while imports are called through `dispatch`.
    pub fn run<'js, T>(
        &self,
        ctx: &Ctx<'js>,
        dispatch: Function<'js>,
        work: impl FnOnce() -> std::result::Result<T, Error>,
    ) -> std::result::Result<T, Error> {
        if self.active.borrow().len() >= MAX_NESTING {
            return Err(Error::from(TrapCode::StackOverflow));
        }
        self.active.borrow_mut().push(Active {
            context: ctx.as_raw(),
            dispatch: Persistent::save(ctx, dispatch),
        });
        if self.callers.borrow().is_empty() {
            // Fuel is always enabled, see `new`.
            let _ = self.store.borrow_mut().set_fuel(START_FUEL);
        }
        let done = work();
        self.active.borrow_mut().pop();
        done
    }

    /// Calls a function in slices.
    pub fn call(
        &self,
        func: Func,
        parameters: &[Val],
        results: &mut [Val],
    ) -> std::result::Result<(), Error> {
        let mut call = self.with(|mut store| {
            store.set_fuel(SLICE)?;
            func.call_resumable(store, parameters, results)
        })?;
        loop {
            call = match call {
                ResumableCall::Finished => return Ok(()),
                ResumableCall::HostTrap(trap) => return Err(trap.into_host_error()),
                ResumableCall::OutOfFuel(paused) => {
                    if self.host.must_stop() {
                        return Err(Error::new(INTERRUPTED));
                    }
                    self.with(|mut store| {
                        store.set_fuel(SLICE.max(paused.required_fuel()))?;
                        paused.resume(store, results)
                    })?
                }
            };
        }
    }

    /// Creates the function of an import: the script's function `index`.
    pub fn import(&self, ty: FuncType, index: u32) -> Func {
        let results = ty.clone();
        self.with(|store| {
            Func::new(store, ty, move |caller, parameters, out| {
                import(caller, index, &results, parameters, out)
            })
        })
    }

    /// Converts the end of a call.
    pub fn outcome<T>(
        &self,
        ctx: &Ctx<'_>,
        done: std::result::Result<T, Error>,
    ) -> Result<Outcome<T>> {
        let error = match done {
            Ok(value) => return Ok(Outcome::Done(value)),
            Err(error) => error,
        };
        if self.uncatchable.take() {
            return Err(rquickjs::Error::Exception);
        }
        let message = match error.as_trap_code() {
            Some(trap) => trap_message(trap).to_owned(),
            None => error.to_string(),
        };
        if message == THREW {
            return Ok(Outcome::Threw);
        }
        Err(Exception::throw_message(ctx, &message))
    }

    /// Detaches the buffers of memories that have moved or grown.
    pub fn detach_stale(&self, ctx: &Ctx<'_>) -> Result<()> {
        let mut views = self.views.borrow_mut();
        let mut stale = Vec::new();
        for (id, view) in views.iter() {
            let memory = self.memories.get(ctx, *id)?;
            if !self.with(|store| view.is_current(&memory, &store)) {
                stale.push(*id);
            }
        }
        for id in stale {
            if let Some(view) = views.remove(&id) {
                view.detach(ctx)?;
            }
        }
        Ok(())
    }

    /// Calls the script's function `index`. Returns its results; `None` if it threw.
    fn dispatch<'js>(
        &self,
        ctx: &Ctx<'js>,
        index: u32,
        parameters: &[Val],
    ) -> Result<Option<Array<'js>>> {
        let dispatch = self
            .active
            .borrow()
            .last()
            .map(|active| active.dispatch.clone());
        let Some(dispatch) = dispatch else {
            return Err(Exception::throw_message(ctx, "no call is active"));
        };
        self.detach_stale(ctx)?;
        let arguments = Array::new(ctx.clone())?;
        for (at, parameter) in parameters.iter().enumerate() {
            arguments.set(at, to_script(self, ctx, parameter.clone())?)?;
        }
        let returned: Value<'js> = dispatch.restore(ctx)?.call((index, arguments))?;
        Ok(returned.into_array())
    }
}

fn import(
    mut caller: Caller<'_, StoreState>,
    index: u32,
    ty: &FuncType,
    parameters: &[Val],
    out: &mut [Val],
) -> std::result::Result<(), Error> {
    let Some(wasm) = caller.data().wasm.upgrade() else {
        return Err(Error::new(INTERRUPTED));
    };
    let Some(context) = wasm.active.borrow().last().map(|active| active.context) else {
        return Err(Error::new(INTERRUPTED));
    };
    // SAFETY: the context belongs to the operation that is running, further out on this stack.
    let ctx = unsafe { Ctx::from_raw(context) };
    let lent = NonNull::from(&mut caller).cast::<Caller<'static, StoreState>>();
    wasm.callers.borrow_mut().push(lent);
    let returned = wasm.dispatch(&ctx, index, parameters).and_then(|returned| {
        let Some(returned) = returned else {
            return Ok(false);
        };
        for (at, (slot, ty)) in out.iter_mut().zip(ty.results()).enumerate() {
            *slot = from_script(&wasm, &ctx, *ty, &returned.get(at)?)?;
        }
        Ok(true)
    });
    wasm.callers.borrow_mut().pop();
    match returned {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::new(THREW)),
        Err(_) => {
            // The script's side catches every error but an interruption, which the engine still holds.
            wasm.uncatchable.set(true);
            Err(Error::new(THREW))
        }
    }
}

/// Returns the words that V8 uses for a trap.
fn trap_message(trap: TrapCode) -> &'static str {
    match trap {
        TrapCode::UnreachableCodeReached => "unreachable",
        TrapCode::MemoryOutOfBounds => "memory access out of bounds",
        TrapCode::TableOutOfBounds => "table index is out of bounds",
        TrapCode::IndirectCallToNull | TrapCode::BadSignature => {
            "null function or function signature mismatch"
        }
        TrapCode::IntegerDivisionByZero => "divide by zero",
        TrapCode::IntegerOverflow => "divide result unrepresentable",
        TrapCode::BadConversionToInteger => "float unrepresentable in integer range",
        TrapCode::StackOverflow => "Maximum call stack size exceeded",
        TrapCode::OutOfFuel => "the start function takes too long",
        _ => "the module used more than it may",
    }
}
