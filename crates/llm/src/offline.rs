//! `offline/demo`: the built-in model. No network, no key, always the same answer.
//!
//! It recognises a few plain requests and plays scripts, through the same events as any provider.
//! Its answers always state that it is not a real model. `docs/offline.md` is its manual.

mod answer;
mod pieces;
mod playback;
mod request;
mod script;

use pinion_message::{Model, ModelCost};

use crate::{EventStream, Provider, Request};
use playback::Playback;

pub(crate) const PROVIDER: &str = "offline";
pub(crate) const API: &str = "offline";
pub(crate) const DEMO: &str = "demo";
pub(crate) const DEMO_NAME: &str = "Offline demo (built in)";
/// Prefix of ids that play a script from a file.
pub(crate) const SCENARIO_PREFIX: &str = "scenario:";
/// Names a script file for `offline/demo` to play.
pub(crate) const SCENARIO_VARIABLE: &str = "PINION_OFFLINE_SCENARIO";

pub(crate) fn demo_model() -> Model {
    Model {
        id: DEMO.to_owned(),
        name: DEMO_NAME.to_owned(),
        api: API.to_owned(),
        provider: PROVIDER.to_owned(),
        base_url: String::new(),
        reasoning: true,
        thinking_level_map: None,
        input: vec!["text".to_owned(), "image".to_owned()],
        cost: ModelCost::default(),
        context_window: 128_000,
        max_tokens: 16_384,
        headers: None,
        compat: None,
    }
}

/// The model that plays the script in a file, if `id` names one.
pub(crate) fn scenario_model(id: &str) -> Option<Model> {
    let file = id
        .strip_prefix(SCENARIO_PREFIX)
        .filter(|file| !file.is_empty())?;
    let name = format!("Offline scenario {file}");
    Some(Model {
        id: id.to_owned(),
        name,
        ..demo_model()
    })
}

/// Answers for `offline/demo` and `offline/scenario:<file>`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OfflineProvider;

impl Provider for OfflineProvider {
    fn stream(&self, request: Request) -> EventStream {
        let turn = answer::turn_for(&request);
        Playback::new(&request, turn).into_stream()
    }
}
