//! The tool `codemode`: runs a script, makes its calls, and reports them.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use pinion_agent::Reach;
use pinion_message::{Block, ToolSpec};
use pinion_tools::{
    Declarations, Exposure, Loadout, NestedCaller, NestedOutcome, Tool, ToolContext, ToolError,
    ToolOutput,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::catalogue::Catalogue;
use crate::options::ScriptOptions;
use crate::sandbox::{CallAnswer, CallRequest, Script, ScriptEnd, Surroundings};
use crate::{CODEMODE, CodemodeSettings, Shared, description, output};

/// Scripts that run at the same time in one process.
const MAX_SCRIPTS: usize = 2;
/// Time that a script waits for others to end.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time for an engine to end after it was stopped.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);
/// Characters of arguments in the progress.
const MAX_SHOWN_ARGUMENTS: usize = 200;
/// Characters of an error in the progress.
const MAX_SHOWN_ERROR: usize = 500;

static RUNNING: Semaphore = Semaphore::const_new(MAX_SCRIPTS);

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    name: CODEMODE.to_owned(),
    description: String::new(),
    parameters: json!({
        "type": "object",
        "required": ["code"],
        "properties": {
            "code": {"type": "string", "description": "JavaScript source, without a code fence"},
        },
    }),
});

static GUIDELINES: LazyLock<[String; 1]> = LazyLock::new(|| {
    ["Use codemode for several independent calls, for chains of calls, and to filter large results.".to_owned()]
});

pub(crate) struct Codemode {
    shared: Arc<Shared>,
    settings: CodemodeSettings,
}

impl Codemode {
    pub fn new(shared: Arc<Shared>, settings: CodemodeSettings) -> Self {
        Self { shared, settings }
    }

    async fn run(&self, code: String, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let options = ScriptOptions::read(&code).map_err(ToolError)?;
        let begun = Instant::now();
        let mut calls = Calls::new(context);
        calls.report();
        let deadline = options.timeout.map(|timeout| begun + timeout);
        let end = tokio::select! {
            biased;
            () = context.cancel.cancelled() => failed("Script aborted: the call was aborted"),
            () = passed(deadline) => failed("Script timed out: timeout_ms has passed before the script began"),
            permit = tokio::time::timeout(START_TIMEOUT, RUNNING.acquire()) => match permit {
                Ok(Ok(_permit)) => self.run_script(code, deadline, &mut calls, context).await,
                _ => failed("Script timed out: other scripts did not end in time; try again"),
            },
        };
        calls.cancel_running();
        let seconds = begun.elapsed().as_secs_f64();
        Ok(result(end, seconds, options.output_tokens, calls).await)
    }

    async fn run_script(
        &self,
        code: String,
        deadline: Option<Instant>,
        calls: &mut Calls<'_>,
        context: &ToolContext,
    ) -> ScriptEnd {
        let reach = reach(&code);
        tokio::select! {
            biased;
            () = context.cancel.cancelled() => return failed("Script aborted: the call was aborted"),
            () = self.shared.arrived(&reach) => {}
        }
        let surroundings = Surroundings {
            catalogue: Catalogue::new(Arc::clone(&self.shared)),
            session: self.shared.session.get().cloned(),
            deadline,
        };
        let mut script = match Script::start(code, surroundings) {
            Ok(script) => script,
            Err(error) => return failed(&format!("Script sandbox failed: {error}")),
        };
        loop {
            tokio::select! {
                biased;
                () = context.cancel.cancelled() => break,
                end = &mut script.end => return end.unwrap_or_else(|_| failed("Script sandbox failed")),
                answer = calls.step(), if calls.has_running() => if let Some(answer) = answer {
                    script.answer(answer);
                },
                Some(request) = script.requests.recv(), if calls.may_begin() => calls.begin(request),
            }
        }
        script.stop();
        let end = tokio::time::timeout(STOP_TIMEOUT, &mut script.end).await;
        end.ok()
            .and_then(Result::ok)
            .unwrap_or_else(|| failed("Script aborted: the call was aborted"))
    }
}

/// Returns the tools that a script may reach: those whose names it contains, or all if it lists or searches them.
fn reach(code: &str) -> Reach {
    let lists = [
        "ALL_TOOLS",
        "searchTools",
        "describeTool",
        "describeNamespace",
    ];
    // Names can also be computed: `tools["mcp__" + server]`.
    if lists.iter().any(|name| code.contains(name)) || code.contains("tools[") {
        Reach::All
    } else {
        Reach::Words(code.to_owned())
    }
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

fn failed(error: &str) -> ScriptEnd {
    ScriptEnd {
        items: Vec::new(),
        error: Some(error.to_owned()),
    }
}

async fn result(end: ScriptEnd, seconds: f64, token_limit: usize, calls: Calls<'_>) -> ToolOutput {
    let ScriptEnd { items, error } = end;
    let outcome = if error.is_some() {
        "failed"
    } else {
        "completed"
    };
    let head = format!("Script {outcome}\nWall time {seconds:.1} seconds\nOutput:\n");
    let shown = output::show(items, token_limit).await;
    let mut content = vec![Block::text(head)];
    content.extend(shown.content);
    if let Some(error) = &error {
        let made = calls.summary();
        content.push(Block::text(format!("Script error:\n{error}\n\n{made}")));
    }
    let mut details = calls.details();
    if let Some(path) = shown.full {
        details["fullOutputPath"] = path.to_string_lossy().into();
    }
    ToolOutput {
        content,
        details: Some(details),
        is_error: error.is_some(),
        ..ToolOutput::default()
    }
}

/// The script's id of a call, its position in the records, and its outcome.
type EndedCall = (u64, usize, Result<NestedOutcome, ToolError>);

/// The calls of a script.
struct Calls<'a> {
    context: &'a ToolContext,
    /// The calls as clients see them.
    records: Vec<Record>,
    running: FuturesUnordered<BoxFuture<'a, EndedCall>>,
    /// The beginning of the newest call; the next one begins after it.
    beginning: Option<oneshot::Receiver<Arc<str>>>,
}

struct Record {
    id: Option<Arc<str>>,
    name: String,
    arguments: String,
    status: &'static str,
    duration: Option<Duration>,
    error: Option<String>,
}

impl<'a> Calls<'a> {
    fn new(context: &'a ToolContext) -> Self {
        Self {
            context,
            records: Vec::new(),
            running: FuturesUnordered::new(),
            beginning: None,
        }
    }

    fn has_running(&self) -> bool {
        !self.running.is_empty()
    }

    fn may_begin(&self) -> bool {
        self.beginning.is_none()
    }

    fn begin(&mut self, request: CallRequest) {
        let CallRequest {
            id,
            name,
            arguments,
        } = request;
        let at = self.records.len();
        self.records.push(Record {
            id: None,
            name: name.clone(),
            arguments: shortened(&arguments.to_string(), MAX_SHOWN_ARGUMENTS),
            status: "running",
            duration: None,
            error: None,
        });
        let (started, beginning) = oneshot::channel();
        self.beginning = Some(beginning);
        let caller: Option<&'a NestedCaller> = self.context.nested.as_ref();
        self.running.push(Box::pin(async move {
            let outcome = match caller {
                Some(caller) => caller.call(name, arguments, None, started).await,
                None => Err(ToolError("Calls within calls are too deep".into())),
            };
            (id, at, outcome)
        }));
    }

    /// Reports the beginning of a call, or returns the answer to one that has ended. Dropping the future loses nothing.
    async fn step(&mut self) -> Option<CallAnswer> {
        tokio::select! {
            biased;
            () = begun(&mut self.beginning) => {
                self.beginning = None;
                self.report();
                // Clients receive this report before the call reports progress.
                tokio::task::yield_now().await;
                None
            }
            Some((id, at, outcome)) = self.running.next() => {
                let result = self.end(at, outcome);
                self.report();
                Some(CallAnswer { id, result })
            }
        }
    }

    fn end(
        &mut self,
        at: usize,
        outcome: Result<NestedOutcome, ToolError>,
    ) -> Result<String, String> {
        let outcome = outcome.map_err(|error| error.0);
        if let Some(record) = self.records.get_mut(at) {
            match &outcome {
                Ok(outcome) => {
                    record.id = Some(Arc::clone(&outcome.call_id));
                    record.duration = Some(outcome.duration.unwrap_or_default());
                    record.status = if outcome.is_error { "error" } else { "ok" };
                    let text = text_of(outcome);
                    let error = shortened(&text, MAX_SHOWN_ERROR);
                    record.error = outcome.is_error.then_some(error);
                }
                Err(_) => record.status = "cancelled",
            }
        }
        let name = self.records.get(at).map_or("", |record| &record.name);
        outcome.and_then(|outcome| value_of(name, &outcome))
    }

    fn cancel_running(&mut self) {
        for record in &mut self.records {
            if record.status == "running" {
                record.status = "cancelled";
            }
        }
    }

    fn report(&self) {
        (self.context.updates)(ToolOutput {
            details: Some(self.details()),
            ..ToolOutput::default()
        });
    }

    fn details(&self) -> Value {
        let parent = &self.context.call_id;
        let calls = self.records.iter().map(|record| {
            // The number of a call that has not ended may still be unknown.
            let id = match &record.id {
                Some(id) => id.to_string(),
                None => format!("{parent}/?"),
            };
            let mut call = json!({
                "id": id,
                "name": record.name,
                "args": record.arguments,
                "status": record.status,
            });
            if let Some(duration) = record.duration {
                call["durationMs"] = (duration.as_secs_f64() * 1000.0).into();
            }
            if let Some(error) = &record.error {
                call["error"] = error.as_str().into();
            }
            call
        });
        json!({"calls": calls.collect::<Vec<_>>()})
    }

    /// Returns a sentence about the calls, for the model after an error.
    fn summary(&self) -> String {
        if self.records.is_empty() {
            return "The script made no calls.".into();
        }
        let calls = self.records.iter();
        let calls: Vec<String> = calls
            .map(|record| format!("{} ({})", record.name, record.status))
            .collect();
        format!(
            "Calls before the error, which are not undone: {}",
            calls.join(", ")
        )
    }
}

/// Waits for the beginning of a call; without one it never returns.
async fn begun(beginning: &mut Option<oneshot::Receiver<Arc<str>>>) {
    match beginning {
        // A call that does not begin ends with an error.
        Some(beginning) => drop(beginning.await),
        None => std::future::pending().await,
    }
}

fn text_of(outcome: &NestedOutcome) -> String {
    let texts = outcome.output.content.iter().filter_map(Block::as_text);
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns the value that a call resolves to, as JSON, or the error with which it rejects.
fn value_of(name: &str, outcome: &NestedOutcome) -> Result<String, String> {
    if let Some(structured) = &outcome.output.structured_content {
        return Ok(structured.to_string());
    }
    let text = text_of(outcome);
    if outcome.is_error {
        return Err(text);
    }
    let image = outcome.output.content.iter().find_map(|block| match block {
        Block::Image { data, mime_type } => Some((data, mime_type)),
        _ => None,
    });
    Ok(match image {
        Some((data, mime)) if name == "read" => {
            json!({"type": "image", "data": data, "mimeType": mime, "note": text}).to_string()
        }
        _ => Value::from(text).to_string(),
    })
}

fn shortened(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept = text.chars().take(limit - 3);
    kept.chain("...".chars()).collect()
}

impl Tool for Codemode {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn snippet(&self) -> Option<&str> {
        Some("Run JavaScript that calls other tools")
    }

    fn guidelines(&self) -> &[String] {
        &*GUIDELINES
    }

    fn exposure(&self) -> Exposure {
        Exposure::ModelOnly
    }

    fn arrange(&self, loadout: &Loadout<'_>) -> Declarations {
        let hidden = if self.settings.replaces_tools {
            let is_callable = |tool: &&Arc<dyn Tool>| {
                let mut callable = loadout.callable.iter();
                callable.any(|callable| Arc::ptr_eq(callable, tool))
            };
            let hidden = loadout.active.iter().filter(is_callable);
            hidden.map(|tool| tool.spec().name.clone()).collect()
        } else {
            Vec::new()
        };
        Declarations {
            description: Some(description::describe(
                loadout.callable,
                self.settings.inline_budget,
            )),
            hidden,
        }
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        context: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let code = arguments["code"].as_str().unwrap_or_default().to_owned();
            self.run(code, context).await
        })
    }
}
