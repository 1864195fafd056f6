//! The hooks of a child session: handlers that its script registered for it, and the guards of the session itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use futures_util::future::BoxFuture;
use pinion_agent::{
    Compacted, CompactionChoice, CompactionPlan, Event, Hooks, Input, InputOutcome, Moment,
    NavigationChoice, NavigationPlan, Origin, Replacement, RequestContext, RunStart,
    RunStartChanges, SelectionSource, SessionApi, ToolCallResult, ToolGate, ToolRun, UserBash,
    UserBashOutcome,
};
use pinion_message::{CustomMessage, Message, Model, ThinkingLevel};
use pinion_tools::ToolOutput;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::outbox::Outbox;
use crate::api::extensions::{Extensions, Inner};
use crate::api::{moments, payload};

/// The answer to a call whose parent session has ended.
const SESSION_OVER: &str = "The session is over.";

/// The questions that handlers of a child can answer, and the moments of the engine at which they are asked.
const QUESTIONS: &[(&str, Moment)] = &[
    ("before_agent_start", Moment::BeforeRun),
    ("context", Moment::Context),
    ("tool_call", Moment::ToolCall),
    ("tool_result", Moment::ToolResult),
];

pub(super) struct ChildHooks {
    session: Weak<Inner>,
    outbox: Arc<Outbox>,
    /// One bit per moment with a handler.
    asks: u64,
    desk: Arc<OnceLock<SessionApi>>,
}

impl ChildHooks {
    pub fn new(
        session: &Arc<Inner>,
        outbox: &Arc<Outbox>,
        asks: &[String],
        desk: Arc<OnceLock<SessionApi>>,
    ) -> Self {
        let asks = QUESTIONS
            .iter()
            .filter(|(name, _)| asks.iter().any(|asked| asked == name))
            .fold(0, |bits, (_, moment)| bits | moments::bit(*moment));
        Self {
            session: Arc::downgrade(session),
            outbox: Arc::clone(outbox),
            asks,
            desk,
        }
    }

    fn asks(&self, moment: Moment) -> bool {
        self.asks & moments::bit(moment) != 0
    }

    async fn ask(&self, kind: &str, given: Value) -> Option<Value> {
        self.outbox.ask(kind, given, None).await
    }

    /// Asks the handlers of the child; `Run` if there are none.
    async fn ask_about_call(&self, run: &ToolRun, arguments: Value) -> ToolGate {
        if !self.asks(Moment::ToolCall) {
            return ToolGate::Run(arguments);
        }
        let given = json!({
            "toolName": run.name,
            "toolCallId": &*run.call_id,
            "input": arguments,
        });
        match self.ask("tool_call", given).await {
            Some(answer) if answer["block"] == true => ToolGate::Block(
                answer["reason"]
                    .as_str()
                    .unwrap_or("Tool execution was blocked")
                    .to_owned(),
            ),
            Some(mut answer) => ToolGate::Run(answer["input"].take()),
            None => ToolGate::Block(SESSION_OVER.to_owned()),
        }
    }
}

impl Hooks for ChildHooks {
    fn attach(&self, session: SessionApi) {
        // The engine attaches once.
        let _ = self.desk.set(session);
    }

    fn wants(&self, moment: Moment) -> bool {
        self.asks(moment) || moment == Moment::ToolCall
    }

    fn running(&self, _cancel: CancellationToken) {}

    fn settled(&self) {}

    fn observe<'a>(&'a self, _event: &'a Event) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn message_end(&self, message: Arc<Message>) -> BoxFuture<'_, Arc<Message>> {
        Box::pin(std::future::ready(message))
    }

    fn input(&self, input: Input) -> BoxFuture<'_, InputOutcome> {
        Box::pin(std::future::ready(InputOutcome::Continue {
            text: input.text,
            images: input.images,
        }))
    }

    fn user_bash(&self, _asked: UserBash) -> BoxFuture<'_, UserBashOutcome> {
        Box::pin(std::future::ready(UserBashOutcome::Run))
    }

    fn before_run(&self, opening: RunStart) -> BoxFuture<'_, RunStartChanges> {
        Box::pin(async move {
            let given = json!({
                "prompt": opening.prompt,
                "images": payload::images_value(&opening.images),
                "systemPrompt": &*opening.system_prompt,
            });
            let answer = self.ask("before_agent_start", given).await;
            let answer = answer.unwrap_or_default();
            let messages = answer["messages"].as_array().cloned().unwrap_or_default();
            let messages = messages
                .into_iter()
                .filter_map(|message| serde_json::from_value::<CustomMessage>(message).ok());
            RunStartChanges {
                messages: messages.collect(),
                system_prompt: answer["systemPrompt"].as_str().map(str::to_owned),
                ..RunStartChanges::default()
            }
        })
    }

    fn context(&self, context: RequestContext) -> BoxFuture<'_, RequestContext> {
        Box::pin(async move {
            let given: Vec<&Message> = context.messages.iter().map(|message| &**message).collect();
            let answer = self.ask("context", json!(given)).await;
            let changed = answer
                .and_then(|answer| serde_json::from_value::<Option<Vec<Message>>>(answer).ok()?);
            match changed {
                Some(changed) => RequestContext {
                    messages: changed.into_iter().map(Arc::new).collect(),
                    ..context
                },
                None => context,
            }
        })
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        Box::pin(std::future::ready(payload))
    }

    fn response(&self, _status: u16, _headers: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn tool_call<'a>(&'a self, run: &'a ToolRun, arguments: Value) -> BoxFuture<'a, ToolGate> {
        Box::pin(async move {
            let arguments = match self.ask_about_call(run, arguments).await {
                ToolGate::Run(arguments) => arguments,
                blocked => return blocked,
            };
            // A guard of the session also guards its children.
            let Some(inner) = self.session.upgrade() else {
                return ToolGate::Block(SESSION_OVER.to_owned());
            };
            let session = Extensions { inner };
            if session.wants(Moment::ToolCall) {
                session.tool_call(run, arguments).await
            } else {
                ToolGate::Run(arguments)
            }
        })
    }

    fn tool_result<'a>(
        &'a self,
        run: &'a ToolRun,
        arguments: &'a Value,
        result: ToolCallResult,
    ) -> BoxFuture<'a, ToolCallResult> {
        Box::pin(async move {
            let mut given = payload::output_value(&result.output);
            given["toolName"] = run.name.as_str().into();
            given["toolCallId"] = (*run.call_id).into();
            given["input"] = arguments.clone();
            given["isError"] = result.is_error.into();
            match self.ask("tool_result", given).await {
                Some(changed) if changed.is_object() => ToolCallResult {
                    is_error: changed["isError"] == true,
                    output: ToolOutput {
                        terminate: result.output.terminate,
                        ..payload::output_from(&changed)
                    },
                },
                _ => result,
            }
        })
    }

    fn before_replace<'a>(&'a self, _change: &'a Replacement) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(true))
    }

    fn leaving<'a>(
        &'a self,
        _change: &'a Replacement,
        _target: Option<PathBuf>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn entered<'a>(
        &'a self,
        _change: &'a Replacement,
        _previous: Option<PathBuf>,
        _origin: Origin,
    ) -> BoxFuture<'a, ()> {
        Box::pin(std::future::ready(()))
    }

    fn before_compaction(
        &self,
        _plan: CompactionPlan,
        _cancel: CancellationToken,
    ) -> BoxFuture<'_, CompactionChoice> {
        Box::pin(std::future::ready(CompactionChoice::Go))
    }

    fn compacted(&self, _compaction: Compacted) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn before_navigation(
        &self,
        plan: NavigationPlan,
        _cancel: CancellationToken,
    ) -> BoxFuture<'_, NavigationChoice> {
        Box::pin(std::future::ready(NavigationChoice::Go {
            navigation: Box::new(plan.navigation),
            summary: None,
        }))
    }

    fn navigated(
        &self,
        _old_leaf: Option<String>,
        _new_leaf: Option<String>,
        _summary: Option<Value>,
        _by_hook: bool,
    ) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn model_selected(
        &self,
        _model: Arc<Model>,
        _previous: Option<Arc<Model>>,
        _source: SelectionSource,
    ) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn level_selected(&self, _level: ThinkingLevel, _previous: ThinkingLevel) {}

    fn caught_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn command(&self, _name: &str, _arguments: &str) -> Option<BoxFuture<'static, ()>> {
        None
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
