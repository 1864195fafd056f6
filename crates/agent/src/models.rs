//! The selection of the model and its thinking level.

use std::sync::Arc;

use pinion_message::{Model, ThinkingLevel};
use pinion_session::NewEntry;
use serde_json::json;

use crate::core::Core;
use crate::hooks::Moment;
use crate::{Answer, Cycled, EngineError, Event};

impl Core {
    /// Checks that a model is selected and has credentials.
    pub fn ready_to_ask(&self) -> Result<(), EngineError> {
        let model = self.state().model.clone().ok_or(EngineError::NoModel)?;
        self.models
            .check_credentials(&model)
            .map_err(EngineError::Credentials)
    }

    /// Makes `provider`/`id` the model of the next run.
    pub fn set_model(&self, provider: &str, id: &str) -> Result<Answer, EngineError> {
        let model = self
            .models
            .find(provider, id)
            .ok_or_else(|| EngineError::ModelNotFound {
                provider: provider.to_owned(),
                id: id.to_owned(),
            })?;
        self.use_model(&model, None)?;
        Ok(Answer::Model(model))
    }

    /// Makes the next of the scoped or available models the model of the next run.
    pub fn cycle_model(&self) -> Result<Answer, EngineError> {
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
        self.use_model(model, *level)?;
        let thinking_level = self.state().thinking_level;
        Ok(Answer::Cycled(Some(Cycled {
            model: Arc::clone(model),
            thinking_level,
            is_scoped,
        })))
    }

    fn use_model(
        &self,
        model: &Arc<Model>,
        level: Option<ThinkingLevel>,
    ) -> Result<(), EngineError> {
        if self.models.check_credentials(model).is_err() {
            let (provider, id) = (model.provider.clone(), model.id.clone());
            return Err(EngineError::NoKeyForModel { provider, id });
        }
        let before = self.state().model.replace(Arc::clone(model));
        self.log(NewEntry::ModelChange {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
        });
        self.preferences.remember(vec![
            ("defaultProvider", Some(json!(model.provider))),
            ("defaultModel", Some(json!(model.id))),
        ]);
        let could_think = before.is_none_or(|before| before.reasoning);
        let level = level.unwrap_or_else(|| {
            if could_think {
                self.state().thinking_level
            } else {
                self.settings.default_thinking_level
            }
        });
        self.set_thinking_level(level);
        Ok(())
    }

    /// Sets the thinking level, or the nearest one that the model supports.
    pub fn set_thinking_level(&self, level: ThinkingLevel) {
        let mut state = self.state();
        let (clamped, can_think) = match &state.model {
            Some(model) => (model.clamp_thinking(level), model.reasoning),
            None => (ThinkingLevel::Off, false),
        };
        if state.thinking_level == clamped {
            return;
        }
        let previous = std::mem::replace(&mut state.thinking_level, clamped);
        drop(state);
        self.log(NewEntry::ThinkingLevelChange(clamped));
        if can_think {
            let change = ("defaultThinkingLevel", Some(json!(clamped)));
            self.preferences.remember(vec![change]);
        }
        self.emit(Event::ThinkingLevelChanged(clamped));
        if let Some(hooks) = self.hook(Moment::LevelSelected) {
            hooks.level_selected(clamped, previous);
        }
    }

    /// Sets the next thinking level that the model supports. `None` if it cannot think.
    pub fn cycle_thinking_level(&self) -> Option<ThinkingLevel> {
        let (levels, current) = {
            let state = self.state();
            let model = state.model.as_ref().filter(|model| model.reasoning)?;
            (model.thinking_levels(), state.thinking_level)
        };
        let at = levels.iter().position(|&level| level == current);
        let next = levels[at.map_or(0, |at| (at + 1) % levels.len())];
        self.set_thinking_level(next);
        Some(next)
    }
}

pub(crate) fn is_same_model(left: &Model, right: &Model) -> bool {
    left.provider == right.provider && left.id == right.id
}
