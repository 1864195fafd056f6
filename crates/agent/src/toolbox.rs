//! The tools there are, and those the model may call.

use std::sync::Arc;

use pinion_message::ToolSpec;
use pinion_tools::Tool;

use crate::config::{SystemPrompt, ToolFilter};

/// The tools of a session and the system prompt that names them.
pub(crate) struct Toolbox {
    /// The tools a session begins with.
    own: Vec<Arc<dyn Tool>>,
    /// Which of them are on.
    own_active: Vec<String>,
    filter: ToolFilter,
    all: Vec<Arc<dyn Tool>>,
    active: Vec<Arc<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
    system_prompt: Arc<str>,
}

impl Toolbox {
    /// The tools to begin with; [`Toolbox::renew`] completes them.
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

    /// Makes what depends on the active tools anew.
    pub fn renew(&mut self, prompt: &dyn SystemPrompt) {
        self.specs = self.active.iter().map(|tool| tool.spec().clone()).collect();
        self.system_prompt = prompt.compose(&self.active);
    }

    /// Goes back to the first tools, with `extra` added.
    pub fn reset(&mut self, extra: Vec<Arc<dyn Tool>>) {
        let permitted = |tool: &&Arc<dyn Tool>| self.filter.permits(&tool.spec().name);
        self.all = self.own.iter().filter(permitted).cloned().collect();
        let active = self.own_active.clone();
        self.activate(&active);
        self.add(extra);
    }

    /// Adds tools, in the place of those with the same name, and makes them active.
    pub fn add(&mut self, tools: Vec<Arc<dyn Tool>>) {
        for tool in tools {
            if !self.filter.permits(&tool.spec().name) {
                continue;
            }
            put(&mut self.all, &tool);
            put(&mut self.active, &tool);
        }
    }

    /// Makes exactly these tools active; unknown names are left out.
    pub fn activate(&mut self, names: &[String]) {
        self.active = names.iter().filter_map(|name| self.find(name)).collect();
    }

    fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let found = self.all.iter().find(|tool| tool.spec().name == name);
        found.map(Arc::clone)
    }

    /// The active tool of this name.
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
