//! The thinking settings of Google's models: a level or a budget, by family.

use pinion_message::{Model, ThinkingLevel};
use serde::Serialize;

use super::request::Host;
use crate::request::Request;
use crate::thinking::{Mapped, mapped};

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_thoughts: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
}

pub(super) fn thinking_config(request: &Request, host: Host) -> ThinkingConfig {
    let model = &*request.model;
    let family = Family::of(&model.id, host);
    let asked = request
        .options
        .reasoning
        .filter(|&level| level != ThinkingLevel::Off);
    let Some(asked) = asked else {
        return thinking_off(model, family);
    };
    let level = match model.clamp_thinking(asked) {
        ThinkingLevel::Off => ThinkingLevel::High,
        level => level,
    };
    let config = ThinkingConfig {
        include_thoughts: Some(true),
        ..ThinkingConfig::default()
    };
    match level_word(model, family, level) {
        Some(word) => ThinkingConfig {
            thinking_level: Some(word),
            ..config
        },
        None => {
            let own = request.options.thinking_budgets.get(&level);
            let budget = own.map_or_else(|| family.budget(level), |&tokens| tokens as i64);
            ThinkingConfig {
                thinking_budget: Some(budget),
                ..config
            }
        }
    }
}

/// Newer models always think; they get the lowest level they have.
fn thinking_off(model: &Model, family: Family) -> ThinkingConfig {
    let least = match mapped(model, ThinkingLevel::Off) {
        Mapped::Unsupported => model.thinking_levels().first().copied(),
        _ => Some(ThinkingLevel::Minimal).filter(|_| family.speaks_levels()),
    };
    let word = least.and_then(|level| level_word(model, family, level));
    match word {
        Some(word) => ThinkingConfig {
            thinking_level: Some(word),
            ..ThinkingConfig::default()
        },
        None => ThinkingConfig {
            thinking_budget: Some(0),
            ..ThinkingConfig::default()
        },
    }
}

/// The level's name, for models that take levels rather than budgets.
fn level_word(model: &Model, family: Family, level: ThinkingLevel) -> Option<String> {
    match mapped(model, level) {
        Mapped::Word(word) => Some(word.to_ascii_uppercase()),
        _ => family.level(level).map(str::to_owned),
    }
}

/// Models with the same thinking settings, recognised by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Gemini3Pro,
    Gemini3Flash,
    Gemma4,
    Gemini25Pro,
    Gemini25FlashLite,
    Gemini25Flash,
    Other,
}

impl Family {
    fn of(id: &str, host: Host) -> Self {
        let id = id.to_ascii_lowercase();
        let generative = host == Host::GenerativeLanguage;
        if is_gemini_3(&id, "-pro") {
            Self::Gemini3Pro
        } else if is_gemini_3(&id, "-flash") {
            Self::Gemini3Flash
        } else if generative && (id.contains("gemma-4") || id.contains("gemma4")) {
            Self::Gemma4
        } else if id.contains("2.5-pro") {
            Self::Gemini25Pro
        } else if generative && id.contains("2.5-flash-lite") {
            Self::Gemini25FlashLite
        } else if id.contains("2.5-flash") {
            Self::Gemini25Flash
        } else {
            Self::Other
        }
    }

    fn speaks_levels(self) -> bool {
        matches!(self, Self::Gemini3Pro | Self::Gemini3Flash | Self::Gemma4)
    }

    fn level(self, level: ThinkingLevel) -> Option<&'static str> {
        use ThinkingLevel::{Low, Medium, Minimal};
        match (self, level) {
            (Self::Gemini3Pro, Minimal | Low) => Some("LOW"),
            (Self::Gemini3Flash, Minimal) | (Self::Gemma4, Minimal | Low) => Some("MINIMAL"),
            (Self::Gemini3Flash, Low) => Some("LOW"),
            (Self::Gemini3Flash, Medium) => Some("MEDIUM"),
            _ if self.speaks_levels() => Some("HIGH"),
            _ => None,
        }
    }

    fn budget(self, level: ThinkingLevel) -> i64 {
        let [minimal, high] = match self {
            Self::Gemini25Pro => [128, 32_768],
            Self::Gemini25FlashLite => [512, 24_576],
            Self::Gemini25Flash => [128, 24_576],
            // The model decides.
            _ => return -1,
        };
        match level {
            ThinkingLevel::Off => 0,
            ThinkingLevel::Minimal => minimal,
            ThinkingLevel::Low => 2048,
            ThinkingLevel::Medium => 8192,
            _ => high,
        }
    }
}

/// `gemini-3-pro`, `gemini-3.1-flash` and the like.
fn is_gemini_3(id: &str, kind: &str) -> bool {
    let Some((_, rest)) = id.split_once("gemini-3") else {
        return false;
    };
    let rest = match rest.strip_prefix('.') {
        Some(minor) => minor.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => rest,
    };
    rest.starts_with(kind)
}
