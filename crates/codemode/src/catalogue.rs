//! The tools that a script can call: by identifier, by words, and in full.

use std::sync::Arc;

use pinion_tools::{Namespace, Tool};
use serde_json::{Value, json};

use crate::search::{Document, rank};
use crate::{Shared, declaration};

/// The most tools that a search returns.
const MAX_FOUND: usize = 100;

/// The callable tools of a session, as they are at each moment.
#[derive(Clone)]
pub(crate) struct Catalogue(Arc<Shared>);

impl Catalogue {
    pub fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.0.callable()
    }

    fn tool(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let mut tools = self.tools().into_iter();
        tools.find(|tool| tool.spec().name == name || identifier(&tool.spec().name) == name)
    }

    /// Returns the name of the tool with this identifier.
    pub fn find(&self, identifier: &str) -> Option<String> {
        Some(self.tool(identifier)?.spec().name.clone())
    }

    /// Returns the identifiers of all tools as JSON.
    pub fn identifiers(&self) -> String {
        let tools = self.tools();
        let names = tools.iter().map(|tool| identifier(&tool.spec().name));
        json!(names.collect::<Vec<_>>()).to_string()
    }

    /// Returns `{name, description}` of all tools as JSON.
    pub fn list(&self) -> String {
        let tools = self.tools();
        Value::Array(tools.iter().map(entry).collect()).to_string()
    }

    /// Returns `{name, description}` of the tools that fit `query` best, as JSON.
    pub fn search(&self, query: &str, limit: usize, namespace: Option<&str>) -> String {
        let mut tools = self.tools();
        if let Some(wanted) = namespace {
            tools.retain(|tool| tool.namespace().is_some_and(|it| is_called(it, wanted)));
        }
        let found = best(query, &tools, limit);
        let found = found.iter().map(entry);
        Value::Array(found.collect()).to_string()
    }

    /// Returns the description and the declaration of a tool.
    pub fn describe(&self, name: &str) -> Option<String> {
        Some(declaration::described(&*self.tool(name)?))
    }

    /// Returns `{name, description?, instructions?, tools}` of a namespace as JSON.
    pub fn namespace(&self, name: &str) -> Option<String> {
        let tools = self.tools();
        let of = |tool: &&Arc<dyn Tool>| tool.namespace().is_some_and(|it| is_called(it, name));
        let members: Vec<_> = tools.iter().filter(of).collect();
        let namespace = members.first()?.namespace()?;
        let names = members.iter().map(|tool| identifier(&tool.spec().name));
        let mut found = json!({"name": namespace.name});
        for (member, text) in [
            ("description", &namespace.description),
            ("instructions", &namespace.instructions),
        ] {
            if !text.is_empty() {
                found[member] = text.as_str().into();
            }
        }
        found["tools"] = names.collect();
        Some(found.to_string())
    }
}

/// Returns the tools that fit `query` best, the best first.
pub(crate) fn best(query: &str, tools: &[Arc<dyn Tool>], limit: usize) -> Vec<Arc<dyn Tool>> {
    let documents: Vec<Document> = tools.iter().map(|tool| Document::of(&**tool)).collect();
    let ranked = rank(query, &documents, limit.clamp(1, MAX_FOUND));
    let found = ranked.into_iter().filter_map(|at| tools.get(at));
    found.cloned().collect()
}

fn entry(tool: &Arc<dyn Tool>) -> Value {
    let spec = tool.spec();
    json!({"name": identifier(&spec.name), "description": spec.description})
}

/// Returns a tool's name as an identifier of JavaScript.
pub(crate) fn identifier(name: &str) -> String {
    let sound = |c: char| {
        if c.is_ascii_alphanumeric() || c == '$' {
            c
        } else {
            '_'
        }
    };
    let mut identifier: String = name.chars().map(sound).collect();
    if identifier.starts_with(|c: char| c.is_ascii_digit()) {
        identifier.insert(0, '_');
    }
    identifier
}

fn is_called(namespace: &Namespace, name: &str) -> bool {
    let name = identifier(name);
    identifier(&namespace.name) == name || identifier(&namespace.alias) == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        assert_eq!(identifier("mcp__dev-radius__a.b"), "mcp__dev_radius__a_b");
        assert_eq!(identifier("3d"), "_3d");
        let namespace = Namespace {
            name: "mcp__dev_radius".into(),
            alias: "dev-radius".into(),
            description: String::new(),
            instructions: String::new(),
        };
        for name in [
            "mcp__dev-radius",
            "mcp__dev_radius",
            "dev-radius",
            "dev_radius",
        ] {
            assert!(is_called(&namespace, name), "{name}");
        }
        assert!(!is_called(&namespace, "radius"));
    }
}
