//! The selection of the model and its thinking level.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use pinion_message::{Model, ThinkingLevel};
use pinion_session::{EntryId, NewEntry};
use serde_json::{Value, json};

use crate::core::Core;
use crate::hooks::Moment;
use crate::{Answer, Cycled, EngineError, Event};

/// A change of the thinking level whose entry is not saved yet.
pub(crate) struct LevelChange {
    pub entry: Option<EntryId>,
    level: ThinkingLevel,
    previous: ThinkingLevel,
    can_think: bool,
}

impl Core {
    /// Checks that a model is selected and has credentials.
    pub fn ready_to_ask(&self) -> Result<(), EngineError> {
        let model = self.state().model.clone().ok_or(EngineError::NoModel)?;
        self.models
            .check_credentials(&model)
            .map_err(EngineError::Credentials)
    }

    /// Makes `provider`/`id` the model of the next run.
    pub async fn set_model(&self, provider: &str, id: &str) -> Result<Answer, EngineError> {
        let model = self
            .models
            .find(provider, id)
            .ok_or_else(|| EngineError::ModelNotFound {
                provider: provider.to_owned(),
                id: id.to_owned(),
            })?;
        self.use_model(&model, None).await?;
        Ok(Answer::Model(model))
    }

    /// Makes the next of the scoped or available models the model of the next run.
    pub async fn cycle_model(&self) -> Result<Answer, EngineError> {
        let scoped = self.models.scoped();
        let is_scoped = !scoped.is_empty();
        let candidates = if is_scoped {
            scoped
        } else {
            self.models
                .available()
                .into_iter()
                .map(|model| (model, None))
                .collect()
        };
        if candidates.len() < 2 {
            return Ok(Answer::Cycled(None));
        }
        let current = self.state().model.clone();
        let at = current.and_then(|current| {
            candidates
                .iter()
                .position(|(model, _)| is_same_model(model, &current))
        });
        let next = (at.unwrap_or(0) + 1) % candidates.len();
        let (model, level) = &candidates[next];
        self.use_model(model, *level).await?;
        let thinking_level = self.state().thinking_level;
        Ok(Answer::Cycled(Some(Cycled {
            model: Arc::clone(model),
            thinking_level,
            is_scoped,
        })))
    }

    async fn use_model(
        &self,
        model: &Arc<Model>,
        level: Option<ThinkingLevel>,
    ) -> Result<(), EngineError> {
        if self.models.check_credentials(model).is_err() {
            let (provider, id) = (model.provider.clone(), model.id.clone());
            return Err(EngineError::NoKeyForModel { provider, id });
        }
        let before = self.state().model.replace(Arc::clone(model));
        let chosen = self.push(NewEntry::ModelChange {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
        });
        let could_think = before.is_none_or(|before| before.reasoning);
        let level = level.unwrap_or_else(|| {
            if could_think {
                self.state().thinking_level
            } else {
                self.settings.default_thinking_level
            }
        });
        let change = self.change_level(level);
        let newest = change.as_ref().and_then(|change| change.entry.clone());
        self.save_for_command(newest.or(chosen)).await;
        self.remember_choice(vec![
            ("defaultProvider", Some(json!(model.provider))),
            ("defaultModel", Some(json!(model.id))),
        ]);
        self.announce_level(change);
        Ok(())
    }

    /// Sets the thinking level, or the nearest one that the model supports.
    pub async fn set_thinking_level(&self, level: ThinkingLevel) {
        let change = self.change_level(level);
        let entry = change.as_ref().and_then(|change| change.entry.clone());
        self.save_for_command(entry).await;
        self.announce_level(change);
    }

    /// Sets the thinking level in memory. Returns `None` if it does not change.
    pub fn change_level(&self, level: ThinkingLevel) -> Option<LevelChange> {
        let mut state = self.state();
        let (clamped, can_think) = match &state.model {
            Some(model) => (model.clamp_thinking(level), model.reasoning),
            None => (ThinkingLevel::Off, false),
        };
        if state.thinking_level == clamped {
            return None;
        }
        let previous = std::mem::replace(&mut state.thinking_level, clamped);
        drop(state);
        Some(LevelChange {
            entry: self.push(NewEntry::ThinkingLevelChange(clamped)),
            level: clamped,
            previous,
            can_think,
        })
    }

    /// Remembers a saved change of the thinking level and emits it.
    pub fn announce_level(&self, change: Option<LevelChange>) {
        let Some(change) = change else { return };
        let LevelChange {
            level, previous, ..
        } = change;
        if change.can_think {
            let change = ("defaultThinkingLevel", Some(json!(level)));
            self.remember_choice(vec![change]);
        }
        if self.emits_levels.load(Ordering::Relaxed) {
            self.emit(Event::ThinkingLevelChanged(level));
        }
        if let Some(hooks) = self.hook(Moment::LevelSelected) {
            hooks.level_selected(level, previous);
        }
    }

    /// Stores a choice for the next start, unless choices stay in the session.
    fn remember_choice(&self, changes: Vec<(&'static str, Option<Value>)>) {
        if !self.settings.behaviour.keep_choices_in_session {
            self.preferences.remember(changes);
        }
    }

    /// Sets the next thinking level that the model supports. `None` if it cannot think.
    pub async fn cycle_thinking_level(&self) -> Option<ThinkingLevel> {
        let (levels, current) = {
            let state = self.state();
            let model = state.model.as_ref().filter(|model| model.reasoning)?;
            (model.thinking_levels(), state.thinking_level)
        };
        let at = levels.iter().position(|&level| level == current);
        let next = levels[at.map_or(0, |at| (at + 1) % levels.len())];
        self.set_thinking_level(next).await;
        Some(next)
    }
}

pub(crate) fn is_same_model(left: &Model, right: &Model) -> bool {
    left.provider == right.provider && left.id == right.id
}
