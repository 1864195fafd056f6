//! The published schema matches the types and is a valid schema.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;

#[test]
fn the_published_schema_matches_the_types() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/fleet-report.schema.json");
    let text = pinion_fleet::report_schema_text();
    if std::env::var_os("PINION_WRITE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        published, text,
        "write it again with PINION_WRITE_SCHEMAS=1"
    );
    let schema = serde_json::from_str(&text).unwrap();
    jsonschema::validator_for(&schema).unwrap();
}
