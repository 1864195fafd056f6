//! The answer under construction: one message that grows block by block, and its events. Every
//! protocol writes through this type, so that events and message cannot disagree, and so that
//! exactly one `End` comes last.

use std::collections::VecDeque;
use std::sync::Arc;

use pinion_message::{AssistantMessage, Block, Model, StopReason, ToolCall, Usage};
use serde_json::{Map, Value};

use crate::classify::is_refusal;
use crate::partial_json::read_arguments;
use crate::request::StreamEvent;

pub(crate) struct Answer {
    model: Arc<Model>,
    message: AssistantMessage,
    /// One per block of the message.
    slots: Vec<Slot>,
    events: VecDeque<StreamEvent>,
    ended: bool,
}

struct Slot {
    open: bool,
    /// Argument text of a tool call, parsed once when the block closes.
    arguments: String,
}

impl Answer {
    pub(crate) fn new(model: Arc<Model>) -> Self {
        let message = blank(&model);
        Self {
            model,
            message,
            slots: Vec::new(),
            events: VecDeque::new(),
            ended: false,
        }
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    pub(crate) fn message(&self) -> &AssistantMessage {
        &self.message
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.ended
    }

    pub(crate) fn next_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    /// Sends `Start`. Call it when the response headers have arrived.
    pub(crate) fn start(&mut self) {
        self.events
            .push_back(StreamEvent::Start(self.message.clone()));
    }

    /// Sets the provider's id of the response. The first id counts.
    pub(crate) fn set_response_id(&mut self, id: &str) {
        if self.message.response_id.is_none() && !id.is_empty() {
            self.message.response_id = Some(id.to_owned());
        }
    }

    /// Sets the model that answered, if it is not the one that was asked.
    pub(crate) fn set_response_model(&mut self, model: &str) {
        if self.message.response_model.is_none() && !model.is_empty() && model != self.model.id {
            self.message.response_model = Some(model.to_owned());
        }
    }

    /// Sets the provider's own word for the reason why the answer ends.
    pub(crate) fn set_raw_stop_reason(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.message.raw_stop_reason = Some(reason.to_owned());
        }
    }

    /// Replaces the token counts and prices them.
    pub(crate) fn set_usage(&mut self, usage: Usage) {
        self.set_usage_at(usage, 1.0);
    }

    /// Replaces the token counts and prices them at a multiple of the list price.
    pub(crate) fn set_usage_at(&mut self, mut usage: Usage, multiple: f64) {
        usage.price(&self.model.cost);
        if multiple != 1.0 {
            let cost = &mut usage.cost;
            cost.input *= multiple;
            cost.output *= multiple;
            cost.cache_read *= multiple;
            cost.cache_write *= multiple;
            cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        }
        if usage != self.message.usage {
            self.message.usage = usage;
            self.events.push_back(StreamEvent::Usage(usage));
        }
    }

    /// Begins a block and returns its index in the message.
    pub(crate) fn open(&mut self, block: Block) -> usize {
        let index = self.message.content.len();
        self.events.push_back(StreamEvent::BlockStart {
            index,
            block: block.clone(),
        });
        self.message.content.push(block);
        self.slots.push(Slot {
            open: true,
            arguments: String::new(),
        });
        index
    }

    /// Begins a tool call without arguments and returns its index in the message.
    pub(crate) fn open_call(&mut self, id: String, name: &str) -> usize {
        self.open(Block::ToolCall(ToolCall {
            id,
            name: name.to_owned(),
            arguments: Value::Object(Map::new()),
            thought_signature: None,
            arguments_error: None,
        }))
    }

    /// Appends `delta` to an open block; for a tool call `delta` is argument text.
    pub(crate) fn grow(&mut self, index: usize, delta: &str) {
        match self.message.content.get_mut(index) {
            Some(Block::Text(block)) => block.text.push_str(delta),
            Some(Block::Thinking(block)) => block.thinking.push_str(delta),
            Some(Block::ToolCall(_)) => {
                if let Some(slot) = self.slots.get_mut(index) {
                    slot.arguments.push_str(delta);
                }
            }
            _ => return,
        }
        self.events.push_back(StreamEvent::Delta {
            index,
            delta: Arc::from(delta),
        });
    }

    /// The argument text of a tool call so far.
    pub(crate) fn argument_text(&self, index: usize) -> &str {
        self.slots.get(index).map_or("", |slot| &slot.arguments)
    }

    /// Replaces the argument text without an event: the end of the block carries it.
    pub(crate) fn set_argument_text(&mut self, index: usize, text: &str) {
        if let Some(slot) = self.slots.get_mut(index) {
            text.clone_into(&mut slot.arguments);
        }
    }

    /// The block itself, for changes without an event, such as signatures.
    pub(crate) fn block_mut(&mut self, index: usize) -> Option<&mut Block> {
        self.message.content.get_mut(index)
    }

    pub(crate) fn is_open(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.open)
    }

    /// Ends a block. Its arguments are parsed from their text; empty text is an empty object.
    pub(crate) fn close(&mut self, index: usize) {
        self.parse_arguments_at(index, EmptyArguments::BecomeObject);
        if let Some(block) = self.message.content.get(index) {
            self.events.push_back(StreamEvent::BlockEnd {
                index,
                block: block.clone(),
            });
        }
    }

    /// Ends a block as [`Answer::close`] does. Arguments that are not JSON become an empty object.
    pub(crate) fn close_strictly(&mut self, index: usize) {
        self.parse_arguments_at(index, EmptyArguments::BecomeObject);
        if let Some(Block::ToolCall(call)) = self.message.content.get_mut(index)
            && call.arguments_error.is_some()
        {
            call.arguments = Value::Object(Map::new());
        }
        if let Some(block) = self.message.content.get(index) {
            self.events.push_back(StreamEvent::BlockEnd {
                index,
                block: block.clone(),
            });
        }
    }

    /// Ends every block that is still open, in order.
    pub(crate) fn close_all(&mut self) {
        for index in 0..self.slots.len() {
            if self.is_open(index) {
                self.close(index);
            }
        }
    }

    /// Ends a complete answer.
    pub(crate) fn done(&mut self, reason: StopReason) {
        self.end(reason, None);
    }

    /// Ends an answer that broke off. The message contains what was received.
    pub(crate) fn fail(&mut self, text: String) {
        self.end(StopReason::Error, Some(text));
    }

    /// Ends an answer that the caller cancelled. The message contains what was received.
    pub(crate) fn abort(&mut self, text: &str) {
        self.end(StopReason::Aborted, Some(text.to_owned()));
    }

    fn end(&mut self, reason: StopReason, error: Option<String>) {
        if self.ended {
            return;
        }
        self.ended = true;
        for index in 0..self.slots.len() {
            self.parse_arguments_at(index, EmptyArguments::StayAsTheyAre);
        }
        let mut message = std::mem::replace(&mut self.message, blank(&self.model));
        message.stop_reason = reason;
        message.error_message = error;
        message.refused = is_refusal(&message);
        self.events.push_back(StreamEvent::End(message));
    }

    /// Parses the arguments of an open tool call into the block.
    fn parse_arguments_at(&mut self, index: usize, empty: EmptyArguments) {
        let Some(slot) = self.slots.get_mut(index) else {
            return;
        };
        if !std::mem::replace(&mut slot.open, false) {
            return;
        }
        if let Some(Block::ToolCall(call)) = self.message.content.get_mut(index)
            && (!slot.arguments.is_empty() || matches!(empty, EmptyArguments::BecomeObject))
        {
            let (arguments, error) = read_arguments(&slot.arguments);
            call.arguments = arguments;
            // A call that was cut off does not run, so an error in its arguments is not reported.
            call.arguments_error = error.filter(|_| matches!(empty, EmptyArguments::BecomeObject));
            slot.arguments = String::new();
        }
    }
}

enum EmptyArguments {
    BecomeObject,
    StayAsTheyAre,
}

/// An empty message, as in the first event.
pub(crate) fn blank(model: &Model) -> AssistantMessage {
    AssistantMessage {
        content: Vec::new(),
        api: model.api.clone(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        timestamp: pinion_message::now_millis(),
        response_id: None,
        response_model: None,
        error_message: None,
        raw_stop_reason: None,
        refused: false,
        duration_ms: None,
        thinking_level: None,
    }
}
