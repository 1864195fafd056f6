//! The published schemas of what programs print, and lines that do not keep to them.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

/// What a program promises about its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// `docs/schemas/pi-classic.schema.json`.
    PiClassic,
}

const PI_CLASSIC: &str = include_str!("../../../docs/schemas/pi-classic.schema.json");

/// Complaints about one program; more would say the same.
const ENOUGH: usize = 8;

impl Schema {
    fn validator(self) -> &'static Validator {
        // Made once: that takes longer than checking thousands of lines.
        static PI: OnceLock<Validator> = OnceLock::new();
        let (cell, text) = match self {
            Self::PiClassic => (&PI, PI_CLASSIC),
        };
        cell.get_or_init(|| {
            let schema: Value = serde_json::from_str(text).expect("a schema is JSON");
            jsonschema::validator_for(&schema).unwrap_or_else(|error| panic!("{self:?}: {error}"))
        })
    }

    /// What is wrong with a line.
    pub fn complaint(self, line: &Value) -> Option<String> {
        let validator = self.validator();
        if validator.is_valid(line) {
            return None;
        }
        // The deepest place is the most telling one.
        let errors: Vec<_> = validator.iter_errors(line).collect();
        let depth = |path: &str| path.matches('/').count();
        let deepest = errors
            .iter()
            .max_by_key(|e| depth(e.instance_path().as_str()))?;
        let text: String = line.to_string().chars().take(300).collect();
        let place = deepest.instance_path();
        Some(format!(
            "not as in the schema, at \"{place}\": {deepest}\n      {text}"
        ))
    }

    /// What is wrong with these lines; what a runner noted in between is left out.
    pub fn complaints<'a>(self, lines: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
        lines
            .into_iter()
            .filter(|line| line.get("__harness").is_none())
            .filter_map(|line| self.complaint(line))
            .take(ENOUGH)
            .collect()
    }
}
