//! The requests that extensions may send to the program, and their answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pinion_agent::{
    Answer, Command, Delivery, Disposition, EngineError, MessageTiming, Origin, Prompt, Reply,
    SessionApi,
};
use pinion_message::{Block, CustomMessage};
use pinion_tools::{Exposure, Tool, run_blocking};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::bridge::{text, value};
use super::extensions::Inner;
use super::options::ApiRelease;
use super::payload;
use super::provider::Pushed;
use super::theme;
use super::tool::{ExtensionTool, ToolDeclaration};

type RequestResult = Result<Option<Value>, String>;

/// The answer to a request without a result.
const NO_RESULT: RequestResult = Ok(None);

fn result(answer: impl Into<Value>) -> RequestResult {
    Ok(Some(answer.into()))
}

impl Inner {
    /// Answers a request immediately. Runs on JavaScript's thread and never waits for that thread.
    pub(super) fn answer(
        self: &Arc<Self>,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> RequestResult {
        match method {
            "listens" => self.listens_now(generation, text(arguments, 0)),
            "fault" => {
                let error = text(arguments, 2).to_owned();
                self.deliver_fault(text(arguments, 0), text(arguments, 1), error);
                NO_RESULT
            }
            "tell" => {
                self.send_to_client(value(arguments, 0));
                NO_RESULT
            }
            "ask" => result(self.ask(generation, value(arguments, 0))?),
            "asked" => {
                self.close_dialog(text(arguments, 0));
                NO_RESULT
            }
            "theme" => {
                let named = self.options.theme.as_deref();
                // The default of pi 1.x uses the colours of the terminal.
                let default = (self.options.release == ApiRelease::Modern).then_some("system");
                result(theme::choose(named.or(default), |name| {
                    std::env::var(name).ok()
                }))
            }
            "toolUpdate" => {
                let work = value(arguments, 0).as_u64().unwrap_or_default();
                if let Some(sink) = self.updates.get(work) {
                    sink(payload::output_from(value(arguments, 1)));
                }
                NO_RESULT
            }
            "stopNested" => {
                let number = value(arguments, 0).as_u64().unwrap_or_default();
                self.nested.stop(number);
                NO_RESULT
            }
            "stopProgram" => {
                self.stop_program(text(arguments, 0));
                NO_RESULT
            }
            "models" => result(self.models(text(arguments, 0))),
            "model" => Ok(self.model(value(arguments, 0)).map(|model| json!(*model))),
            "hasCredentials" => {
                let provider = value(arguments, 0)["provider"].as_str().unwrap_or_default();
                result(self.options.services.has_credentials(provider))
            }
            "usesOAuth" => result(self.options.services.uses_login(text(arguments, 0))),
            "registerVirtualModel" => self
                .register_virtual_model(generation, arguments)
                .map(|()| None),
            "unregisterVirtualModel" => {
                let (provider, id) = (text(arguments, 0), text(arguments, 1));
                self.options.services.unregister_virtual_model(provider, id);
                NO_RESULT
            }
            "scopedModels" => result(self.scoped_models()),
            "isProjectTrusted" => result(self.options.services.is_project_trusted()),
            "settings" => result(self.options.services.settings()),
            "registerProvider" => self.register_provider(generation, arguments).map(|()| None),
            "unregisterProvider" => {
                self.options
                    .services
                    .unregister_provider(text(arguments, 0));
                NO_RESULT
            }
            "streamed" => {
                let request = value(arguments, 0).as_u64().unwrap_or_default();
                result(match self.streams.push(request, value(arguments, 1)) {
                    Pushed::Taken => "open",
                    Pushed::Full => "full",
                    Pushed::Closed => "closed",
                })
            }
            "setCommands" => {
                if let (Some(instance), Some(list)) =
                    (self.instance(generation), value(arguments, 0).as_array())
                {
                    instance.set_commands(list.clone());
                }
                NO_RESULT
            }
            "shutdown" => {
                self.shutdown.store(true, Ordering::Release);
                NO_RESULT
            }
            "run" => Ok(self.active_run().map(Into::into)),
            "watchRun" => {
                let run = value(arguments, 0).as_u64().unwrap_or_default();
                result(self.watch_run(generation, run))
            }
            _ if method.starts_with("child.") => self.child_now(method, arguments),
            _ => match self.desk() {
                Some(desk) => self.answer_from(&desk.clone(), generation, method, arguments),
                None => Err("The session has not begun.".to_owned()),
            },
        }
    }

    /// Answers a request that needs a session.
    fn answer_from(
        self: &Arc<Self>,
        desk: &SessionApi,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> RequestResult {
        match method {
            "session" => self.query_session(desk, arguments),
            "append" => self.append(desk, arguments),
            "currentModel" => Ok(desk.model().map(|model| json!(*model))),
            "isIdle" => result(desk.is_idle()),
            "hasPending" => result(desk.has_pending()),
            "contextUsage" => Ok(desk.context_usage().map(|usage| json!(usage))),
            "systemPrompt" => result(
                desk.system_prompt()
                    .map_or_else(String::new, |text| text.to_string()),
            ),
            "thinkingLevel" => result(desk.thinking_level().as_str()),
            "promptOptions" => result(self.prompt_options(desk)),
            "composePrompt" => result(self.compose_prompt(desk, value(arguments, 0))?),
            "pendingMessages" => {
                let queued = desk.queued();
                result(
                    queued
                        .iter()
                        .map(|message| json!(**message))
                        .collect::<Vec<_>>(),
                )
            }
            "activeTools" => result(desk.active_tools()),
            "allTools" => result(desk.tools().iter().map(tool_summary).collect::<Vec<_>>()),
            "callableTools" => result(self.callable_tools(desk)),
            "startCompaction" => Ok(Some(self.start_compaction(value(arguments, 0))?)),
            "setActiveTools" => {
                let names: Vec<String> =
                    serde_json::from_value(value(arguments, 0).clone()).unwrap_or_default();
                desk.set_active_tools(&names).map_err(error_message)?;
                NO_RESULT
            }
            "addTool" => {
                let card: ToolDeclaration = serde_json::from_value(value(arguments, 0).clone())
                    .map_err(|error| error.to_string())?;
                let tool = ExtensionTool::shared(self, generation, card);
                desk.add_tools(vec![tool]).map_err(error_message)?;
                NO_RESULT
            }
            "commands" => result(self.all_commands(generation)),
            "abort" => {
                desk.post(Command::Abort).map_err(error_message)?;
                NO_RESULT
            }
            "sendMessage" => {
                self.wait_for_room()?;
                self.send_message(desk, value(arguments, 0), value(arguments, 1));
                NO_RESULT
            }
            "sendUserMessage" => {
                self.wait_for_room()?;
                self.send_user_message(desk, value(arguments, 0), value(arguments, 1));
                NO_RESULT
            }
            _ => Err(format!("Unknown request: {method}")),
        }
    }

    fn listens_now(&self, generation: u64, event: &str) -> RequestResult {
        if let Some(instance) = self.instance(generation) {
            let moments = instance.listen(event);
            let current = self.current();
            if current.is_some_and(|current| current.number == generation) {
                self.wants.fetch_or(moments, Ordering::AcqRel);
            }
        }
        NO_RESULT
    }

    /// Returns the commands of extensions, then templates and skills, in the form that extensions see.
    fn all_commands(&self, generation: u64) -> Vec<Value> {
        let own = self
            .instance(generation)
            .map(|instance| instance.commands());
        let others = self.options.services.commands();
        let mut commands: Vec<Value> = own.into_iter().flatten().chain(others).collect();
        for command in commands.iter_mut().filter_map(Value::as_object_mut) {
            command.retain(|name, _| {
                matches!(
                    name.as_str(),
                    "name" | "description" | "source" | "sourceInfo"
                )
            });
        }
        commands
    }

    fn send_message(self: &Arc<Self>, desk: &SessionApi, message: &Value, options: &Value) {
        const EVENT: &str = "send_message";
        let message: CustomMessage = match serde_json::from_value(message.clone()) {
            Ok(message) => message,
            Err(error) => return self.fault("<runtime>", EVENT, error.to_string()),
        };
        let idle = desk.is_idle() && options["duringRun"] != true;
        let how = match (options["deliverAs"].as_str(), idle) {
            (Some("nextTurn"), _) => MessageTiming::NextPrompt,
            // A message sent while a run is active belongs to that run, even if it ends in the meantime.
            (Some("followUp"), false) => MessageTiming::Queued(Delivery::FollowUp),
            (_, false) => MessageTiming::Queued(Delivery::Steer),
            (_, true) if options["triggerTurn"] == true => {
                return self.submit(desk, Command::CustomPrompt(message), EVENT);
            }
            (_, true) => MessageTiming::Immediate,
        };
        self.report_if_failed(EVENT, desk.send_message(message, how));
    }

    fn send_user_message(self: &Arc<Self>, desk: &SessionApi, content: &Value, options: &Value) {
        const EVENT: &str = "send_user_message";
        let prompt = prompt_of(content, options);
        let busy = !desk.is_idle() || options["duringRun"] == true;
        match prompt.when_busy {
            Some(delivery) if busy => {
                let mut error_message = vec![Block::text(prompt.text)];
                error_message.extend(prompt.images);
                self.report_if_failed(EVENT, desk.queue(error_message, delivery));
            }
            None if busy => self.report_if_failed(EVENT, Err(EngineError::Busy)),
            _ => self.submit(desk, Command::Prompt(prompt), EVENT),
        }
    }

    /// Sends a message as the extension or as the user, and waits for the run that it starts.
    pub(super) async fn send_and_wait(
        self: &Arc<Self>,
        desk: &SessionApi,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, String> {
        let (said, options) = (value(arguments, 0), value(arguments, 1));
        let starts = options["triggerTurn"] == true && options["deliverAs"] != "nextTurn";
        let command = match method {
            "sendUserMessage" => Command::Prompt(prompt_of(said, options)),
            _ if starts && desk.is_idle() => {
                let message = serde_json::from_value(said.clone());
                Command::CustomPrompt(message.map_err(|error| error.to_string())?)
            }
            _ => {
                // Waits until the message is saved.
                let (inner, desk) = (Arc::clone(self), desk.clone());
                let (said, options) = (said.clone(), options.clone());
                let sending = move || inner.send_message(&desk, &said, &options);
                let never = CancellationToken::new();
                run_blocking(&never, sending)
                    .await
                    .map_err(|error| error.to_string())?;
                return Ok(Value::Null);
            }
        };
        if let Answer::Taken(Disposition::Started) =
            desk.ask(command).await.map_err(error_message)?
        {
            desk.idle().await;
        }
        Ok(Value::Null)
    }

    fn report_if_failed(&self, event: &str, said: Result<(), EngineError>) {
        if let Err(error) = said {
            self.fault("<runtime>", event, error.to_string());
        }
    }

    /// Submits a command to the session and reports only a failure.
    fn submit(self: &Arc<Self>, desk: &SessionApi, command: Command, event: &'static str) {
        let inner = Arc::clone(self);
        let reply = Reply::new(move |answer| {
            if let Err(error) = answer {
                inner.fault("<runtime>", event, error.to_string());
            }
        });
        if let Err(error) = desk.submit(command, reply) {
            self.fault("<runtime>", event, error.to_string());
        }
    }

    fn active_run(&self) -> Option<u64> {
        let run = self
            .run
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        run.active.as_ref().map(|(number, _)| *number)
    }

    /// Notifies JavaScript when the run is aborted. Returns whether it is aborted already.
    fn watch_run(self: &Arc<Self>, generation: u64, number: u64) -> bool {
        let cancel = {
            let run = self
                .run
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let active = run.active.as_ref().filter(|(active, _)| *active == number);
            match active {
                None => return false,
                Some((_, cancel)) => cancel.clone(),
            }
        };
        if cancel.is_cancelled() {
            return true;
        }
        let inner = Arc::downgrade(self);
        self.runtime.spawn(async move {
            cancel.cancelled().await;
            if let Some(inner) = inner.upgrade()
                && let Some(instance) = inner.instance(generation)
            {
                inner.post(&instance, "aborted", vec![number.to_string()]);
            }
        });
        false
    }
}

/// Builds a prompt that an extension sends as the user.
fn prompt_of(content: &Value, options: &Value) -> Prompt {
    let mut blocks = payload::blocks_from(content);
    let texts: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
    let text = texts.join("\n");
    blocks.retain(|block| matches!(block, Block::Image { .. }));
    Prompt {
        images: blocks,
        when_busy: match options["deliverAs"].as_str() {
            Some("steer") => Some(Delivery::Steer),
            Some("followUp") => Some(Delivery::FollowUp),
            _ => None,
        },
        origin: Origin::Hook,
        expands: options["expand"] == true,
        ..Prompt::new(text)
    }
}

/// Converts an error of the engine to its message.
pub(super) fn error_message(error: EngineError) -> String {
    error.to_string()
}

/// Describes a tool as extensions see it.
pub(super) fn tool_summary(tool: &Arc<dyn Tool>) -> Value {
    let spec = tool.spec();
    let source = tool.source().unwrap_or_else(|| {
        json!({
            "path": format!("<builtin:{}>", spec.name),
            "source": "builtin",
            "scope": "temporary",
            "origin": "top-level",
        })
    });
    let mut later = json!({
        "promptGuidelines": tool.guidelines(),
        "exposure": match tool.exposure() {
            Exposure::Direct => "direct",
            Exposure::ModelOnly => "model-only",
            Exposure::Codemode => "codemode",
            Exposure::Deferred => "deferred",
            Exposure::Hidden => "hidden",
        },
    });
    if let Some(namespace) = tool.namespace() {
        later["namespace"] = json!({
            "name": namespace.name,
            "aliases": [namespace.alias],
            "description": namespace.description,
            "instructions": namespace.instructions,
        });
    }
    json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "sourceInfo": source,
        "later": later,
    })
}
