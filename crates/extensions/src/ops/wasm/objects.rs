//! Tables and globals.

use std::rc::Rc;

use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Object, Result, Value};
use wasmi::{Global, Mutability, Nullable, Ref, RefType, Table, TableType, Val, ValType};

use super::store::Wasm;
use super::values::{from_script, name_of, to_script, type_of};

/// Converts a reference for a table of `element`.
fn reference<'js>(
    wasm: &Wasm,
    ctx: &Ctx<'js>,
    element: RefType,
    value: &Value<'js>,
) -> Result<Ref> {
    let ty = match element {
        RefType::Func => ValType::FuncRef,
        RefType::Extern => ValType::ExternRef,
    };
    match from_script(wasm, ctx, ty, value)? {
        Val::FuncRef(func) => Ok(func.into()),
        Val::ExternRef(object) => Ok(object.into()),
        _ => Err(Exception::throw_type(ctx, "not a reference")),
    }
}

fn value_of(reference: Ref) -> Val {
    if let Some(func) = reference.as_func() {
        return Val::FuncRef(match func.val() {
            Some(func) => Nullable::Val(**func),
            None => Nullable::Null,
        });
    }
    match reference
        .as_extern()
        .and_then(|object| object.val().copied())
    {
        Some(object) => Val::ExternRef(Nullable::Val(*object)),
        None => Val::ExternRef(Nullable::Null),
    }
}

pub(super) fn install<'js>(group: &Object<'js>, wasm: &Rc<Wasm>) -> Result<()> {
    install_tables(group, wasm)?;
    let shared = Rc::clone(wasm);
    group.set(
        "global",
        Func::from(
            move |ctx: Ctx<'js>, ty: String, mutable: bool, value: Value<'js>| -> Result<u32> {
                let ty = type_of(&ctx, &ty)?;
                let value = from_script(&shared, &ctx, ty, &value)?;
                let mutability = if mutable {
                    Mutability::Var
                } else {
                    Mutability::Const
                };
                let global = shared.with(|store| Global::new(store, value, mutability));
                Ok(shared.globals.id_of(global))
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "globalType",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<String> {
            let global = shared.globals.get(&ctx, id)?;
            let ty = shared.with(|store| global.ty(store));
            Ok(name_of(ty.content()).to_owned())
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "globalGet",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<Value<'js>> {
            let global = shared.globals.get(&ctx, id)?;
            let value = shared.with(|store| global.get(store));
            to_script(&shared, &ctx, value)
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "globalSet",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, value: Value<'js>| -> Result<()> {
                let global = shared.globals.get(&ctx, id)?;
                let ty = shared.with(|store| global.ty(store));
                let value = from_script(&shared, &ctx, ty.content(), &value)?;
                shared
                    .with(|store| global.set(store, value))
                    .map_err(|_| Exception::throw_type(&ctx, "the global is immutable"))
            },
        ),
    )
}

fn install_tables<'js>(group: &Object<'js>, wasm: &Rc<Wasm>) -> Result<()> {
    let shared = Rc::clone(wasm);
    group.set(
        "table",
        Func::from(
            move |ctx: Ctx<'js>,
                  element: String,
                  minimum: u32,
                  maximum: Option<u32>,
                  init: Value<'js>| {
                let element = if type_of(&ctx, &element)? == ValType::ExternRef {
                    RefType::Extern
                } else {
                    RefType::Func
                };
                let init = reference(&shared, &ctx, element, &init)?;
                let ty = TableType::new(element, minimum, maximum);
                let table = shared
                    .with(|store| Table::new(store, ty, init))
                    .map_err(|error| Exception::throw_range(&ctx, &error.to_string()))?;
                Ok::<u32, rquickjs::Error>(shared.tables.id_of(table))
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "tableSize",
        Func::from(move |ctx: Ctx<'js>, id: u32| -> Result<u32> {
            let table = shared.tables.get(&ctx, id)?;
            Ok(shared.with(|store| table.size(store)) as u32)
        }),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "tableGet",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, index: u32| -> Result<Value<'js>> {
                let table = shared.tables.get(&ctx, id)?;
                match shared.with(|store| table.get(store, u64::from(index))) {
                    Some(found) => to_script(&shared, &ctx, value_of(found)),
                    None => Err(out_of_bounds(&ctx, "get")),
                }
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "tableSet",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, index: u32, value: Value<'js>| -> Result<()> {
                let table = shared.tables.get(&ctx, id)?;
                let element = shared.with(|store| table.ty(store)).element();
                let value = reference(&shared, &ctx, element, &value)?;
                shared
                    .with(|store| table.set(store, u64::from(index), value))
                    .map_err(|_| out_of_bounds(&ctx, "set"))
            },
        ),
    )?;
    let shared = Rc::clone(wasm);
    group.set(
        "tableGrow",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, count: u32, value: Value<'js>| -> Result<u32> {
                let table = shared.tables.get(&ctx, id)?;
                let element = shared.with(|store| table.ty(store)).element();
                let value = reference(&shared, &ctx, element, &value)?;
                let before = shared.with(|store| table.grow(store, u64::from(count), value));
                before.map(|before| before as u32).map_err(|_| {
                    let message =
                        format!("WebAssembly.Table.grow(): failed to grow table by {count}");
                    Exception::throw_range(&ctx, &message)
                })
            },
        ),
    )
}

fn out_of_bounds(ctx: &Ctx<'_>, what: &str) -> rquickjs::Error {
    let message = format!("WebAssembly.Table.{what}(): invalid address in table");
    Exception::throw_range(ctx, &message)
}
