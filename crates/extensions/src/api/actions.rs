//! What extensions may ask of the program, and what is answered.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pinion_agent::{
    Answer, Command, Delivery, Disposition, EngineError, MessageTiming, Origin, Prompt, Reply,
    SessionApi,
};
use pinion_message::{Block, CustomMessage};
use pinion_tools::Tool;
use serde_json::{Value, json};

use super::bridge::{text, value};
use super::extensions::Inner;
use super::payload;
use super::provider::Pushed;
use super::theme;
use super::tool::{ExtensionTool, ToolCard};

type Answered = Result<Option<Value>, String>;

/// Nothing to tell.
const DONE: Answered = Ok(None);

fn told(answer: impl Into<Value>) -> Answered {
    Ok(Some(answer.into()))
}

impl Inner {
    /// Answers at once. Runs on JavaScript's thread and never waits for it.
    pub(super) fn answer(
        self: &Arc<Self>,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> Answered {
        match method {
            "listens" => self.listens_now(generation, text(arguments, 0)),
            "fault" => {
                let error = text(arguments, 2).to_owned();
                self.deliver_fault(text(arguments, 0), text(arguments, 1), error);
                DONE
            }
            "tell" => {
                self.tell(value(arguments, 0));
                DONE
            }
            "ask" => told(self.ask(generation, value(arguments, 0))?),
            "asked" => {
                self.asked(text(arguments, 0));
                DONE
            }
            "theme" => {
                let named = self.options.theme.as_deref();
                told(theme::choose(named, |name| std::env::var(name).ok()))
            }
            "toolUpdate" => {
                let work = value(arguments, 0).as_u64().unwrap_or_default();
                if let Some(sink) = self.updates.get(work) {
                    sink(payload::output_from(value(arguments, 1)));
                }
                DONE
            }
            "stopProgram" => {
                self.stop_program(text(arguments, 0));
                DONE
            }
            "models" => told(self.models(text(arguments, 0))),
            "model" => Ok(self.model(value(arguments, 0)).map(|model| json!(*model))),
            "hasCredentials" => {
                let provider = value(arguments, 0)["provider"].as_str().unwrap_or_default();
                told(self.options.services.has_credentials(provider))
            }
            "usesOAuth" => told(self.options.services.uses_login(text(arguments, 0))),
            "registerProvider" => self.register_provider(generation, arguments).map(|()| None),
            "unregisterProvider" => {
                self.options
                    .services
                    .unregister_provider(text(arguments, 0));
                DONE
            }
            "streamed" => {
                let request = value(arguments, 0).as_u64().unwrap_or_default();
                told(match self.streams.push(request, value(arguments, 1)) {
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
                DONE
            }
            "shutdown" => {
                self.shutdown.store(true, Ordering::Release);
                DONE
            }
            "run" => Ok(self.active_run().map(Into::into)),
            "watchRun" => {
                let run = value(arguments, 0).as_u64().unwrap_or_default();
                told(self.watch_run(generation, run))
            }
            _ => match self.desk() {
                Some(desk) => self.answer_from(&desk.clone(), generation, method, arguments),
                None => Err("The session has not begun.".to_owned()),
            },
        }
    }

    /// Answers what only a session knows.
    fn answer_from(
        self: &Arc<Self>,
        desk: &SessionApi,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> Answered {
        match method {
            "session" => self.look_at_session(desk, arguments),
            "append" => self.append(desk, arguments),
            "currentModel" => Ok(desk.model().map(|model| json!(*model))),
            "isIdle" => told(desk.is_idle()),
            "hasPending" => told(desk.has_pending()),
            "contextUsage" => Ok(desk.context_usage().map(|usage| json!(usage))),
            "systemPrompt" => told(
                desk.system_prompt()
                    .map_or_else(String::new, |text| text.to_string()),
            ),
            "thinkingLevel" => told(desk.thinking_level().as_str()),
            "activeTools" => told(desk.active_tools()),
            "allTools" => told(desk.tools().iter().map(tool_card).collect::<Vec<_>>()),
            "startCompaction" => Ok(Some(self.start_compaction(value(arguments, 0))?)),
            "setActiveTools" => {
                let names: Vec<String> =
                    serde_json::from_value(value(arguments, 0).clone()).unwrap_or_default();
                desk.set_active_tools(&names).map_err(words)?;
                DONE
            }
            "addTool" => {
                let card: ToolCard = serde_json::from_value(value(arguments, 0).clone())
                    .map_err(|error| error.to_string())?;
                let tool = ExtensionTool::shared(self, generation, card);
                desk.add_tools(vec![tool]).map_err(words)?;
                DONE
            }
            "commands" => told(self.all_commands(generation)),
            "abort" => {
                desk.post(Command::Abort).map_err(words)?;
                DONE
            }
            "sendMessage" => {
                self.wait_for_room()?;
                self.send_message(desk, value(arguments, 0), value(arguments, 1));
                DONE
            }
            "sendUserMessage" => {
                self.wait_for_room()?;
                self.send_user_message(desk, value(arguments, 0), value(arguments, 1));
                DONE
            }
            _ => Err(format!("Unknown request: {method}")),
        }
    }

    fn listens_now(&self, generation: u64, event: &str) -> Answered {
        if let Some(instance) = self.instance(generation) {
            let moments = instance.listen(event);
            let current = self.current();
            if current.is_some_and(|current| current.number == generation) {
                self.wants.fetch_or(moments, Ordering::AcqRel);
            }
        }
        DONE
    }

    /// Commands of extensions, then templates and skills, as extensions see them.
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
            // What is said while a run is active belongs to it, also when it ends meanwhile.
            (Some("followUp"), false) => MessageTiming::Queued(Delivery::FollowUp),
            (_, false) => MessageTiming::Queued(Delivery::Steer),
            (_, true) if options["triggerTurn"] == true => {
                return self.submit(desk, Command::CustomPrompt(message), EVENT);
            }
            (_, true) => MessageTiming::Immediate,
        };
        self.told_if_failed(EVENT, desk.send_message(message, how));
    }

    fn send_user_message(self: &Arc<Self>, desk: &SessionApi, content: &Value, options: &Value) {
        const EVENT: &str = "send_user_message";
        let prompt = prompt_of(content, options);
        let busy = !desk.is_idle() || options["duringRun"] == true;
        match prompt.when_busy {
            Some(delivery) if busy => {
                let mut words = vec![Block::text(prompt.text)];
                words.extend(prompt.images);
                self.told_if_failed(EVENT, desk.queue(words, delivery));
            }
            None if busy => self.told_if_failed(EVENT, Err(EngineError::Busy)),
            _ => self.submit(desk, Command::Prompt(prompt), EVENT),
        }
    }

    /// Says something as an extension, or as the user would, and waits for the run that it starts.
    pub(super) async fn say_and_wait(
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
                self.send_message(desk, said, options);
                return Ok(Value::Null);
            }
        };
        if let Answer::Taken(Disposition::Started) = desk.ask(command).await.map_err(words)? {
            desk.idle().await;
        }
        Ok(Value::Null)
    }

    fn told_if_failed(&self, event: &str, said: Result<(), EngineError>) {
        if let Err(error) = said {
            self.fault("<runtime>", event, error.to_string());
        }
    }

    /// Asks the session; only a failure is told.
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

    /// Tells JavaScript when the run is aborted; whether it is already.
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

/// What is said in the name of the user.
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
        ..Prompt::new(text)
    }
}

/// The words of an error of the engine.
pub(super) fn words(error: EngineError) -> String {
    error.to_string()
}

fn tool_card(tool: &Arc<dyn Tool>) -> Value {
    let spec = tool.spec();
    let source = tool.source().unwrap_or_else(|| {
        json!({
            "path": format!("<builtin:{}>", spec.name),
            "source": "builtin",
            "scope": "temporary",
            "origin": "top-level",
        })
    });
    json!({
        "name": spec.name,
        "description": spec.description,
        "parameters": spec.parameters,
        "sourceInfo": source,
    })
}
