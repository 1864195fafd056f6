//! The session's hook that passes its events to extensions.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::future::BoxFuture;
use pinion_agent::{
    Boundary, BoundaryChanges, BranchSummary, Compacted, CompactionChoice, CompactionPlan,
    CompactionResult, Delivery, Event, FailedCompaction, Hooks, Input, InputOutcome, Moment,
    NavigationChoice, NavigationPlan, Origin, Replacement, RequestContext, RunStart,
    RunStartChanges, SavedCompaction, SelectionSource, SessionApi, ToolCallResult, ToolGate,
    ToolRun, UserBash, UserBashOutcome,
};
use pinion_message::{CustomMessage, Message, Model, ThinkingLevel};
use pinion_tools::ToolOutput;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::extensions::Extensions;
use super::handler_answers::{
    BashAnswer, BeforeRunAnswer, ContextAnswer, InputAnswer, ToolCallAnswer, Verdict,
};
use super::options::InputSource;
use super::work::Work;
use super::{moments, payload};

/// The reason given to the model when the extension that blocked a tool call gave none.
const BLOCKED: &str = "Tool execution was blocked";

impl Hooks for Extensions {
    fn attach(&self, desk: SessionApi) {
        self.inner.set_desk(desk);
    }

    fn wants(&self, moment: Moment) -> bool {
        self.inner.wants.load(Ordering::Relaxed) & moments::bit(moment) != 0
    }

    fn running(&self, cancel: CancellationToken) {
        let mut run = self.inner.run_state();
        run.count += 1;
        run.active = Some((run.count, cancel));
    }

    fn settled(&self) {
        self.inner.run_state().active = None;
    }

    fn boundary<'a>(&'a self, boundary: Boundary<'a>) -> BoxFuture<'a, BoundaryChanges> {
        Box::pin(self.inner.ask_at_boundary(boundary))
    }

    fn observe<'a>(&'a self, event: &'a Event) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if matches!(event, Event::TurnEnd { .. }) {
                return self.inner.tell_aborted_turn(event).await;
            }
            let Some(value) = self.inner.event_of_run(event) else {
                return;
            };
            let name = value["type"].as_str().unwrap_or_default();
            if self.inner.listens(name) {
                self.inner.observe_event(name, value.to_string()).await;
            }
        })
    }

    fn message_end(&self, message: Arc<Message>) -> BoxFuture<'_, Arc<Message>> {
        Box::pin(async move {
            let text = json!(*message).to_string();
            let changed =
                self.inner
                    .dispatch::<Option<Message>>("messageEnd", "message_end", vec![text]);
            match changed.await {
                Ok(Some(changed)) => Arc::new(changed),
                _ => message,
            }
        })
    }

    fn input(&self, input: Input) -> BoxFuture<'_, InputOutcome> {
        Box::pin(async move {
            let message = json!({
                "text": input.text,
                "images": payload::images_value(&input.images),
                "source": match self.inner.options.source {
                    InputSource::Rpc => "rpc",
                    InputSource::Interactive => "interactive",
                },
                "streamingBehavior": input.delivery.map(|delivery| match delivery {
                    Delivery::Steer => "steer",
                    Delivery::FollowUp => "followUp",
                }),
            });
            let heard = self.inner.dispatch::<Option<InputAnswer>>(
                "input",
                "input",
                vec![message.to_string()],
            );
            match heard.await {
                Ok(Some(heard)) if heard.handled => InputOutcome::Handled,
                Ok(Some(heard)) => InputOutcome::Continue {
                    text: heard.text,
                    images: payload::blocks_from(&heard.images),
                },
                _ => InputOutcome::Continue {
                    text: input.text,
                    images: input.images,
                },
            }
        })
    }

    fn user_bash(&self, request: UserBash) -> BoxFuture<'_, UserBashOutcome> {
        Box::pin(async move {
            let given = json!({
                "command": request.command,
                "excludeFromContext": request.exclude_from_context,
                "cwd": request.cwd.display().to_string(),
            });
            // Fail closed: an extension that guards commands must have seen this one.
            let answer = self
                .inner
                .dispatch::<BashAnswer>("userBash", "user_bash", vec![given.to_string()])
                .await;
            match answer {
                Err(failure) => UserBashOutcome::Refused(failure),
                Ok(answer) => match (answer.error, answer.result) {
                    (Some(error), _) => UserBashOutcome::Refused(error),
                    (None, Some(result)) => UserBashOutcome::Done(result.into()),
                    (None, None) => UserBashOutcome::Run,
                },
            }
        })
    }

    fn before_run(&self, opening: RunStart) -> BoxFuture<'_, RunStartChanges> {
        Box::pin(async move {
            let given = json!({
                "prompt": opening.prompt,
                "images": payload::images_value(&opening.images),
                "message": opening.custom.map(Message::Custom),
                "systemPrompt": &*opening.system_prompt,
                "systemPromptOptions": self.inner.desk().map(|desk| self.inner.prompt_options(desk)),
            });
            let name = "before_agent_start";
            let opened =
                self.inner
                    .dispatch::<BeforeRunAnswer>("beforeRun", name, vec![given.to_string()]);
            let opened = opened.await.unwrap_or_default();
            let mut messages = Vec::new();
            for message in opened.messages {
                match serde_json::from_value::<CustomMessage>(message) {
                    Ok(message) => messages.push(message),
                    Err(error) => self.inner.fault("<runtime>", name, error.to_string()),
                }
            }
            if let (Some(names), Some(desk)) = (opened.active_tools, self.inner.desk()) {
                // An error means that the session has ended; then its tools are not needed.
                let _ = desk.set_active_tools(&names);
            }
            RunStartChanges {
                messages,
                system_prompt: opened.system_prompt,
                hidden_tools: opened.hidden_tools,
            }
        })
    }

    fn context(&self, context: RequestContext) -> BoxFuture<'_, RequestContext> {
        Box::pin(async move {
            let messages: Vec<&Message> =
                context.messages.iter().map(|message| &**message).collect();
            let given = json!({"messages": messages, "systemPrompt": &*context.system_prompt});
            let changed = self
                .inner
                .dispatch::<ContextAnswer>("context", "context", vec![given.to_string()])
                .await
                .unwrap_or_default();
            let messages = changed
                .messages
                .map(|messages| messages.into_iter().map(Arc::new).collect());
            RequestContext {
                messages: messages.unwrap_or(context.messages),
                system_prompt: changed
                    .system_prompt
                    .map_or(context.system_prompt, Into::into),
            }
        })
    }

    fn headers(
        &self,
        headers: BTreeMap<String, Option<String>>,
    ) -> BoxFuture<'_, BTreeMap<String, Option<String>>> {
        Box::pin(async move {
            let name = "before_provider_headers";
            let arguments = vec![json!(headers).to_string()];
            let changed = self.inner.dispatch("headers", name, arguments).await;
            changed.unwrap_or(headers)
        })
    }

    fn provider_event<'a>(&'a self, model: &'a Model, data: Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let name = "provider_stream_event";
            let event = json!({
                "type": name,
                "provider": model.provider,
                "api": model.api,
                "model": model.id,
                "data": data,
            });
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn payload(&self, payload: Value) -> BoxFuture<'_, Value> {
        Box::pin(async move {
            let name = "before_provider_request";
            let arguments = vec![payload.to_string()];
            let changed = self
                .inner
                .dispatch::<Option<Value>>("payload", name, arguments);
            match changed.await {
                Ok(Some(changed)) => changed,
                _ => payload,
            }
        })
    }

    fn response(&self, status: u16, headers: BTreeMap<String, String>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let name = "after_provider_response";
            let event = json!({"type": name, "status": status, "headers": headers});
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn tool_call<'a>(&'a self, run: &'a ToolRun, arguments: Value) -> BoxFuture<'a, ToolGate> {
        Box::pin(async move {
            let mut call = json!({
                "toolName": run.name,
                "toolCallId": &*run.call_id,
                "input": arguments,
            });
            payload::add_parent(&mut call, run);
            let arguments = vec![call.to_string()];
            // Fail closed: an extension that guards tools must have seen this call.
            match self
                .inner
                .dispatch::<ToolCallAnswer>("toolCall", "tool_call", arguments)
                .await
            {
                Ok(gate) if !gate.block => ToolGate::Run(gate.input),
                Ok(gate) => {
                    let reason = gate.reason.filter(|reason| !reason.is_empty());
                    let reason = reason.unwrap_or_else(|| BLOCKED.to_owned());
                    if gate.terminate {
                        ToolGate::BlockAndEnd(reason)
                    } else {
                        ToolGate::Block(reason)
                    }
                }
                Err(failure) => ToolGate::Block(failure),
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
            let mut event = payload::output_value(&result.output);
            event["toolName"] = run.name.as_str().into();
            event["toolCallId"] = (*run.call_id).into();
            event["input"] = arguments.clone();
            event["isError"] = result.is_error.into();
            payload::add_parent(&mut event, run);
            let arguments = vec![event.to_string()];
            let patched =
                self.inner
                    .dispatch::<Option<Value>>("toolResult", "tool_result", arguments);
            match patched.await {
                Ok(Some(patched)) => ToolCallResult {
                    is_error: patched["isError"] == true,
                    output: ToolOutput {
                        terminate: result.output.terminate,
                        is_error: result.output.is_error && patched["isError"] == true,
                        ..payload::output_from(&patched)
                    },
                },
                _ => result,
            }
        })
    }

    fn before_replace<'a>(&'a self, change: &'a Replacement) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let question = payload::replacement_question(change);
            !self.inner.question(question, None).await.cancel
        })
    }

    fn leaving<'a>(
        &'a self,
        change: &'a Replacement,
        target: Option<PathBuf>,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let reason = payload::replacement_reason(change);
            let file = target.as_deref();
            let event =
                payload::session_event("session_shutdown", reason, "targetSessionFile", file);
            self.inner
                .observe_event("session_shutdown", event.to_string())
                .await;
        })
    }

    fn entered<'a>(
        &'a self,
        change: &'a Replacement,
        previous: Option<PathBuf>,
        origin: Origin,
    ) -> BoxFuture<'a, ()> {
        Box::pin(self.inner.enter_session(change, previous, origin))
    }

    fn before_compaction(
        &self,
        plan: CompactionPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, CompactionChoice> {
        Box::pin(async move {
            let question = payload::compaction_question(&plan);
            let verdict = self.inner.question(question, Some(cancel)).await;
            match verdict {
                Verdict { cancel: true, .. } => CompactionChoice::Cancel,
                Verdict {
                    compaction: Some(made),
                    ..
                } => CompactionChoice::Use(Box::new(CompactionResult {
                    saved: SavedCompaction::default(),
                    summary: made.summary,
                    first_kept_entry_id: made.first_kept_entry_id,
                    tokens_before: made.tokens_before,
                    estimated_tokens_after: 0,
                    usage: made.usage,
                    details: made.details,
                })),
                _ => CompactionChoice::Go,
            }
        })
    }

    fn compacted(&self, compaction: Compacted) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let name = "session_compact";
            let event = json!({
                "type": name,
                "compactionEntry": compaction.entry,
                "fromExtension": compaction.by_hook,
                "later": payload::compaction_cause(compaction.reason),
            });
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn compaction_failed(&self, failure: FailedCompaction) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let name = "session_compact_failed";
            let mut event = payload::compaction_cause(failure.reason);
            event["type"] = name.into();
            event["aborted"] = failure.error.is_none().into();
            event["fromExtension"] = failure.by_hook.into();
            if let Some(error) = failure.error {
                event["errorMessage"] = error.into();
            }
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn before_navigation(
        &self,
        plan: NavigationPlan,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, NavigationChoice> {
        Box::pin(async move {
            let question = payload::navigation_question(&plan);
            let verdict = self.inner.question(question, Some(cancel)).await;
            if verdict.cancel {
                return NavigationChoice::Cancel;
            }
            let mut navigation = plan.navigation;
            if verdict.label.is_some() {
                navigation.label = verdict.label;
            }
            if let (Some(_), Some(text)) = (&navigation.summary, verdict.custom_instructions) {
                navigation.summary = Some(if verdict.replace_instructions == Some(true) {
                    BranchSummary::Replaced(text)
                } else {
                    BranchSummary::Focused(text)
                });
            }
            let summary = verdict.summary.filter(|_| navigation.summary.is_some());
            NavigationChoice::Go {
                navigation: Box::new(navigation),
                summary: summary.map(|made| (made.summary, made.details)),
            }
        })
    }

    fn navigated(
        &self,
        old_leaf: Option<String>,
        new_leaf: Option<String>,
        summary: Option<Value>,
        by_hook: bool,
    ) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let name = "session_tree";
            let mut event = json!({"type": name, "newLeafId": new_leaf, "oldLeafId": old_leaf});
            if let Some(summary) = summary {
                event["summaryEntry"] = summary;
                event["fromExtension"] = by_hook.into();
            }
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn model_selected(
        &self,
        model: Arc<Model>,
        previous: Option<Arc<Model>>,
        source: SelectionSource,
    ) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let name = "model_select";
            let source = match source {
                SelectionSource::Set => "set",
                SelectionSource::Cycle => "cycle",
            };
            let mut event = json!({"type": name, "model": *model, "source": source});
            if let Some(previous) = previous {
                event["previousModel"] = json!(*previous);
            }
            self.inner.observe_event(name, event.to_string()).await;
        })
    }

    fn renamed(&self, name: Option<&str>) {
        let mut event = json!({"type": "session_info_changed"});
        if let Some(name) = name {
            event["name"] = name.into();
        }
        self.inner.post_event(&event);
    }

    fn level_selected(&self, level: ThinkingLevel, previous: ThinkingLevel) {
        self.inner.post_event(&json!({
            "type": "thinking_level_select",
            "level": level,
            "previousLevel": previous,
        }));
    }

    fn caught_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // JavaScript handles messages in order, so the answer to this one means that all earlier ones are handled.
            let nothing = json!({"type": "pinion:caught_up"});
            self.inner
                .observe_event("pinion:caught_up", nothing.to_string())
                .await;
        })
    }

    fn command(&self, name: &str, arguments: &str) -> Option<BoxFuture<'static, ()>> {
        let instance = self.inner.current()?;
        if !instance.has_command(name) {
            return None;
        }
        let inner = Arc::clone(&self.inner);
        let arguments = vec![json!(name).to_string(), json!(arguments).to_string()];
        let name = name.to_owned();
        Some(Box::pin(async move {
            let mut work = Work::new(&inner, &instance);
            if let Err(error) = work.call("main.command", arguments).await {
                inner.fault(&format!("command:{name}"), "command", error.to_string());
            }
        }))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if self.inner.listens("session_shutdown") {
                let event = json!({"type": "session_shutdown", "reason": "quit"});
                self.inner
                    .observe_event("session_shutdown", event.to_string())
                    .await;
            }
            self.inner.pass_all_held();
        })
    }
}
