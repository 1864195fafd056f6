//! `ops.tools`: the built-in tools and the shell for scripts, with their supporting functions.
//!
//! A script starts a call, fetches its progress until the result arrives, and finishes it. A call that the script stops
//! waiting for is cancelled.

mod calls;
mod files;
mod shell;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

use pinion_tools::{ReadImages, ToolOutput, ToolSettings, edit_bytes, read_bytes};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, Result, TypedArray};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{bytes_of, group};
use crate::script::Host;

/// Operations in progress, by number.
pub(super) struct Open<T> {
    next: Cell<u32>,
    things: RefCell<HashMap<u32, Rc<T>>>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self {
            next: Cell::new(0),
            things: RefCell::default(),
        }
    }
}

impl<T> Open<T> {
    fn add(&self, thing: T) -> u32 {
        let id = self.next.get();
        self.next.set(id + 1);
        self.things.borrow_mut().insert(id, Rc::new(thing));
        id
    }

    fn get(&self, id: u32) -> Option<Rc<T>> {
        self.things.borrow().get(&id).cloned()
    }

    fn remove(&self, id: u32) {
        self.things.borrow_mut().remove(&id);
    }
}

/// The settings of tools that a script may override.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolOverrides {
    shell_path: Option<PathBuf>,
    command_prefix: Option<String>,
    auto_resize_images: Option<bool>,
    env: Vec<(String, String)>,
}

impl ToolOverrides {
    /// Returns the program's settings with these overrides applied.
    fn apply_to(self, mut settings: ToolSettings) -> ToolSettings {
        settings.shell_path = self.shell_path.or(settings.shell_path);
        settings.shell_command_prefix = self.command_prefix;
        settings.auto_resize_images = self
            .auto_resize_images
            .unwrap_or(settings.auto_resize_images);
        settings.env.extend(self.env);
        settings
    }
}

pub(crate) fn install<'js>(ctx: &Ctx<'js>, ops: &Object<'js>, host: &Host) -> Result<()> {
    let tools = group(ctx, ops, "tools")?;
    calls::install(&tools, host)?;
    files::install(&tools, host)?;
    install_locks(&tools, host)?;
    tools.set(
        "show",
        Func::from(
            |ctx: Ctx<'js>, bytes: TypedArray<'js, u8>, arguments: String, fit: bool| {
                let images = if fit {
                    ReadImages::Fitted
                } else {
                    ReadImages::Unchanged
                };
                show(&ctx, &bytes, &arguments, images)
            },
        ),
    )?;
    tools.set(
        "showText",
        Func::from(
            |ctx: Ctx<'js>, bytes: TypedArray<'js, u8>, arguments: String| {
                show(&ctx, &bytes, &arguments, ReadImages::AsText)
            },
        ),
    )?;
    tools.set("edited", Func::from(edited))?;
    Ok(())
}

fn install_locks<'js>(tools: &Object<'js>, host: &Host) -> Result<()> {
    let locks = Rc::new(Open::default());
    let (held, shared) = (Rc::clone(&locks), host.clone());
    tools.set("lock", Func::from(Async(move |ctx: Ctx<'js>, path: String| {
        let (held, shared) = (Rc::clone(&held), shared.clone());
        async move {
            let path = pinion_tools::resolve_path(&path, &shared.services().working_directory());
            tokio::select! {
                lock = pinion_tools::lock_file(&path) => Ok(held.add(lock)),
                () = shared.closed().cancelled() => Err(Exception::throw_message(&ctx, "Operation aborted")),
            }
        }
    })))?;
    tools.set("unlock", Func::from(move |id: u32| locks.remove(id)))?;
    Ok(())
}

fn parsed(ctx: &Ctx<'_>, text: &str) -> Result<Value> {
    serde_json::from_str(text).map_err(|error| Exception::throw_type(ctx, &error.to_string()))
}

fn show<'js>(
    ctx: &Ctx<'js>,
    bytes: &TypedArray<'js, u8>,
    arguments: &str,
    images: ReadImages,
) -> Result<String> {
    let shown = read_bytes(&bytes_of(ctx, bytes)?, &parsed(ctx, arguments)?, images);
    shown
        .map(|output| output_json(&output).to_string())
        .map_err(|error| Exception::throw_message(ctx, &error.0))
}

/// Applies an edit to a file's bytes. Returns the new content and the output of the call.
fn edited<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>, arguments: String) -> Result<String> {
    let (after, output) = edit_bytes(&bytes_of(&ctx, &bytes)?, &parsed(&ctx, &arguments)?)
        .map_err(|error| Exception::throw_message(&ctx, &error.0))?;
    let mut output_json = output_json(&output);
    output_json["after"] = String::from_utf8_lossy(&after).into();
    Ok(output_json.to_string())
}

/// Converts an output to the form that scripts see. Missing details stay missing.
fn output_json(output: &ToolOutput) -> Value {
    match &output.details {
        Some(details) => json!({ "content": output.content, "details": details }),
        None => json!({ "content": output.content }),
    }
}
