//! Calls of built-in tools, and shell commands.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use pinion_tools::{Tool, ToolContext, ToolError, ToolOutput, ToolSettings};
use rquickjs::prelude::{Async, Func};
use rquickjs::{Ctx, Exception, Object, Result, Value as JsValue};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::shell::{self, Command};
use super::{Open, ToolOverrides, output_json};
use crate::script::Host;
use crate::services::Services;

type Outcome = std::result::Result<ToolOutput, ToolError>;

/// A call in progress.
struct ToolCall {
    /// The newest progress. It replaces progress that was not fetched in time.
    progress: Arc<Mutex<Option<ToolOutput>>>,
    changed: Arc<Notify>,
    outcome: tokio::sync::Mutex<oneshot::Receiver<Outcome>>,
    cancel: CancellationToken,
    _stops: DropGuard,
}

/// An operation that a script may stop.
enum Work {
    ToolCall(ToolCall),
    Command(Command),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallInput {
    name: String,
    cwd: PathBuf,
    #[serde(default)]
    call_id: String,
    arguments: Value,
    #[serde(default)]
    settings: ToolOverrides,
}

pub(super) fn install<'js>(tools: &Object<'js>, host: &Host) -> Result<()> {
    tools.set("spec", Func::from(spec))?;
    let open = Rc::new(Open::<Work>::default());

    let (work, shared) = (Rc::clone(&open), host.clone());
    tools.set(
        "start",
        Func::from(move |ctx: Ctx<'js>, text: String| -> Result<u32> {
            let input: CallInput = serde_json::from_str(&text)
                .map_err(|error| Exception::throw_type(&ctx, &error.to_string()))?;
            let call = start(&shared, input)
                .map_err(|message| Exception::throw_message(&ctx, &message))?;
            Ok(work.add(Work::ToolCall(call)))
        }),
    )?;
    let work = Rc::clone(&open);
    tools.set(
        "next",
        Func::from(Async(move |id: u32| {
            let found = work.get(id);
            async move {
                match found.as_deref() {
                    Some(Work::ToolCall(call)) => next(call).await.to_string(),
                    _ => json!({ "error": "The call is over" }).to_string(),
                }
            }
        })),
    )?;
    let (work, shared) = (Rc::clone(&open), host.clone());
    tools.set(
        "shell",
        Func::from(move |ctx: Ctx<'js>, text: String| -> Result<u32> {
            let command = shell::start(&shared, &text)
                .map_err(|message| Exception::throw_message(&ctx, &message))?;
            Ok(work.add(Work::Command(command)))
        }),
    )?;
    let work = Rc::clone(&open);
    tools.set(
        "output",
        Func::from(Async(move |ctx: Ctx<'js>, id: u32| {
            let found = work.get(id);
            async move {
                match found.as_deref() {
                    Some(Work::Command(command)) => command.output(&ctx).await,
                    _ => Ok::<JsValue<'js>, rquickjs::Error>(JsValue::new_undefined(ctx)),
                }
            }
        })),
    )?;
    let work = Rc::clone(&open);
    tools.set(
        "cancel",
        Func::from(move |id: u32| match work.get(id).as_deref() {
            Some(Work::ToolCall(call)) => call.cancel.cancel(),
            Some(Work::Command(command)) => command.cancel(),
            None => {}
        }),
    )?;
    tools.set("finish", Func::from(move |id: u32| open.remove(id)))?;
    Ok(())
}

fn tool(name: &str, settings: ToolSettings) -> Option<Arc<dyn Tool>> {
    pinion_tools::builtin(&[name], settings).pop()
}

/// Returns the description of a tool that a model receives.
fn spec(ctx: Ctx<'_>, name: String) -> Result<String> {
    match tool(&name, ToolSettings::default()) {
        Some(tool) => Ok(json!(tool.spec()).to_string()),
        None => Err(Exception::throw_message(
            &ctx,
            &format!("There is no built-in tool {name}"),
        )),
    }
}

/// Returns the runtime for work that must continue while the script is busy.
pub(super) fn runtime(
    services: &dyn Services,
) -> std::result::Result<tokio::runtime::Handle, String> {
    match services.runtime() {
        Some(runtime) => Ok(runtime),
        None => tokio::runtime::Handle::try_current().map_err(|error| error.to_string()),
    }
}

fn start(host: &Host, input: CallInput) -> std::result::Result<ToolCall, String> {
    let services = host.services();
    let settings = input.settings.apply_to(services.tool_settings());
    let tool = tool(&input.name, settings)
        .ok_or_else(|| format!("There is no built-in tool {}", input.name))?;
    let arguments = tool.validate(&input.arguments)?;
    let cancel = host.closed().child_token();
    let (progress, changed) = (Arc::new(Mutex::new(None)), Arc::new(Notify::new()));
    let (newest, news) = (Arc::clone(&progress), Arc::clone(&changed));
    let context = ToolContext {
        call_id: input.call_id.into(),
        cwd: Arc::new(input.cwd),
        env: Vec::new(),
        cancel: cancel.clone(),
        updates: Arc::new(move |output| {
            *newest.lock().unwrap_or_else(PoisonError::into_inner) = Some(output);
            news.notify_one();
        }),
        nested: None,
        follower: None,
        records_change: false,
    };
    let (sender, outcome) = oneshot::channel();
    runtime(&**services)?.spawn(async move {
        // An error means that the script has ended and needs no result.
        let _ = sender.send(tool.call(arguments, &context).await);
    });
    Ok(ToolCall {
        progress,
        changed,
        outcome: tokio::sync::Mutex::new(outcome),
        _stops: cancel.clone().drop_guard(),
        cancel,
    })
}

/// Returns `{update}` while the call runs, `{result}` or `{error}` at its end.
async fn next(call: &ToolCall) -> Value {
    let mut outcome = call.outcome.lock().await;
    loop {
        let newest = call
            .progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(output) = newest {
            return json!({ "update": output_json(&output) });
        }
        tokio::select! {
            biased;
            () = call.changed.notified() => {}
            ended = &mut *outcome => return match ended {
                Ok(Ok(output)) => json!({ "result": output_json(&output) }),
                Ok(Err(error)) => json!({ "error": error.0 }),
                Err(_) => json!({ "error": "The tool failed" }),
            },
        }
    }
}
