//! `ops.sqlite`: databases for `node:sqlite`.
//!
//! A script names a database by a number and a statement by its text; the connection stores prepared statements.
//! Everything blocks the script, as in Node, and ends when the script's time is up.

mod connection;
mod value;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use rquickjs::prelude::Func;
use rquickjs::{Array, Ctx, Exception, Object, Result, Value};

use super::group;
use crate::script::Host;
use connection::{Database, OpenOptions};
use value::{SqlValue, to_script};

/// Open databases per generation.
const MAX_OPEN: usize = 64;

#[derive(Default)]
struct Databases {
    next: Cell<u32>,
    open: RefCell<HashMap<u32, Rc<Database>>>,
}

impl Databases {
    fn get(&self, ctx: &Ctx<'_>, id: u32) -> Result<Rc<Database>> {
        let found = self.open.borrow().get(&id).cloned();
        found.ok_or_else(|| thrown(ctx, "database is not open", "ERR_INVALID_STATE", None))
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let sqlite = group(ctx, ops, "sqlite")?;
    let databases = Rc::new(Databases::default());

    let (all, shared) = (Rc::clone(&databases), host.clone());
    sqlite.set(
        "open",
        Func::from(
            move |ctx: Ctx<'js>, path: String, options: String| -> Result<u32> {
                let options: OpenOptions = serde_json::from_str(&options)
                    .map_err(|error| Exception::throw_type(&ctx, &error.to_string()))?;
                if all.open.borrow().len() >= MAX_OPEN {
                    let message = format!("{MAX_OPEN} databases are open; close one first");
                    return Err(thrown(&ctx, &message, "ERR_SQLITE_ERROR", None));
                }
                let database =
                    Database::open(&path, options, &shared).map_err(|error| error.throw(&ctx))?;
                let id = all.next.get();
                all.next.set(id.wrapping_add(1));
                all.open.borrow_mut().insert(id, Rc::new(database));
                Ok(id)
            },
        ),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "close",
        Func::from(move |id: u32| all.open.borrow_mut().remove(&id).is_some()),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "exec",
        Func::from(move |ctx: Ctx<'js>, id: u32, sql: String| -> Result<()> {
            let database = all.get(&ctx, id)?;
            database.execute(&sql).map_err(|error| error.throw(&ctx))
        }),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "describe",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, sql: String| -> Result<String> {
                let database = all.get(&ctx, id)?;
                database.describe(&sql).map_err(|error| error.throw(&ctx))
            },
        ),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "query",
        Func::from(
            move |ctx: Ctx<'js>,
                  id: u32,
                  sql: String,
                  parameters: Vec<Value<'js>>,
                  most: u32,
                  big: bool| {
                let database = all.get(&ctx, id)?;
                let parameters = parameters
                    .iter()
                    .enumerate()
                    .map(|(at, value)| SqlValue::from_script(&ctx, value, at + 1))
                    .collect::<Result<Vec<_>>>()?;
                let found = database
                    .query(&sql, &parameters, most as usize)
                    .map_err(|error| error.throw(&ctx))?;
                let rows = Array::new(ctx.clone())?;
                for (at, row) in found.into_iter().enumerate() {
                    let cells = Array::new(ctx.clone())?;
                    for (column, cell) in row.into_iter().enumerate() {
                        cells.set(column, to_script(&ctx, cell, big)?)?;
                    }
                    rows.set(at, cells)?;
                }
                Ok::<_, rquickjs::Error>(rows)
            },
        ),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "changes",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, big: bool| -> Result<Array<'js>> {
                let database = all.get(&ctx, id)?;
                let (changes, row) = database.changes();
                let pair = Array::new(ctx.clone())?;
                for (at, number) in [changes, row].into_iter().enumerate() {
                    let number = rusqlite::types::Value::Integer(number);
                    pair.set(at, to_script(&ctx, number, big)?)?;
                }
                Ok(pair)
            },
        ),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "expanded",
        Func::from(
            move |ctx: Ctx<'js>, id: u32, sql: String, parameters: Vec<Value<'js>>| {
                let database = all.get(&ctx, id)?;
                let parameters = parameters
                    .iter()
                    .enumerate()
                    .map(|(at, value)| SqlValue::from_script(&ctx, value, at + 1))
                    .collect::<Result<Vec<_>>>()?;
                database
                    .expanded(&sql, &parameters)
                    .map_err(|error| error.throw(&ctx))
            },
        ),
    )?;
    let all = Rc::clone(&databases);
    sqlite.set(
        "inTransaction",
        Func::from(move |ctx: Ctx<'js>, id: u32| {
            Ok::<_, rquickjs::Error>(all.get(&ctx, id)?.in_transaction())
        }),
    )?;
    sqlite.set(
        "location",
        Func::from(move |ctx: Ctx<'js>, id: u32, name: String| {
            let database = databases.get(&ctx, id)?;
            database.location(&name).map_err(|error| error.throw(&ctx))
        }),
    )?;
    Ok(())
}

/// Throws an error with a code, and with the number and words of SQLite.
fn thrown(
    ctx: &Ctx<'_>,
    message: &str,
    code: &str,
    sqlite: Option<(i32, &str)>,
) -> rquickjs::Error {
    let made = || {
        let exception = Exception::from_message(ctx.clone(), message)?;
        exception.set("code", code)?;
        if let Some((number, words)) = sqlite {
            exception.set("errcode", number)?;
            exception.set("errstr", words)?;
        }
        Ok::<_, rquickjs::Error>(exception)
    };
    match made() {
        Ok(exception) => ctx.throw(exception.into_value()),
        Err(error) => error,
    }
}
