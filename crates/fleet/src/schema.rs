//! The published schema of `report.json` and of the journal's lines, generated from their types.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::{Record, Report};

/// Returns the schema as published in `docs/schemas`: the report, and under `$defs/event` a line of `events.jsonl`.
pub fn report_schema_text() -> String {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let event = generator.subschema_for::<Record>();
    let report = generator.subschema_for::<Report>();
    let mut definitions = serde_json::Map::new();
    definitions.insert("event".into(), event.to_value());
    definitions.extend(generator.take_definitions(true));
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Report of a fleet",
        "description": "report.json of a run; $defs/event is a line of its events.jsonl and of --output jsonl.",
    });
    if let (Value::Object(document), Value::Object(report)) = (&mut document, report.to_value()) {
        document.extend(report);
        document.insert("$defs".into(), Value::Object(definitions));
    }
    let mut text = format!("{document:#}");
    text.push('\n');
    text
}
