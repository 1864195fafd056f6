//! The published schemas of the lines that programs print and clients write, and a check of lines against them.

mod kinds;

use std::sync::OnceLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Value, json};

pub use kinds::{of_input, of_output};

/// The schema of a program's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Schema {
    /// `docs/schemas/pi-early.schema.json`.
    PiEarly,
    /// `docs/schemas/pi-classic.schema.json`.
    PiClassic,
    /// `docs/schemas/pi-modern.schema.json`.
    PiModern,
    /// `docs/schemas/pi-sessions.schema.json`.
    PiSessions,
}

/// A schema, ready to use.
struct Ready {
    document: Value,
    output: Validator,
    input: Validator,
}

/// The most complaints about one program; more would repeat them.
const MAX_COMPLAINTS: usize = 8;

impl Schema {
    /// The schemas of pi's protocol, oldest first.
    pub const PI: [Self; 3] = [Self::PiEarly, Self::PiClassic, Self::PiModern];

    /// The schema of a dialect of pi's protocol.
    pub fn of_dialect(name: &str) -> Option<Self> {
        Self::PI.into_iter().find(|schema| schema.dialect() == name)
    }

    /// The name of its dialect.
    pub fn dialect(self) -> &'static str {
        match self {
            Self::PiEarly => "early",
            Self::PiClassic => "classic",
            Self::PiModern => "modern",
            Self::PiSessions => "sessions",
        }
    }

    fn ready(self) -> &'static Ready {
        // Compiled once, because that takes longer than checking thousands of lines.
        static READY: [OnceLock<Ready>; 4] = [const { OnceLock::new() }; 4];
        let text = match self {
            Self::PiEarly => include_str!("../../../docs/schemas/pi-early.schema.json"),
            Self::PiClassic => include_str!("../../../docs/schemas/pi-classic.schema.json"),
            Self::PiModern => include_str!("../../../docs/schemas/pi-modern.schema.json"),
            Self::PiSessions => include_str!("../../../docs/schemas/pi-sessions.schema.json"),
        };
        READY[self as usize].get_or_init(|| {
            let document: Value = serde_json::from_str(text).expect("a schema is JSON");
            let input = json!({"$ref": "#/$defs/input", "$defs": document["$defs"]});
            let compiled = |schema: &Value| {
                jsonschema::validator_for(schema)
                    .unwrap_or_else(|error| panic!("{self:?}: {error}"))
            };
            Ready {
                output: compiled(&document),
                input: compiled(&input),
                document,
            }
        })
    }

    /// Returns the error in a printed line.
    pub fn complaint(self, line: &Value) -> Option<String> {
        complaint(&self.ready().output, line)
    }

    /// Returns the error in a line of a client.
    pub fn input_complaint(self, line: &Value) -> Option<String> {
        complaint(&self.ready().input, line)
    }

    /// Returns the errors in these lines; the runner's own notes are skipped.
    pub fn complaints<'a>(self, lines: impl IntoIterator<Item = &'a Value>) -> Vec<String> {
        lines
            .into_iter()
            .filter(|line| line.get("__harness").is_none())
            .filter_map(|line| self.complaint(line))
            .take(MAX_COMPLAINTS)
            .collect()
    }
}

fn complaint(validator: &Validator, line: &Value) -> Option<String> {
    if validator.is_valid(line) {
        return None;
    }
    let errors: Vec<_> = validator.iter_errors(line).collect();
    let worst = most_specific(&errors, 0)?;
    let text: String = line.to_string().chars().take(300).collect();
    let place = worst.instance_path();
    Some(format!(
        "not as in the schema, at \"{place}\": {worst}\n      {text}"
    ))
}

/// Returns the most specific error: the deepest one, and within a choice the one in the kind that the value claims to
/// be. Returns `None` if the value claims another kind, which members at `tag_depth` show.
fn most_specific<'e, 'v>(
    errors: &'e [ValidationError<'v>],
    tag_depth: usize,
) -> Option<&'e ValidationError<'v>> {
    let depth = |error: &ValidationError<'_>| error.instance_path().as_str().matches('/').count();
    let is_tag = |error: &ValidationError<'_>| {
        depth(error) == tag_depth && matches!(error.kind(), ValidationErrorKind::Constant { .. })
    };
    if errors.iter().any(is_tag) {
        return None;
    }
    let deepest = errors.iter().max_by_key(|error| depth(error))?;
    let below = depth(deepest);
    let within = match deepest.kind() {
        ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
            let mut kinds = context.iter();
            kinds.find_map(|errors| most_specific(errors, below + 1))
        }
        _ => None,
    };
    within.or(Some(deepest).filter(|_| below >= tag_depth))
}
