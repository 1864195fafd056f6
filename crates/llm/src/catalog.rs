//! The built-in models: static tables made by `build.rs`, and models made from their rows.
//!
//! Nothing here allocates until a row is requested. A search by id or name only reads the rows;
//! only a row that was chosen becomes a [`Model`].

use std::collections::BTreeMap;

use pinion_message::{CostTier, Model, ModelCost};
use serde::de::DeserializeOwned;

/// A piece of `TEXTS`: offset and length in bytes.
#[derive(Clone, Copy)]
struct Span(u32, u16);

/// A price tier: tokens above, then input, output, cache read, cache write.
#[derive(Clone, Copy)]
struct Tier(u64, f64, f64, f64, f64);

/// One model: id, name, api, base URL, reasoning, images, thinking levels, rates, first and end
/// of its tiers, context window, output cap, headers, compat.
#[derive(Clone, Copy)]
struct Row(
    Span,
    Span,
    Span,
    Span,
    bool,
    bool,
    Span,
    [f64; 4],
    u16,
    u16,
    u32,
    u32,
    Span,
    Span,
);

/// One provider: name, first and end of its rows.
struct ProviderRows(Span, u16, u16);

include!(concat!(env!("OUT_DIR"), "/catalog.rs"));

impl Span {
    fn text(self) -> &'static str {
        let start = self.0 as usize;
        TEXTS
            .get(start..start + usize::from(self.1))
            .unwrap_or_default()
    }

    /// The JSON text as a value; `None` when it is empty.
    fn parse<V: DeserializeOwned>(self) -> Option<V> {
        match self.text() {
            "" => None,
            text => serde_json::from_str(text).ok(),
        }
    }
}

/// A row of the built-in models, not yet a [`Model`].
#[derive(Clone, Copy)]
pub(crate) struct CatalogModel {
    provider: &'static ProviderRows,
    row: &'static Row,
}

impl CatalogModel {
    pub(crate) fn provider(self) -> &'static str {
        self.provider.0.text()
    }

    pub(crate) fn id(self) -> &'static str {
        self.row.0.text()
    }

    pub(crate) fn name(self) -> &'static str {
        self.row.1.text()
    }

    pub(crate) fn api(self) -> &'static str {
        self.row.2.text()
    }

    pub(crate) fn base_url(self) -> &'static str {
        self.row.3.text()
    }

    pub(crate) fn to_model(self) -> Model {
        let &Row(
            _,
            _,
            _,
            _,
            reasoning,
            images,
            levels,
            rates,
            tier,
            tiers_end,
            window,
            cap,
            headers,
            compat,
        ) = self.row;
        let [input, output, cache_read, cache_write] = rates;
        let tiers = TIERS
            .get(usize::from(tier)..usize::from(tiers_end))
            .unwrap_or_default();
        let tiers =
            tiers.iter().map(
                |&Tier(above, input, output, cache_read, cache_write)| CostTier {
                    input_tokens_above: above,
                    input,
                    output,
                    cache_read,
                    cache_write,
                },
            );
        let kinds: &[&str] = if images {
            &["text", "image"]
        } else {
            &["text"]
        };
        Model {
            id: self.id().to_owned(),
            name: self.name().to_owned(),
            api: self.api().to_owned(),
            provider: self.provider().to_owned(),
            base_url: self.base_url().to_owned(),
            reasoning,
            thinking_level_map: levels.parse(),
            input: kinds.iter().map(|&kind| kind.to_owned()).collect(),
            cost: ModelCost {
                input,
                output,
                cache_read,
                cache_write,
                tiers: tiers.collect(),
            },
            context_window: window.into(),
            max_tokens: cap.into(),
            headers: headers.parse::<BTreeMap<String, String>>(),
            compat: compat.parse(),
        }
    }
}

/// The built-in providers, in catalogue order.
pub(crate) fn providers() -> impl Iterator<Item = &'static str> {
    PROVIDERS.iter().map(|provider| provider.0.text())
}

/// Every built-in model, in catalogue order.
#[cfg(test)]
pub(crate) fn models() -> impl Iterator<Item = CatalogModel> {
    PROVIDERS.iter().flat_map(rows_of)
}

/// The built-in models of one provider, in catalogue order; none for an unknown name.
pub(crate) fn models_of(provider: &str) -> impl Iterator<Item = CatalogModel> + use<> {
    PROVIDERS
        .iter()
        .find(|known| known.0.text() == provider)
        .into_iter()
        .flat_map(rows_of)
}

fn rows_of(provider: &'static ProviderRows) -> impl Iterator<Item = CatalogModel> {
    let rows = ROWS
        .get(usize::from(provider.1)..usize::from(provider.2))
        .unwrap_or_default();
    rows.iter().map(move |row| CatalogModel { provider, row })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn every_row_equals_its_source_line() {
        let source = include_str!("../models.jsonl");
        assert_eq!(models().count(), source.lines().count());
        for (row, line) in models().zip(source.lines()) {
            let expected: Model = serde_json::from_str(line).unwrap();
            assert_eq!(row.to_model(), expected);
            // Round trip through JSON too: no member of the line was lost on the way.
            let (mut ours, mut theirs) = (
                serde_json::to_value(row.to_model()).unwrap(),
                serde_json::from_str::<Value>(line).unwrap(),
            );
            for value in [&mut ours, &mut theirs] {
                value.sort_all_objects();
                floats(value);
            }
            assert_eq!(ours, theirs);
        }
    }

    /// `3` and `3.0` are the same price.
    fn floats(value: &mut Value) {
        match value {
            Value::Number(number) => *value = number.as_f64().into(),
            Value::Array(items) => items.iter_mut().for_each(floats),
            Value::Object(members) => members.values_mut().for_each(floats),
            _ => {}
        }
    }

    #[test]
    fn providers_and_ids_are_unique() {
        let mut keys: Vec<_> = models()
            .map(|model| (model.provider(), model.id()))
            .collect();
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count);
        assert!(models_of("anthropic").any(|model| model.id() == "claude-opus-4-7"));
        assert_eq!(models_of("nobody").count(), 0);
    }
}
