//! The tools of a session: all of them, and those that the model may call.

use std::sync::Arc;

use pinion_message::ToolSpec;
use pinion_tools::Tool;

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
    specs: Arc<[ToolSpec]>,
    system_prompt: Arc<str>,
}

impl Toolbox {
    /// Creates the toolbox without specs and system prompt; call [`Toolbox::renew`] next.
    pub fn new(own: Vec<Arc<dyn Tool>>, own_active: Vec<String>, filter: ToolFilter) -> Self {
        let mut toolbox = Self {
            own,
            own_active,
            filter,
            all: Vec::new(),
            active: Vec::new(),
            specs: Arc::new([]),
            system_prompt: "".into(),
        };
        toolbox.reset(Vec::new());
        toolbox
    }

    /// Makes the specs and the system prompt for the active tools.
    pub fn renew(&mut self, prompt: &dyn SystemPrompt) {
        self.specs = self.active.iter().map(|tool| tool.spec().clone()).collect();
        self.system_prompt = prompt.compose(&self.active);
    }

    /// Restores the first tools and adds `extra`.
    pub fn reset(&mut self, extra: Vec<Arc<dyn Tool>>) {
        let permitted = |tool: &&Arc<dyn Tool>| self.filter.permits(&tool.spec().name);
        self.all = self.own.iter().filter(permitted).cloned().collect();
        let active = self.own_active.clone();
        self.activate(&active);
        self.add(extra);
    }

    /// Adds active tools. A tool replaces one with the same name; tools that the filter excludes are ignored.
    pub fn add(&mut self, tools: Vec<Arc<dyn Tool>>) {
        for tool in tools {
            if !self.filter.permits(&tool.spec().name) {
                continue;
            }
            put(&mut self.all, &tool);
            put(&mut self.active, &tool);
        }
    }

    /// Makes exactly these tools active; unknown names are ignored.
    pub fn activate(&mut self, names: &[String]) {
        self.active = names.iter().filter_map(|name| self.find(name)).collect();
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
