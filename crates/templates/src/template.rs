//! A template that was read and can be rendered.

use crate::error::TemplateError;
use crate::evaluate;
use crate::parser;
use crate::surroundings::Surroundings;
use crate::syntax::Tree;
use crate::value::Value;

/// A template, ready to be rendered as often as wanted.
#[derive(Debug)]
pub struct Template {
    name: String,
    text: String,
    tree: Tree,
}

impl Template {
    /// Reads a template. The name stands in front of its errors.
    pub fn parse(name: impl Into<String>, text: impl Into<String>) -> Result<Self, TemplateError> {
        let (name, text) = (name.into(), text.into());
        match parser::parse(&text) {
            Ok(tree) => Ok(Self { name, text, tree }),
            Err(fault) => Err(fault.placed(&name, &text)),
        }
    }

    /// The template with its data put in.
    pub fn render(
        &self,
        data: &Value,
        surroundings: &Surroundings,
    ) -> Result<String, TemplateError> {
        evaluate::render(&self.text, &self.tree, data, surroundings)
            .map_err(|fault| fault.placed(&self.name, &self.text))
    }

    /// The text the template was read from.
    pub fn text(&self) -> &str {
        &self.text
    }
}
