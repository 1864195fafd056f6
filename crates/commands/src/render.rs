//! Renders a command's templates with its values.

use std::sync::Arc;

use pinion_templates::{RenderContext, Template, TemplateError, Value};

use crate::command::{Command, TemplateText};
use crate::error::CommandError;
use crate::parsed::Parsed;
use crate::world::World;
use crate::yaml_position::locate;

/// The initial messages of a conversation. Blank texts are omitted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedCommand {
    /// The system prompt.
    pub system_prompt: Option<String>,
    /// User messages before the prompt.
    pub messages: Vec<String>,
    /// The last user message.
    pub prompt: Option<String>,
}

impl RenderedCommand {
    /// Returns the messages with their roles, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let system = self
            .system_prompt
            .iter()
            .map(|text| ("system", text.as_str()));
        let user = self.messages.iter().chain(&self.prompt);
        system.chain(user.map(|text| ("user", text.as_str())))
    }

    /// Returns the output of `--print-prompt`: each message after its role.
    pub fn transcript(&self) -> String {
        self.blocks()
            .map(|(role, text)| format!("{role}: {text}\n"))
            .collect()
    }
}

impl Command {
    /// Renders the templates with the values of a command line.
    pub fn render(&self, parsed: &Parsed, world: &World) -> Result<RenderedCommand, CommandError> {
        let data = Value::map(parsed.values.clone());
        let environment = Arc::clone(&world.environment);
        let context = RenderContext {
            now: world.now.clone(),
            // A prompt is sent to a server, so secrets from the environment must not be in it.
            environment: Arc::new(move |name| {
                if is_secret(name) {
                    None
                } else {
                    environment(name)
                }
            }),
            ..RenderContext::default()
        };
        let one = |text: &TemplateText| self.one(text, &data, &context);
        let system_prompt = self.system_prompt.as_ref().map(one).transpose()?.flatten();
        let mut messages = Vec::new();
        for message in &self.messages {
            messages.extend(one(message)?);
        }
        let prompt = self.prompt.as_ref().map(one).transpose()?.flatten();
        Ok(RenderedCommand {
            system_prompt,
            messages,
            prompt,
        })
    }

    /// Parses all templates without rendering them, to find errors before anything runs.
    pub fn check_templates(&self) -> Result<(), CommandError> {
        let all = self
            .system_prompt
            .iter()
            .chain(&self.messages)
            .chain(&self.prompt);
        for text in all {
            self.template(text)?;
        }
        Ok(())
    }

    fn template(&self, text: &TemplateText) -> Result<Template, TemplateError> {
        Template::parse(self.origin.name.as_str(), text.text.as_str())
            .map_err(|error| self.placed(text, error))
    }

    fn placed(&self, text: &TemplateText, error: TemplateError) -> TemplateError {
        let (line, column) = locate(&self.origin.text, text.start, &text.text, error.offset);
        error.moved(line, column)
    }

    fn one(
        &self,
        text: &TemplateText,
        data: &Value,
        context: &RenderContext,
    ) -> Result<Option<String>, TemplateError> {
        if text.text.trim().is_empty() {
            return Ok(None);
        }
        let rendered = self
            .template(text)?
            .render(data, context)
            .map_err(|error| self.placed(text, error))?;
        Ok(Some(rendered).filter(|rendered| !rendered.trim().is_empty()))
    }
}

/// Reports whether a variable's name suggests a secret.
fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .iter()
        .any(|word| name.contains(word))
}
