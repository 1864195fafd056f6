//! Parsed templates.

use crate::context::RenderContext;
use crate::error::TemplateError;
use crate::evaluate;
use crate::parser;
use crate::syntax::Tree;
use crate::value::Value;

/// A parsed template; it can be rendered repeatedly.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    tree: Tree,
}

impl Template {
    /// Parses a template. The name precedes its error messages.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Result<Self, TemplateError> {
        let (name, text) = (name.into(), text.into());
        match parser::parse(&text) {
            Ok(tree) => Ok(Self { name, text, tree }),
            Err(fault) => Err(fault.located(&name, &text)),
        }
    }

    /// Renders the template with data.
    pub fn render(&self, data: &Value, context: &RenderContext) -> Result<String, TemplateError> {
        evaluate::render(&self.text, &self.tree, data, context)
            .map_err(|fault| fault.located(&self.name, &self.text))
    }

    /// Returns the text the template was parsed from.
    pub fn text(&self) -> &str {
        &self.text
    }
}
