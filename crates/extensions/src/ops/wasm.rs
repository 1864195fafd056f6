//! `ops.wasm`: WebAssembly by an interpreter, for the global `WebAssembly`.
//!
//! A script names modules, functions, memories, tables and globals by numbers. Everything lives in one store per
//! generation, which frees it when the generation ends. Calls run in slices of fuel, between which the watchdog may end
//! them.

mod memory;
mod objects;
mod store;
mod values;

use std::rc::Rc;

use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Function, Object, Result, Value};
use serde_json::json;
use wasmi::{Extern, ExternType, FuncType, Instance, Module};

use super::bytes::Bytes;
use super::group;
use crate::script::Host;
use store::{Outcome, Wasm};
use values::{from_script, name_of, to_script};

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let wasm = group(ctx, ops, "wasm")?;
    let shared = Wasm::new(host);
    install_modules(&wasm, &shared)?;
    install_calls(&wasm, &shared)?;
    memory::install(&wasm, &shared)?;
    objects::install(&wasm, &shared)
}

fn install_modules<'js>(group: &Object<'js>, wasm: &Rc<Wasm>) -> Result<()> {
    let shared = Rc::clone(wasm);
    group.set(
        "validate",
        Func::from(move |bytes: Bytes| Module::validate(shared.engine(), &bytes.0).is_ok()),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "compile",
        Func::from(move |ctx: Ctx<'js>, bytes: Bytes| -> Result<u32> {
            let module = Module::new(shared.engine(), &bytes.0)
                .map_err(|error| Exception::throw_message(&ctx, &error.to_string()))?;
            Ok(shared.modules.add(module))
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "describe",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<String> {
            let module = shared.modules.get(&ctx, id)?;
            let imports: Vec<_> = module
                .imports()
                .map(|import| {
                    json!({
                        "module": import.module(),
                        "name": import.name(),
                        "kind": kind_of(import.ty()),
                        "type": type_of_import(import.ty()),
                    })
                })
                .collect();
            let exports: Vec<_> = module
                .exports()
                .map(|export| json!({ "name": export.name(), "kind": kind_of(export.ty()) }))
                .collect();
            Ok(json!({ "imports": imports, "exports": exports }).to_string())
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "customSections",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, name: String| -> Result<Vec<Bytes>> {
                let module = shared.modules.get(&ctx, id)?;
                let sections = module.custom_sections();
                let found = sections.filter(|section| section.name() == name);
                Ok(found
                    .map(|section| Bytes(section.data().to_vec()))
                    .collect())
            },
        ),
    )
}

fn install_calls<'js>(group: &Object<'js>, wasm: &Rc<Wasm>) -> Result<()> {
    let shared = Rc::clone(wasm);
    group.set(
        "instantiate",
        Func::from(
            move |ctx: Ctx<'js>, module: u32, imports: Vec<Vec<u32>>, dispatch: Function<'js>| {
                instantiate(&shared, &ctx, module, &imports, dispatch)
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "call",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, arguments: Vec<Value<'js>>, dispatch: Function<'js>| {
                call(&shared, &ctx, id, &arguments, dispatch)
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "signature",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<String> {
            let func = shared.funcs.get(&ctx, id)?;
            let ty = shared.with(|store| func.ty(store));
            Ok(signature(&ty).to_string())
        }),
    )
}

/// Returns `["function" | "memory" | …]` as the interface of WebAssembly names it.
fn kind_of(ty: &ExternType) -> &'static str {
    match ty {
        ExternType::Func(_) => "function",
        ExternType::Global(_) => "global",
        ExternType::Memory(_) => "memory",
        ExternType::Table(_) => "table",
    }
}

/// Returns the names of the parameter and result types.
fn signature(ty: &FuncType) -> serde_json::Value {
    let names = |types: &[wasmi::ValType]| types.iter().map(|ty| name_of(*ty)).collect::<Vec<_>>();
    json!([names(ty.params()), names(ty.results())])
}

/// Returns what the script's side must know to convert the values of an import.
fn type_of_import(ty: &ExternType) -> serde_json::Value {
    match ty {
        ExternType::Func(ty) => signature(ty),
        ExternType::Global(ty) => name_of(ty.content()).into(),
        _ => serde_json::Value::Null,
    }
}

/// Creates an instance. An import is `[0, n]` for the script's function `n`, which `dispatch` calls, or `[kind, id]` for
/// an object of the store. Returns `[name, kind, id]` for each export; null if an import threw.
fn instantiate<'js>(
    wasm: &Rc<Wasm>,
    ctx: &Ctx<'js>,
    module: u32,
    imports: &[Vec<u32>],
    dispatch: Function<'js>,
) -> Result<Value<'js>> {
    let module = wasm.modules.get(ctx, module)?;
    let mut externs = Vec::with_capacity(imports.len());
    for (wanted, given) in module.imports().zip(imports) {
        let [kind, id] = given[..] else {
            return Err(Exception::throw_type(ctx, "an import is not complete"));
        };
        externs.push(match (kind, wanted.ty()) {
            (0, ExternType::Func(ty)) => wasm.import(ty.clone(), id).into(),
            (1, _) => Extern::Func(wasm.funcs.get(ctx, id)?),
            (2, _) => Extern::Memory(wasm.memories.get(ctx, id)?),
            (3, _) => Extern::Table(wasm.tables.get(ctx, id)?),
            (4, _) => Extern::Global(wasm.globals.get(ctx, id)?),
            _ => {
                let (module, name) = (wanted.module(), wanted.name());
                let message = format!("import {module}.{name} has the wrong kind");
                return Err(Exception::throw_message(ctx, &message));
            }
        });
    }
    let created = wasm.run(ctx, dispatch, || {
        wasm.with(|mut store| Instance::new(&mut store, &module, &externs))
    });
    wasm.detach_stale(ctx)?;
    let instance = match wasm.outcome(ctx, created)? {
        Outcome::Done(instance) => instance,
        Outcome::Threw => return Ok(Value::new_null(ctx.clone())),
    };
    let exports = wasm.with(|store| -> Vec<(String, Extern)> {
        let exports = instance.exports(&store);
        exports
            .map(|export| (export.name().to_owned(), export.into_extern()))
            .collect()
    });
    let list = Array::new(ctx.clone())?;
    for (at, (name, object)) in exports.into_iter().enumerate() {
        let (kind, id) = match object {
            Extern::Func(func) => (1, wasm.funcs.id_of(func)),
            Extern::Memory(memory) => (2, wasm.memories.id_of(memory)),
            Extern::Table(table) => (3, wasm.tables.id_of(table)),
            Extern::Global(global) => (4, wasm.globals.id_of(global)),
        };
        let entry = Array::new(ctx.clone())?;
        entry.set(0, name)?;
        entry.set(1, kind)?;
        entry.set(2, id)?;
        list.set(at, entry)?;
    }
    Ok(list.into_value())
}

/// Calls a function. Returns its results; null if an import threw.
fn call<'js>(
    wasm: &Rc<Wasm>,
    ctx: &Ctx<'js>,
    id: u32,
    arguments: &[Value<'js>],
    dispatch: Function<'js>,
) -> Result<Value<'js>> {
    let func = wasm.funcs.get(ctx, id)?;
    let ty = wasm.with(|store| func.ty(store));
    let parameters = ty
        .params()
        .iter()
        .zip(arguments)
        .map(|(ty, value)| from_script(wasm, ctx, *ty, value))
        .collect::<Result<Vec<_>>>()?;
    let mut results: Vec<_> = ty
        .results()
        .iter()
        .map(|ty| wasmi::Val::default_for_ty(*ty))
        .collect();
    let called = wasm.run(ctx, dispatch, || wasm.call(func, &parameters, &mut results));
    wasm.detach_stale(ctx)?;
    match wasm.outcome(ctx, called)? {
        Outcome::Threw => Ok(Value::new_null(ctx.clone())),
        Outcome::Done(()) => {
            let list = Array::new(ctx.clone())?;
            for (at, result) in results.into_iter().enumerate() {
                list.set(at, to_script(wasm, ctx, result)?)?;
            }
            Ok(list.into_value())
        }
    }
}
