//! Amazon Bedrock's Converse API.

mod address;
mod failure;
mod messages;
mod request;
mod stream;
mod thinking;

pub(crate) use failure::{exception_text, failure_text, is_retryable_status};
pub(crate) use request::build;
pub(crate) use stream::Stream;

use pinion_message::Model;

/// The id and the name of a model in the forms in which families are recognised.
struct Names([String; 4]);

impl Names {
    fn of(model: &Model) -> Self {
        let (id, name) = (model.id.to_lowercase(), model.name.to_lowercase());
        let dashed = |text: &str| text.replace([' ', '_', '.', ':'], "-");
        let (dashed_id, dashed_name) = (dashed(&id), dashed(&name));
        Self([id, name, dashed_id, dashed_name])
    }

    fn has(&self, part: &str) -> bool {
        self.0.iter().any(|name| name.contains(part))
    }

    fn has_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.has(part))
    }

    fn is_claude(&self) -> bool {
        self.has_any(&["anthropic.claude", "claude"])
    }
}
