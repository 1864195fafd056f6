//! System messages: the prompt and the tools of the session as part of its conversation.

use std::sync::Arc;

use pinion_message::{Message, SystemMessage, now_millis};

use crate::core::Core;

impl Core {
    /// Returns the system message for the next request: the whole prompt, or what has changed since the last one.
    /// `None` if nothing has changed or the session records no prompts.
    pub fn system_change(&self) -> Option<Arc<Message>> {
        let wanted = self.system_message()?;
        let mut known: Option<SystemMessage> = None;
        for message in &self.state().messages {
            if let Message::System(message) = &**message {
                match &mut known {
                    None => known = Some(message.clone()),
                    Some(known) => known.apply(message),
                }
            }
        }
        let change = match known {
            None => Some(wanted),
            Some(known) => known.change_to(&wanted),
        };
        change.map(|change| Arc::new(Message::System(change)))
    }

    /// Returns the whole system message; `None` if the session records no prompts.
    pub fn system_message(&self) -> Option<SystemMessage> {
        if !self.settings.behaviour.record_system_prompt {
            return None;
        }
        let mut message = self.toolbox().system_message().cloned()?;
        message.timestamp = now_millis();
        for text in message.sections.values_mut() {
            self.mask.value(text);
        }
        Some(message)
    }

    /// Returns the messages of a session as this session shows them.
    pub fn shown(&self, mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        if !self.settings.behaviour.record_system_prompt {
            messages.retain(|message| !is_system(message));
        }
        messages
    }
}

/// Reports whether a message has the system prompt.
pub(crate) fn is_system(message: &Message) -> bool {
    matches!(message, Message::System(_))
}
