//! `models.json`: providers and models the user adds, and changes to the built-in ones.
//!
//! An invalid entry is ignored without affecting others; a notice reports its position and the
//! reason. Values of keys and headers are stored as they are written and resolved when a request is
//! made.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use pinion_jsonl::explain;
use pinion_message::{Model, ModelCost, Secret, ThinkingLevel};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::relaxed_json::{Problem, cleaned, members};
use crate::{Notice, catalog};

/// More than any number of models needs; a larger file is a mistake.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The file's entry for one provider.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProviderConfig {
    pub(crate) base_url: Option<String>,
    pub(crate) api_key: Option<Secret>,
    pub(crate) headers: BTreeMap<String, Secret>,
    /// Send the key as `Authorization: Bearer …` as well.
    pub(crate) auth_header: bool,
    pub(crate) compat: Option<Map<String, Value>>,
    pub(crate) overrides: BTreeMap<String, ModelOverride>,
    pub(crate) models: Vec<CustomModel>,
    /// The models of the entry replace all built-in models of the provider.
    pub(crate) replaces_built_in: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct CustomModel {
    pub(crate) model: Arc<Model>,
    pub(crate) headers: BTreeMap<String, Secret>,
}

/// Providers in the order of the file.
pub(crate) type Providers = Vec<(String, ProviderConfig)>;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ProviderEntry<'a> {
    base_url: Option<String>,
    api_key: Option<Secret>,
    api: Option<String>,
    headers: Option<BTreeMap<String, Secret>>,
    #[serde(default)]
    auth_header: bool,
    compat: Option<Map<String, Value>>,
    #[serde(borrow, default)]
    models: Vec<&'a RawValue>,
    model_overrides: Option<BTreeMap<String, ModelOverride>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelEntry {
    id: String,
    name: Option<String>,
    api: Option<String>,
    base_url: Option<String>,
    #[serde(default)]
    reasoning: bool,
    thinking_level_map: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    input: Option<Vec<String>>,
    #[serde(default)]
    cost: ModelCost,
    context_window: Option<u64>,
    max_tokens: Option<u64>,
    headers: Option<BTreeMap<String, Secret>>,
    compat: Option<Map<String, Value>>,
}

/// Changes to a built-in model. Absent members change nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ModelOverride {
    name: Option<String>,
    reasoning: Option<bool>,
    thinking_level_map: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    input: Option<Vec<String>>,
    cost: Option<CostOverride>,
    context_window: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Secret>,
    compat: Option<Map<String, Value>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CostOverride {
    input: Option<f64>,
    output: Option<f64>,
    cache_read: Option<f64>,
    cache_write: Option<f64>,
}

/// Reads the file. An absent file is an empty one.
pub(crate) fn read(path: &Path) -> (Providers, Vec<Notice>) {
    match pinion_files::read_text(path, MAX_FILE_BYTES) {
        Ok(text) => parse(path, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Default::default(),
        Err(error) => (
            Vec::new(),
            vec![Notice::new(format!(
                "{}: cannot be read: {error}",
                path.display()
            ))],
        ),
    }
}

fn parse(path: &Path, text: &str) -> (Providers, Vec<Notice>) {
    let text = cleaned(text);
    let (members, problem) = members(&text, Some("providers"));
    let mut notices = Vec::new();
    if let Some(problem) = problem {
        let rest = match members.len() {
            0 => "the file is ignored",
            _ => "the providers from here on are ignored",
        };
        notices.push(Notice::in_file(path, &problem, rest));
    }
    let mut providers = Providers::new();
    for (name, raw) in members {
        match provider(&text, &name, raw) {
            Ok(config) => {
                providers.retain(|(earlier, _)| *earlier != name);
                providers.push((name, config));
            }
            Err(problem) => {
                let rest = format!("provider \"{name}\" is ignored");
                notices.push(Notice::in_file(path, &problem, &rest));
            }
        }
    }
    (providers, notices)
}

fn provider(text: &str, name: &str, raw: &RawValue) -> Result<ProviderConfig, Problem> {
    let whole = raw.get();
    let entry: ProviderEntry<'_> =
        serde_json::from_str(whole).map_err(|error| Problem::from_error(text, whole, &error))?;
    let wrong = |what: &str| Err(Problem::with_part(text, whole, what));
    if name.is_empty() {
        return wrong("a provider needs a name");
    }
    let built_in = catalog::models_of(name).next();
    if entry.models.is_empty() {
        let says_nothing = entry.base_url.is_none()
            && entry.headers.is_none()
            && entry.compat.is_none()
            && entry
                .model_overrides
                .as_ref()
                .is_none_or(BTreeMap::is_empty)
            && !(built_in.is_some() && entry.api_key.is_some());
        if says_nothing {
            return wrong(
                "needs \"models\", or at least one of \"baseUrl\", \"headers\", \"compat\" and \"modelOverrides\"",
            );
        }
    } else if built_in.is_none() && entry.api_key.is_none() {
        return wrong(
            "\"apiKey\" is required for a provider with models (any text will do for a local server)",
        );
    }
    for (id, change) in entry.model_overrides.iter().flatten() {
        if change.context_window == Some(0) || change.max_tokens == Some(0) {
            return wrong(&format!(
                "override of \"{id}\": \"contextWindow\" and \"maxTokens\" must be greater than zero"
            ));
        }
    }

    let mut models: Vec<CustomModel> = Vec::with_capacity(entry.models.len());
    for raw in &entry.models {
        let custom = model(text, name, &entry, built_in, raw)?;
        models.retain(|earlier| earlier.model.id != custom.model.id);
        models.push(custom);
    }
    Ok(ProviderConfig {
        base_url: entry.base_url,
        api_key: entry.api_key,
        headers: entry.headers.unwrap_or_default(),
        auth_header: entry.auth_header,
        compat: entry.compat,
        overrides: entry.model_overrides.unwrap_or_default(),
        models,
        replaces_built_in: false,
    })
}

/// Parses a provider that a program registers at run time. If it has models, they replace all
/// models of the provider; without models it changes `before`. The error is for people.
pub(crate) fn registered(
    name: &str,
    config: &Value,
    before: Option<&ProviderConfig>,
) -> Result<ProviderConfig, String> {
    let wrong = |what: &str| Err(format!("Provider {name}: {what}"));
    let has = |member: &str| config.get(member).is_some_and(|value| !value.is_null());
    let models = config.get("models").and_then(Value::as_array);
    let models = models.map_or(&[][..], Vec::as_slice);
    if models.is_empty() {
        let mut changed = before.cloned().unwrap_or_default();
        let text = config.to_string();
        let entry: ProviderEntry<'_> = match serde_json::from_str(&text) {
            Ok(entry) => entry,
            Err(error) => return wrong(&explain(&error)),
        };
        for custom in &mut changed.models {
            let model = Arc::make_mut(&mut custom.model);
            if let Some(base_url) = &entry.base_url {
                model.base_url.clone_from(base_url);
            }
        }
        changed.base_url = entry.base_url.or(changed.base_url);
        changed.api_key = entry.api_key.or(changed.api_key);
        changed.headers.extend(entry.headers.unwrap_or_default());
        changed.auth_header |= entry.auth_header;
        return Ok(changed);
    }
    if !has("baseUrl") {
        return wrong("\"baseUrl\" is required when defining models.");
    }
    if !has("apiKey") && !has("oauth") {
        return wrong("\"apiKey\" or \"oauth\" is required when defining models.");
    }
    for model in models {
        let id = model.get("id").and_then(Value::as_str).unwrap_or_default();
        let own = model.get("api").is_some_and(|api| !api.is_null());
        if !own && !has("api") {
            return wrong(&format!(
                "no \"api\" specified for model {id}. Set it on the provider or on the model."
            ));
        }
    }
    let mut described = config.clone();
    let keyless = !has("apiKey");
    if let (true, Some(members)) = (keyless, described.as_object_mut()) {
        members.insert("apiKey".to_owned(), "-".into());
    }
    let text = described.to_string();
    let parsed = serde_json::from_str::<&RawValue>(&text)
        .map_err(|error| explain(&error))
        .and_then(|raw| provider(&text, name, raw).map_err(|problem| problem.what));
    let mut parsed = parsed.or_else(|error| wrong(&error))?;
    parsed.replaces_built_in = true;
    if keyless {
        parsed.api_key = None;
    }
    Ok(parsed)
}

fn model(
    text: &str,
    provider: &str,
    defaults: &ProviderEntry<'_>,
    built_in: Option<catalog::CatalogModel>,
    raw: &RawValue,
) -> Result<CustomModel, Problem> {
    let whole = raw.get();
    let entry: ModelEntry =
        serde_json::from_str(whole).map_err(|error| Problem::from_error(text, whole, &error))?;
    let wrong = |what: &str| Problem::with_part(text, whole, what);
    if entry.id.is_empty() {
        return Err(wrong("\"id\" must not be empty"));
    }
    let api = entry.api.or_else(|| defaults.api.clone());
    let api = api.or_else(|| built_in.map(|first| first.api().to_owned()));
    let base_url = entry.base_url.or_else(|| defaults.base_url.clone());
    let base_url = base_url.or_else(|| built_in.map(|first| first.base_url().to_owned()));
    let (context_window, max_tokens) = (
        entry.context_window.unwrap_or(128_000),
        entry.max_tokens.unwrap_or(16_384),
    );
    if context_window == 0 || max_tokens == 0 {
        return Err(wrong(
            "\"contextWindow\" and \"maxTokens\" must be greater than zero",
        ));
    }
    let mut compat = defaults.compat.clone();
    merge_compat(&mut compat, entry.compat.as_ref());
    let model = Model {
        name: entry.name.unwrap_or_else(|| entry.id.clone()),
        id: entry.id,
        api: api.ok_or_else(|| wrong("\"api\" is required, here or on the provider"))?,
        provider: provider.to_owned(),
        base_url: base_url
            .ok_or_else(|| wrong("\"baseUrl\" is required on a provider with models"))?,
        reasoning: entry.reasoning,
        thinking_level_map: entry.thinking_level_map,
        input: entry.input.unwrap_or_else(|| vec!["text".to_owned()]),
        cost: entry.cost,
        context_window,
        max_tokens,
        headers: None,
        compat,
    };
    Ok(CustomModel {
        model: Arc::new(model),
        headers: entry.headers.unwrap_or_default(),
    })
}

impl ProviderConfig {
    /// Applies the file's changes to a built-in model of this provider.
    pub(crate) fn apply(&self, model: &mut Model) {
        if let Some(base_url) = &self.base_url {
            model.base_url.clone_from(base_url);
        }
        merge_compat(&mut model.compat, self.compat.as_ref());
        let Some(change) = self.overrides.get(&model.id) else {
            return;
        };
        if let Some(name) = &change.name {
            model.name.clone_from(name);
        }
        if let Some(levels) = &change.thinking_level_map {
            let levels = levels.iter().map(|(level, value)| (*level, value.clone()));
            model
                .thinking_level_map
                .get_or_insert_default()
                .extend(levels);
        }
        if let Some(input) = &change.input {
            model.input.clone_from(input);
        }
        if let Some(cost) = &change.cost {
            let rates = &mut model.cost;
            for (rate, changed) in [
                (&mut rates.input, cost.input),
                (&mut rates.output, cost.output),
                (&mut rates.cache_read, cost.cache_read),
                (&mut rates.cache_write, cost.cache_write),
            ] {
                *rate = changed.unwrap_or(*rate);
            }
        }
        model.reasoning = change.reasoning.unwrap_or(model.reasoning);
        model.context_window = change.context_window.unwrap_or(model.context_window);
        model.max_tokens = change.max_tokens.unwrap_or(model.max_tokens);
        merge_compat(&mut model.compat, change.compat.as_ref());
    }

    /// The name an override gives a built-in model.
    pub(crate) fn renamed(&self, id: &str) -> Option<&str> {
        self.overrides.get(id)?.name.as_deref()
    }

    /// The model of the file with this id.
    pub(crate) fn custom(&self, id: &str) -> Option<&CustomModel> {
        self.models.iter().find(|custom| custom.model.id == id)
    }
}

/// Adds `more` flag by flag; routing objects are merged one level deeper.
fn merge_compat(compat: &mut Option<Map<String, Value>>, more: Option<&Map<String, Value>>) {
    let Some(more) = more else { return };
    let compat = compat.get_or_insert_default();
    for (flag, value) in more {
        match (flag.as_str(), compat.get_mut(flag), value) {
            (
                "openRouterRouting" | "vercelGatewayRouting",
                Some(Value::Object(routing)),
                Value::Object(changes),
            ) => routing.extend(changes.clone()),
            _ => {
                compat.insert(flag.clone(), value.clone());
            }
        }
    }
}
