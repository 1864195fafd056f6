//! The tools of a session: all of them, and those that the model may call.

use std::sync::Arc;

use pinion_message::{DeclaredTool, SystemMessage, ToolSpec};
use pinion_tools::{Exposure, Loadout, Tool};
use serde_json::Value;

use crate::config::{SystemPrompt, ToolFilter};

/// The tools of a session and the system prompt that names them.
pub(crate) struct Toolbox {
    /// The tools that the session started with.
    own: Vec<Arc<dyn Tool>>,
    /// The names of those that are active by default.
    own_active: Vec<String>,
    filter: ToolFilter,
    all: Vec<Arc<dyn Tool>>,
    active: Vec<Arc<dyn Tool>>,
    /// The tools that a supply has added.
    supplied: Vec<Arc<dyn Tool>>,
    /// The names of tools that a supply has activated.
    wanted: Vec<String>,
    specs: Arc<[ToolSpec]>,
    system_prompt: Arc<str>,
    /// The prompt and the active tools as a message, if the session records them.
    system_message: Option<SystemMessage>,
    records_prompt: bool,
}

impl Toolbox {
    /// Creates the toolbox without specs and system prompt; call [`Toolbox::renew`] next.
    pub fn new(
        own: Vec<Arc<dyn Tool>>,
        own_active: Vec<String>,
        filter: ToolFilter,
        records_prompt: bool,
    ) -> Self {
        let mut toolbox = Self {
            own,
            own_active,
            filter,
            all: Vec::new(),
            active: Vec::new(),
            supplied: Vec::new(),
            wanted: Vec::new(),
            specs: Arc::new([]),
            system_prompt: "".into(),
            system_message: None,
            records_prompt,
        };
        toolbox.reset(Vec::new());
        toolbox
    }

    /// Makes the specs and the system prompt for the active tools.
    pub fn renew(&mut self, prompt: &dyn SystemPrompt) {
        let callable = self.callable_tools();
        let loadout = Loadout {
            active: &self.active,
            callable: &callable,
        };
        let mut hidden: Vec<String> = Vec::new();
        let mut described: Vec<(String, String)> = Vec::new();
        for tool in &self.active {
            let declarations = tool.arrange(&loadout);
            hidden.extend(declarations.hidden);
            let description = declarations.description;
            described.extend(description.map(|text| (tool.spec().name.clone(), text)));
        }
        let mut declared = self.active.clone();
        declared.retain(|tool| !hidden.contains(&tool.spec().name));
        let spec = |tool: &Arc<dyn Tool>| {
            let mut spec = tool.spec().clone();
            if let Some((_, text)) = described.iter().find(|(name, _)| *name == spec.name) {
                spec.description.clone_from(text);
            }
            spec
        };
        self.specs = declared.iter().map(spec).collect();
        self.system_prompt = prompt.compose(&declared);
        self.system_message = self.records_prompt.then(|| {
            let sections = prompt.sections(&declared).into_iter();
            let sections = sections.map(|(name, text)| (name, Value::String(text)));
            let tools = declared.iter().zip(self.specs.iter());
            let tools = tools.map(|(tool, spec)| DeclaredTool {
                constrained_sampling: tool.constrained_sampling(),
                ..DeclaredTool::of(spec)
            });
            SystemMessage::of(sections.collect(), tools.collect(), 0)
        });
    }

    /// Returns the prompt and the active tools as a message, if the session records them.
    pub fn system_message(&self) -> Option<&SystemMessage> {
        self.system_message.as_ref()
    }

    /// Returns the tools that other tools may call.
    pub fn callable_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.all.iter().filter(|tool| self.is_callable(tool));
        tools.cloned().collect()
    }

    /// Returns the tool of this name, if other tools may call it.
    pub fn callable(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.find(name).filter(|tool| self.is_callable(tool))
    }

    fn is_callable(&self, tool: &Arc<dyn Tool>) -> bool {
        let is_active = self.active.iter().any(|active| Arc::ptr_eq(active, tool));
        tool.exposure().is_callable(is_active)
    }

    /// Replaces the tools that a supply has added before. The supply applies the filter itself. `wanted` names tools of
    /// the session to activate; each is activated once, so that a client can turn it off again.
    pub fn supply(&mut self, tools: Vec<Arc<dyn Tool>>, wanted: &[&str]) {
        let gone = std::mem::replace(&mut self.supplied, tools);
        let was_active = self.active_names();
        let stays = |tool: &Arc<dyn Tool>| !gone.iter().any(|gone| Arc::ptr_eq(gone, tool));
        self.all.retain(stays);
        self.active.retain(stays);
        let known: Vec<String> = gone.iter().map(|tool| tool.spec().name.clone()).collect();
        for tool in &self.supplied {
            let name = &tool.spec().name;
            put(&mut self.all, tool);
            let is_new = !known.contains(name);
            if was_active.contains(name) || (is_new && tool.exposure().is_declared()) {
                put(&mut self.active, tool);
            }
        }
        for name in wanted {
            if !self.wanted.iter().any(|known| known == name) {
                self.wanted.push((*name).to_owned());
                self.activate_also(name);
            }
        }
    }

    fn activate_also(&mut self, name: &str) {
        if let Some(tool) = self.find(name)
            && tool.exposure() != Exposure::Hidden
        {
            put(&mut self.active, &tool);
        }
    }

    /// Restores the first tools and adds `extra`.
    pub fn reset(&mut self, extra: Vec<Arc<dyn Tool>>) {
        let permitted = |tool: &&Arc<dyn Tool>| self.filter.permits(&tool.spec().name);
        self.all = self.own.iter().filter(permitted).cloned().collect();
        let active = self.own_active.clone();
        self.activate(&active);
        self.add(extra);
        for tool in std::mem::take(&mut self.supplied) {
            put(&mut self.all, &tool);
            if tool.exposure().is_declared() {
                put(&mut self.active, &tool);
            }
            self.supplied.push(tool);
        }
        for name in self.wanted.clone() {
            self.activate_also(&name);
        }
    }

    /// Adds tools, which become active if they start so or their namesake was active. A tool replaces one with the same
    /// name; tools that the filter excludes are ignored.
    pub fn add(&mut self, tools: Vec<Arc<dyn Tool>>) {
        for tool in tools {
            if !self.filter.permits(&tool.spec().name) {
                continue;
            }
            put(&mut self.all, &tool);
            if tool.starts_active() || self.active(&tool.spec().name).is_some() {
                put(&mut self.active, &tool);
            }
        }
    }

    /// Makes exactly these tools active; unknown and hidden ones are ignored.
    pub fn activate(&mut self, names: &[String]) {
        let tools = names.iter().filter_map(|name| self.find(name));
        self.active = tools
            .filter(|tool| tool.exposure() != Exposure::Hidden)
            .collect();
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let found = self.all.iter().find(|tool| tool.spec().name == name);
        found.map(Arc::clone)
    }

    /// Returns the active tool of this name.
    pub fn active(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let found = self.active.iter().find(|tool| tool.spec().name == name);
        found.map(Arc::clone)
    }

    pub fn filter(&self) -> ToolFilter {
        self.filter.clone()
    }

    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.all.clone()
    }

    pub fn active_names(&self) -> Vec<String> {
        let names = self.active.iter().map(|tool| tool.spec().name.clone());
        names.collect()
    }

    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    pub fn system_prompt(&self) -> Arc<str> {
        Arc::clone(&self.system_prompt)
    }
}

fn put(tools: &mut Vec<Arc<dyn Tool>>, tool: &Arc<dyn Tool>) {
    let same = |known: &&mut Arc<dyn Tool>| known.spec().name == tool.spec().name;
    match tools.iter_mut().find(same) {
        Some(known) => *known = Arc::clone(tool),
        None => tools.push(Arc::clone(tool)),
    }
}
