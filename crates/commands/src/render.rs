//! A command's templates with its values put in.

use std::sync::Arc;

use pinion_templates::{RenderContext, Template, TemplateError, Value};

use crate::command::{Command, TemplateText};
use crate::error::CommandError;
use crate::parsed::Parsed;
use crate::place::locate;
use crate::world::World;

/// What a command says to a model: the seed of a conversation. Blank texts are left out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RenderedCommand {
    /// The system block.
    pub system_prompt: Option<String>,
    /// User blocks before the prompt.
    pub messages: Vec<String>,
    /// The last user block.
    pub prompt: Option<String>,
}

impl RenderedCommand {
    /// The blocks with their roles, in order.
    pub fn blocks(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let system = self
            .system_prompt
            .iter()
            .map(|text| ("system", text.as_str()));
        let user = self.messages.iter().chain(&self.prompt);
        system.chain(user.map(|text| ("user", text.as_str())))
    }

    /// What `--print-prompt` prints: each block behind its role.
    pub fn transcript(&self) -> String {
        self.blocks()
            .map(|(role, text)| format!("{role}: {text}\n"))
            .collect()
    }
}

impl Command {
    /// Puts the values of a command line into the templates.
    pub fn render(&self, parsed: &Parsed, world: &World) -> Result<RenderedCommand, CommandError> {
        let data = Value::map(parsed.values.clone());
        let environment = Arc::clone(&world.environment);
        let context = RenderContext {
            now: world.now.clone(),
            // A prompt goes to a server: keys that happen to be in the environment must not go with it.
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

    /// Reads all templates without rendering them, to find mistakes before anything runs.
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

/// Names of variables that hold what must not be sent anywhere.
fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL"]
        .iter()
        .any(|word| name.contains(word))
}
