//! Values that cross between scripts and modules.

use rquickjs::{BigInt, Ctx, Exception, IntoJs, Result, Value};
use wasmi::{ExternRef, F32, F64, Nullable, Val, ValType};

use super::store::Wasm;

pub(super) fn name_of(ty: ValType) -> &'static str {
    match ty {
        ValType::I32 => "i32",
        ValType::I64 => "i64",
        ValType::F32 => "f32",
        ValType::F64 => "f64",
        ValType::V128 => "v128",
        ValType::FuncRef => "anyfunc",
        ValType::ExternRef => "externref",
    }
}

pub(super) fn type_of(ctx: &Ctx<'_>, name: &str) -> Result<ValType> {
    Ok(match name {
        "i32" => ValType::I32,
        "i64" => ValType::I64,
        "f32" => ValType::F32,
        "f64" => ValType::F64,
        "anyfunc" | "funcref" => ValType::FuncRef,
        "externref" => ValType::ExternRef,
        other => {
            let message = format!("\"{other}\" is not a type of WebAssembly");
            return Err(Exception::throw_type(ctx, &message));
        }
    })
}

/// Converts a value that the script's side has converted to its type. References are numbers of functions and objects,
/// or null.
pub(super) fn from_script<'js>(
    wasm: &Wasm,
    ctx: &Ctx<'js>,
    ty: ValType,
    value: &Value<'js>,
) -> Result<Val> {
    let number = || value.as_number().unwrap_or_default();
    Ok(match ty {
        ValType::I32 => Val::I32(number() as i64 as i32),
        ValType::I64 => Val::I64(match value.as_big_int() {
            Some(number) => number.clone().to_i64()?,
            None => number() as i64,
        }),
        ValType::F32 => Val::F32(F32::from(number() as f32)),
        ValType::F64 => Val::F64(F64::from(number())),
        ValType::FuncRef => Val::FuncRef(match value.as_number() {
            Some(id) => Nullable::Val(wasm.funcs.get(ctx, id as u32)?),
            None => Nullable::Null,
        }),
        ValType::ExternRef => Val::ExternRef(match value.as_number() {
            Some(id) => Nullable::Val(wasm.with(|store| ExternRef::new(store, id as u32))),
            None => Nullable::Null,
        }),
        ValType::V128 => {
            return Err(Exception::throw_type(
                ctx,
                "a vector cannot be passed to a function of WebAssembly",
            ));
        }
    })
}

pub(super) fn to_script<'js>(wasm: &Wasm, ctx: &Ctx<'js>, value: Val) -> Result<Value<'js>> {
    match value {
        Val::I32(number) => number.into_js(ctx),
        Val::I64(number) => BigInt::from_i64(ctx.clone(), number)?.into_js(ctx),
        Val::F32(number) => f64::from(f32::from(number)).into_js(ctx),
        Val::F64(number) => f64::from(number).into_js(ctx),
        Val::FuncRef(Nullable::Val(func)) => wasm.funcs.id_of(func).into_js(ctx),
        Val::ExternRef(Nullable::Val(object)) => wasm
            .with(|store| object.data(&store).downcast_ref::<u32>().copied())
            .into_js(ctx),
        Val::FuncRef(Nullable::Null) | Val::ExternRef(Nullable::Null) => {
            Ok(Value::new_null(ctx.clone()))
        }
        Val::V128(_) => Err(Exception::throw_type(
            ctx,
            "a vector cannot be passed to a script",
        )),
    }
}
