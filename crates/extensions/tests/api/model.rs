//! A model that follows commands in the prompt: `CALL tool {json} && …`, `SAY text`, `SLOW`, `COSTLY`.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use pinion_llm::{EventStream, Provider, Request, StreamEvent};
use pinion_message::{AssistantMessage, Block, Message, StopReason, ToolCall, Usage, now_millis};
use serde_json::Value;

pub struct Obedient;

impl Provider for Obedient {
    fn stream(&self, request: Request) -> EventStream {
        let answer = answer(&request);
        let empty = AssistantMessage {
            content: Vec::new(),
            stop_reason: StopReason::Stop,
            ..answer.clone()
        };
        let mut events = vec![StreamEvent::Start(empty)];
        for (index, block) in answer.content.iter().enumerate() {
            if let Block::Text(text) = block {
                let delta = Arc::from(text.text.as_str());
                events.push(StreamEvent::BlockStart {
                    index,
                    block: Block::text(""),
                });
                events.push(StreamEvent::Delta { index, delta });
            } else {
                let block = block.clone();
                events.push(StreamEvent::BlockStart { index, block });
            }
            let block = block.clone();
            events.push(StreamEvent::BlockEnd { index, block });
        }
        let slow = asked(&request).starts_with("SLOW");
        let cancel = request.cancel.clone();
        let end = stream::once(async move {
            if slow {
                cancel.cancelled().await;
                let stop_reason = StopReason::Aborted;
                return StreamEvent::End(AssistantMessage {
                    stop_reason,
                    ..answer
                });
            }
            StreamEvent::End(answer)
        });
        stream::iter(events).chain(end).boxed()
    }
}

fn asked(request: &Request) -> String {
    match request.messages.last().map(|message| &**message) {
        Some(Message::User(user)) => user.content.joined_text(""),
        Some(Message::Custom(custom)) => custom.content.joined_text(""),
        _ => "tools".to_owned(),
    }
}

fn answer(request: &Request) -> AssistantMessage {
    let asked = asked(request);
    let content = if let Some(calls) = asked.strip_prefix("CALL ") {
        let calls = calls.split(" && ").enumerate();
        calls.map(|(at, call)| call_block(at, call)).collect()
    } else if let Some(text) = asked.strip_prefix("SAY ") {
        vec![Block::text(text)]
    } else if asked == "SYSTEM" {
        vec![Block::text(
            request.system_prompt.as_deref().unwrap_or_default(),
        )]
    } else if asked == "COUNT" {
        vec![Block::text(request.messages.len().to_string())]
    } else if asked == "tools" {
        vec![Block::text("tools done")]
    } else {
        vec![Block::text("ok")]
    };
    let calls = content
        .iter()
        .any(|block| matches!(block, Block::ToolCall(_)));
    AssistantMessage {
        content,
        api: request.model.api.clone(),
        provider: request.model.provider.clone(),
        model: request.model.id.clone(),
        usage: Usage {
            output: if asked == "COSTLY" { 7 } else { 0 },
            ..Usage::default()
        },
        stop_reason: if calls {
            StopReason::ToolUse
        } else {
            StopReason::Stop
        },
        timestamp: now_millis(),
        response_id: None,
        response_model: None,
        error_message: None,
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}

fn call_block(at: usize, call: &str) -> Block {
    let (name, arguments) = call.split_once(' ').unwrap_or((call, "{}"));
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    Block::ToolCall(ToolCall {
        id: format!("call_{}", at + 1),
        name: name.to_owned(),
        arguments,
        thought_signature: None,
        arguments_error: None,
    })
}
