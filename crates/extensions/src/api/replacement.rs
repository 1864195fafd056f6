//! The change from one session to another, and from one instance of the extensions to the next.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pinion_agent::{
    Answer, BranchSummary, Command, EngineError, ForkPosition, Navigation, Origin, Preparation,
    Replacement, Reply, SessionApi,
};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::actions::error_message;
use super::bridge::value;
use super::extensions::{Bus, Inner};
use super::instance::Instance;
use super::payload;
use crate::Contribution;

/// Extensions that run out of memory twice within this time are not loaded a third time.
const RESTART_INTERVAL: Duration = Duration::from_secs(60);

/// Compactions that extensions requested and whose results they have not received.
#[derive(Default)]
pub(super) struct Compactions {
    open: HashMap<u64, oneshot::Receiver<Result<Answer, EngineError>>>,
    count: u64,
}

impl Inner {
    /// Submits a compaction before the request is answered, so that the compaction has begun when the extension
    /// continues. Returns its number.
    pub(super) fn start_compaction(&self, instructions: &Value) -> Result<Value, String> {
        let instructions = instructions.as_str().map(str::to_owned);
        let (sender, answer) = oneshot::channel();
        let reply = Reply::new(move |result| drop(sender.send(result)));
        let desk = self.desk().ok_or("The session has not begun.")?;
        desk.submit(Command::Compact { instructions }, reply)
            .map_err(error_message)?;
        let mut compactions = self.compactions();
        compactions.count += 1;
        let number = compactions.count;
        compactions.open.insert(number, answer);
        Ok(number.into())
    }

    async fn compaction(&self, number: &Value) -> Result<Value, String> {
        let number = number.as_u64().unwrap_or_default();
        let answer = self.compactions().open.remove(&number);
        let answer = answer.ok_or("There is no such compaction.")?;
        match answer.await {
            Ok(Ok(Answer::Compacted(result))) => Ok(json!(*result)),
            Ok(Ok(_)) => Ok(Value::Null),
            Ok(Err(error)) => Err(error_message(error)),
            Err(_) => Err("The session is over.".to_owned()),
        }
    }

    fn compactions(&self) -> MutexGuard<'_, Compactions> {
        self.compactions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers requests that take time.
    pub(super) async fn answer_later(
        self: &Arc<Self>,
        generation: u64,
        method: &str,
        arguments: &[Value],
    ) -> Result<Value, String> {
        match method {
            "runProgram" => return Ok(self.run_program(value(arguments, 0)).await),
            "access" => return Ok(self.access(arguments).await),
            "providerKey" => return Ok(self.provider_key(arguments).await),
            "setModel" => return self.choose_model(arguments).await,
            "executeTool" => return self.execute_tool(generation, arguments).await,
            "streamRoom" => {
                let request = value(arguments, 0).as_u64().unwrap_or_default();
                self.streams.room(request).await;
                return Ok(Value::Null);
            }
            _ if method.starts_with("child.") => {
                return self.child_later(generation, method, arguments).await;
            }
            _ => {}
        }
        let desk = self.desk().ok_or("The session has not begun.")?.clone();
        let options = value(arguments, 0);
        match method {
            "compaction" => self.compaction(options).await,
            "waitForIdle" => {
                desk.idle().await;
                Ok(Value::Null)
            }
            "newSession" => {
                let command = Command::NewSession {
                    parent: options["parentSession"].as_str().map(str::to_owned),
                    origin: Origin::Hook,
                    prepare: self.setup(generation, &options["setup"]),
                };
                self.replace(&desk, command).await
            }
            "fork" => {
                let command = Command::Fork {
                    entry_id: options["entryId"].as_str().unwrap_or_default().to_owned(),
                    position: match options["position"].as_str() {
                        Some("at") => ForkPosition::At,
                        _ => ForkPosition::Before,
                    },
                    origin: Origin::Hook,
                };
                self.replace(&desk, command).await
            }
            "switchSession" => {
                let command = Command::SwitchSession {
                    path: PathBuf::from(options["path"].as_str().unwrap_or_default()),
                    origin: Origin::Hook,
                };
                self.replace(&desk, command).await
            }
            "sendMessage" | "sendUserMessage" => self.send_and_wait(&desk, method, arguments).await,
            "navigateTree" => navigate(&desk, options).await,
            "reload" => {
                self.reload(&desk).await?;
                Ok(Value::Null)
            }
            _ => Err(format!("Unknown request: {method}")),
        }
    }

    /// Returns a callback with which the requesting instance prepares the new session.
    fn setup(self: &Arc<Self>, generation: u64, number: &Value) -> Option<Preparation> {
        let number = number.as_u64()?;
        let instance = self.instance(generation)?;
        let inner = Arc::clone(self);
        Some(Preparation::new(move || {
            Box::pin(async move {
                let arguments = vec![number.to_string()];
                let Ok(script) = inner.script() else { return };
                let result = script
                    .call(instance.generation, "main.setup", arguments)
                    .await;
                if let Err(error) = result {
                    inner.fault("<runtime>", "setup", error.to_string());
                }
            })
        }))
    }

    async fn replace(&self, desk: &SessionApi, command: Command) -> Result<Value, String> {
        let cancelled = match desk.ask(command).await.map_err(error_message)? {
            Answer::Cancelled(cancelled) | Answer::Forked { cancelled, .. } => cancelled,
            _ => false,
        };
        let number = self.current().map(|instance| instance.number);
        Ok(json!({"cancelled": cancelled, "generation": number}))
    }

    /// Loads extensions again for a session that replaced another one.
    pub(super) async fn enter_session(
        self: &Arc<Self>,
        change: &Replacement,
        previous: Option<PathBuf>,
        origin: Origin,
    ) {
        let reason = payload::replacement_reason(change);
        self.options.services.reload();
        let Some(instance) = self.renew(Bus::New).await else {
            return;
        };
        let file = previous.as_deref();
        let event = payload::session_event("session_start", reason, "previousSessionFile", file);
        // pi's RPC mode binds once more after its runtime has.
        let times = if self.options.strict && origin == Origin::Client {
            2
        } else {
            1
        };
        for _ in 0..times {
            self.begin_instance(&instance, event.clone(), "startup")
                .await;
        }
        if !self.options.strict {
            self.announce_switch(change, previous).await;
        }
    }

    /// Sends the events with which older versions of the API report a changed session.
    async fn announce_switch(self: &Arc<Self>, change: &Replacement, previous: Option<PathBuf>) {
        let (name, reason) = match change {
            Replacement::New => ("session_switch", "new"),
            Replacement::Resume { .. } => ("session_switch", "resume"),
            Replacement::Fork { .. } => ("session_fork", "fork"),
        };
        if self.listens(name) {
            let file = previous.as_deref();
            let event = payload::session_event(name, reason, "previousSessionFile", file);
            self.observe_event(name, event.to_string()).await;
        }
    }

    /// Reloads settings, resources and extensions for the current session.
    async fn reload(self: &Arc<Self>, desk: &SessionApi) -> Result<(), String> {
        let event = json!({"type": "session_shutdown", "reason": "reload"});
        if self.listens("session_shutdown") {
            self.observe_event("session_shutdown", event.to_string())
                .await;
        }
        self.options.services.reload();
        self.load_again(desk, Bus::Inherited).await
    }

    /// Reloads extensions that ran out of memory, unless that happened recently. Until they are loaded, the tools that
    /// they guard do not run and their commands fail.
    pub(super) async fn restart(self: &Arc<Self>, reason: String) {
        let before = self
            .last_restart
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(Instant::now());
        let again = before.is_some_and(|before| before.elapsed() < RESTART_INTERVAL);
        let Some(desk) = self.desk().filter(|_| !again).cloned() else {
            let reason = format!("{reason}. They stay unloaded until the next session or reload.");
            return self.fault("<runtime>", "memory", reason);
        };
        self.fault(
            "<runtime>",
            "memory",
            format!("{reason}. They are loaded again."),
        );
        // `load_again` has reported a failure.
        let _ = self.load_again(&desk, Bus::New).await;
    }

    async fn load_again(self: &Arc<Self>, desk: &SessionApi, bus: Bus) -> Result<(), String> {
        let active = desk.active_tools();
        let Some(instance) = self.renew(bus).await else {
            return Err("The extensions could not be loaded.".to_owned());
        };
        let mut names = active;
        for name in desk.active_tools() {
            let new = instance
                .summary
                .extensions
                .iter()
                .flat_map(|card| &card.tools);
            let mut new = new.map(|tool| &tool.name);
            if !names.contains(&name) && new.any(|known| *known == name) {
                names.push(name);
            }
        }
        desk.set_active_tools(&names).map_err(error_message)?;
        self.begin_instance(&instance, json!({"reason": "reload"}), "reload")
            .await;
        Ok(())
    }

    /// Replaces the current instance by a new one. With a new bus the old instance becomes stale.
    async fn renew(self: &Arc<Self>, bus: Bus) -> Option<Arc<Instance>> {
        let old = self.current();
        let instance = match self.load_instance(bus).await {
            Ok(instance) => instance,
            Err(error) => {
                self.fault("<runtime>", "load", error.to_string());
                return None;
            }
        };
        if bus == Bus::New {
            self.retire_before(instance.number);
        }
        self.start_instance(&instance).await;
        self.make_current(&instance);
        if let Some(desk) = self.desk() {
            // An error means that the session has ended; then its tools are not needed.
            let _ = desk.reset_tools(self.tools_of(&instance), None);
        }
        if let Some(old) = old.filter(|old| old.retire()) {
            self.close(&old);
        }
        Some(instance)
    }

    /// Announces the start of the session to all extensions and collects their resources.
    pub(super) async fn begin_instance(
        self: &Arc<Self>,
        instance: &Arc<Instance>,
        mut event: Value,
        discovery: &str,
    ) {
        if instance.listens("session_start") {
            event["type"] = "session_start".into();
            self.observe_event("session_start", event.to_string()).await;
        }
        if instance.listens("resources_discover") {
            let cwd = self
                .desk()
                .and_then(|desk| desk.read(|store| store.cwd().to_owned()).ok());
            let event = json!({
                "type": "resources_discover",
                "cwd": cwd.unwrap_or_default().display().to_string(),
                "reason": discovery,
            });
            let arguments = vec![event.to_string()];
            let found = self
                .dispatch::<Value>("discover", "resources_discover", arguments)
                .await;
            if let Ok(found) = found {
                self.add_resources(&found);
            }
        }
    }

    fn add_resources(&self, found: &Value) {
        let skills = contributions(&found["skillPaths"]);
        let prompts = contributions(&found["promptPaths"]);
        self.options.services.add_resources(skills, prompts);
        if let Some(desk) = self.desk() {
            // An error means that the session has ended; then its prompt is not needed.
            let _ = desk.refresh_prompt();
        }
    }
}

fn contributions(list: &Value) -> Vec<Contribution> {
    let list = list.as_array().into_iter().flatten();
    let one = |item: &Value| {
        Some(Contribution {
            path: PathBuf::from(item["path"].as_str()?),
            extension: PathBuf::from(item["extension"].as_str()?),
        })
    };
    list.filter_map(one).collect()
}

async fn navigate(desk: &SessionApi, options: &Value) -> Result<Value, String> {
    let instructions = options["customInstructions"].as_str().map(str::to_owned);
    let summary = (options["summarize"] == true).then(|| match instructions {
        None => BranchSummary::Default,
        Some(text) if options["replaceInstructions"] == true => BranchSummary::Replaced(text),
        Some(text) => BranchSummary::Focused(text),
    });
    let navigation = Navigation {
        target_id: options["targetId"].as_str().unwrap_or_default().to_owned(),
        summary,
        label: options["label"].as_str().map(str::to_owned),
    };
    let answer = desk
        .ask(Command::Navigate(navigation))
        .await
        .map_err(error_message)?;
    let cancelled = matches!(
        answer,
        Answer::Navigated {
            cancelled: true,
            ..
        }
    );
    Ok(json!({"cancelled": cancelled}))
}
