//! Compares the published schemas with those of the types.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use std::path::Path;

use pinion_pi::{Dialect, schema_text, sessions_schema_text};

#[test]
fn the_published_schemas_are_those_of_the_types() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let dialects = Dialect::ALL.map(|dialect| (dialect.name(), schema_text(dialect)));
    for (name, text) in dialects
        .into_iter()
        .chain([("sessions", sessions_schema_text())])
    {
        let path = root.join(format!("pi-{name}.schema.json"));
        if std::env::var_os("PINION_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let published = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            published == text,
            "{} differs from the schema of the types. If the change is intended, write it again with\n  \
             PINION_WRITE_SCHEMAS=1 cargo nextest run -p pinion-pi --test schema\n\
             and add a transcript for the change in tests/transcripts.",
            path.display()
        );
    }
}
