//! The models of a plan: tiers, and which of them a child may run on.

use pinion_yaml::{Entry, Node};

use super::Isolation;
use super::read::Reader;
use super::settings::{Settings, models};
use crate::AgentKind;

impl Reader<'_> {
    pub fn read_tiers(&mut self, node: &Node) {
        for Entry { key, value, .. } in self.fields.free_members(node, "tiers") {
            let models = models(value, &mut self.fields);
            self.tiers.insert(key.clone(), models);
        }
    }

    /// The models of a child, in order.
    pub fn models(&mut self, settings: &Settings, line: u64) -> Vec<String> {
        let agent = settings.agent.unwrap_or_default();
        let ours = agent == AgentKind::Pinion;
        if agent == AgentKind::Jsonl
            && settings
                .command
                .as_ref()
                .is_none_or(|(words, _)| words.is_empty())
        {
            self.fields.problem(line, "agent jsonl needs a command");
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && !ours
        {
            self.fields
                .problem(at, "only agent pinion can run as a task");
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && ours
            && (settings.command.is_some()
                || settings.env.as_ref().is_some_and(|env| !env.is_empty()))
        {
            self.fields
                .problem(at, "a task is no process: command and env are not for it");
        }
        let named = match (&settings.models, &settings.tier) {
            (Some(models), _) => models.clone(),
            (None, Some((tier, at))) => {
                let tier = tier.clone();
                let Some(models) = self.tiers.get(&tier).cloned() else {
                    let known: Vec<&str> = self.tiers.keys().map(String::as_str).collect();
                    let known = match known.is_empty() {
                        true => "the plan has none".to_owned(),
                        false => format!("known are {}", known.join(", ")),
                    };
                    self.fields
                        .problem(*at, format!("there is no tier \"{tier}\"; {known}"));
                    return Vec::new();
                };
                match ours {
                    true => self.used_by_us.insert(tier),
                    false => self.used_by_others.insert(tier),
                };
                models
            }
            (None, None) => Vec::new(),
        };
        if ours {
            self.check(&named);
        }
        named.into_iter().map(|(model, _)| model).collect()
    }

    fn check(&mut self, models: &[(String, u64)]) {
        for (model, line) in models {
            if let Err(message) = (self.check_model)(model) {
                self.fields.problem(*line, message);
            }
        }
    }

    /// A tier that nobody uses may be used tomorrow.
    pub fn check_unused_tiers(&mut self) {
        let tiers = std::mem::take(&mut self.tiers);
        for (name, models) in &tiers {
            if !self.used_by_us.contains(name) && !self.used_by_others.contains(name) {
                self.check(models);
            }
        }
    }
}
