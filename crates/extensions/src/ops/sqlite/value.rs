//! Values that cross between scripts and SQLite.

use rquickjs::{BigInt, Ctx, Exception, IntoJs, Result, TypedArray, Value};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, Value as Cell};

use super::thrown;
use crate::ops::bytes::{Bytes, with_bytes};

/// The largest integer that a script's number holds exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// A parameter of a statement.
pub(super) struct SqlValue(Cell);

impl SqlValue {
    /// Converts the parameter at `position`, which counts from 1. Scripts pass other integers than BigInt as reals.
    pub(super) fn from_script<'js>(
        ctx: &Ctx<'js>,
        value: &Value<'js>,
        position: usize,
    ) -> Result<Self> {
        if value.is_null() {
            return Ok(Self(Cell::Null));
        }
        if let Some(number) = value.as_number() {
            return Ok(Self(Cell::Real(number)));
        }
        if let Some(text) = value.as_string() {
            return Ok(Self(Cell::Text(text.to_string()?)));
        }
        if let Some(number) = value.as_big_int() {
            return Ok(Self(Cell::Integer(number.clone().to_i64()?)));
        }
        if let Ok(bytes) = TypedArray::<u8>::from_value(value.clone()) {
            return Ok(Self(Cell::Blob(with_bytes(&bytes, <[u8]>::to_vec))));
        }
        let message = format!("Provided value cannot be bound to SQLite parameter {position}.");
        Err(thrown(ctx, &message, "ERR_INVALID_ARG_TYPE", None))
    }
}

impl ToSql for SqlValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

/// Converts a cell. An integer becomes a BigInt if `big` is set, and otherwise must fit into a number.
pub(super) fn to_script<'js>(ctx: &Ctx<'js>, cell: Cell, big: bool) -> Result<Value<'js>> {
    match cell {
        Cell::Null => Ok(Value::new_null(ctx.clone())),
        Cell::Integer(number) if big => BigInt::from_i64(ctx.clone(), number)?.into_js(ctx),
        Cell::Integer(number) if number.unsigned_abs() <= MAX_SAFE => (number as f64).into_js(ctx),
        Cell::Integer(number) => Err(too_large(ctx, number)),
        Cell::Real(number) => number.into_js(ctx),
        Cell::Text(text) => text.into_js(ctx),
        Cell::Blob(bytes) => Bytes(bytes).into_js(ctx),
    }
}

fn too_large(ctx: &Ctx<'_>, number: i64) -> rquickjs::Error {
    let message = format!("Value is too large to be represented as a JavaScript number: {number}");
    let error = Exception::throw_range(ctx, &message);
    let thrown = ctx.catch();
    if let Some(object) = thrown.as_object()
        && object.set("code", "ERR_OUT_OF_RANGE").is_err()
    {
        return error;
    }
    ctx.throw(thrown)
}
