//! Reads the tiers of a plan and the models of each child.

use pinion_yaml::{Entry, Node};

use super::Isolation;
use super::read::PlanReader;
use super::settings::{Settings, models};
use crate::AgentKind;

impl PlanReader<'_> {
    pub fn read_tiers(&mut self, node: &Node) {
        for Entry { key, value, .. } in self.fields.free_members(node, "tiers") {
            let models = models(value, &mut self.fields);
            self.tiers.insert(key.clone(), models);
        }
    }

    /// Returns the models of a child, in order.
    pub fn models(&mut self, settings: &Settings, line: u64) -> Vec<String> {
        let agent = settings.agent.unwrap_or_default();
        let is_pinion = agent == AgentKind::Pinion;
        if agent == AgentKind::Jsonl
            && settings
                .command
                .as_ref()
                .is_none_or(|(words, _)| words.is_empty())
        {
            self.fields
                .problem(line, "agent jsonl needs a command; add `command:`");
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && !is_pinion
        {
            self.fields.problem(
                at,
                "only agent pinion can run as a task; use `isolation: process`",
            );
        }
        if let Some((Isolation::Task, at)) = settings.isolation
            && is_pinion
            && (settings.command.is_some()
                || settings.env.as_ref().is_some_and(|env| !env.is_empty()))
        {
            self.fields
                .problem(
                    at,
                    "a task is not a process, so it cannot have `command` or `env`; remove them or use `isolation: process`",
                );
        }
        let named = match (&settings.models, &settings.tier) {
            (Some(models), _) => models.clone(),
            (None, Some((tier, at))) => {
                let tier = tier.clone();
                let Some(models) = self.tiers.get(&tier).cloned() else {
                    let known: Vec<&str> = self.tiers.keys().map(String::as_str).collect();
                    let known = if known.is_empty() {
                        "the plan has no tiers".to_owned()
                    } else {
                        format!("use one of {}", known.join(", "))
                    };
                    self.fields
                        .problem(*at, format!("there is no tier \"{tier}\"; {known}"));
                    return Vec::new();
                };
                if is_pinion {
                    self.used_by_pinion.insert(tier);
                } else {
                    self.used_by_others.insert(tier);
                }
                models
            }
            (None, None) => Vec::new(),
        };
        if is_pinion {
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

    /// Checks the tiers that no child uses: a mistake in them should not appear only when a child does.
    pub fn check_unused_tiers(&mut self) {
        let tiers = std::mem::take(&mut self.tiers);
        for (name, models) in &tiers {
            if !self.used_by_pinion.contains(name) && !self.used_by_others.contains(name) {
                self.check(models);
            }
        }
    }
}
