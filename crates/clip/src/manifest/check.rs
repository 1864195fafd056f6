//! Checks the input of a call against the schema of its command.
//!
//! Schemas come from clips and providers, so the work is bounded before it starts: a schema with recursive references is
//! not used, and a check whose schema and input are both large is left to the clip.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, ValidationError, Validator};
use pinion_text::{nearest, shorten};
use serde_json::{Map, Value};

use super::{Command, Manifest};
use crate::ClipError;

/// The most nodes of a schema, with every reference expanded.
const MAX_NODES: usize = 20_000;
/// The most work of one check: nodes of the schema times bytes of the input.
const MAX_WORK: usize = 1 << 30;
/// The most steps of matching a pattern against one text.
const MAX_STEPS: usize = 100_000;
/// The most problems that are reported at once.
const SHOWN: usize = 3;
/// Characters of a wrong value that are shown.
const SHOWN_VALUE: usize = 60;

/// The compiled schemas of a manifest, each compiled when its command is first called.
#[derive(Default)]
pub struct InputChecks(Mutex<HashMap<String, Option<Arc<Check>>>>);

struct Check {
    schema: Value,
    nodes: usize,
    validator: Validator,
}

impl Manifest {
    /// Reports whether a command has a schema that inputs are checked against.
    pub fn has_schema(&self, command: &str) -> bool {
        self.check_of(command).is_some()
    }

    fn check_of(&self, command: &str) -> Option<(&Command, Arc<Check>)> {
        let command = self
            .command(command)
            .filter(|it| it.input.starts_with('{'))?;
        let mut checks = self.checks.0.lock().unwrap_or_else(PoisonError::into_inner);
        let check = match checks.get(&command.name) {
            Some(check) => check.clone(),
            None => {
                let check = Check::compile(&command.input).map(Arc::new);
                checks.insert(command.name.clone(), check.clone());
                check
            }
        };
        Some((command, check?))
    }

    /// Rejects an input that does not match the schema of its command, and names the member.
    ///
    /// A member with a default may be missing although the schema requires it: the public SDK writes schemas of the
    /// input after defaults are filled in. A command without a schema, or with one that cannot be compiled, accepts
    /// every input.
    pub fn check_input(&self, command: &str, input: &[u8]) -> Result<(), ClipError> {
        let Some((command, check)) = self
            .check_of(command)
            .filter(|(_, check)| check.nodes.saturating_mul(input.len()) <= MAX_WORK)
        else {
            return Ok(());
        };
        let problems = match serde_json::from_slice::<Value>(input) {
            Ok(input) => check.problems(&input),
            Err(error) if error.is_syntax() && error.to_string().contains("recursion") => {
                vec!["it is nested too deeply".to_owned()]
            }
            Err(_) => vec!["it is not JSON text".to_owned()],
        };
        if problems.is_empty() {
            return Ok(());
        }
        Err(ClipError::invalid(format!(
            "the input of \"{} {}\" is wrong: {}",
            self.name,
            command.name,
            problems.join("; ")
        )))
    }
}

impl Check {
    fn compile(text: &str) -> Option<Self> {
        let mut schema: Value = serde_json::from_str(text).ok()?;
        let nodes = Weigher::default().weigh(&schema, &schema)?;
        relax(&mut schema);
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_STEPS);
        let options = jsonschema::options().with_pattern_options(patterns);
        let validator = options.build(&schema).ok()?;
        Some(Self {
            schema,
            nodes,
            validator,
        })
    }

    fn problems(&self, input: &Value) -> Vec<String> {
        if self.validator.is_valid(input) {
            return Vec::new();
        }
        let errors = self.validator.iter_errors(input);
        errors
            .take(SHOWN)
            .map(|error| self.describe(&error))
            .collect()
    }

    fn describe(&self, error: &ValidationError<'_>) -> String {
        let place = member(error.instance_path().as_str());
        let subject = match place.as_str() {
            "" => "the input".to_owned(),
            place => format!("\"{place}\""),
        };
        let below = |name: &str| match place.as_str() {
            "" => name.to_owned(),
            place => format!("{place}.{name}"),
        };
        match error.kind() {
            ValidationErrorKind::Required { property } => {
                let name = property.as_str().unwrap_or_default();
                format!("\"{}\" is missing", below(name))
            }
            ValidationErrorKind::AdditionalProperties { unexpected } => {
                let known = self.properties_beside(error);
                let unknown = unexpected.iter().take(SHOWN).map(|name| {
                    let near =
                        known.and_then(|known| nearest(name, known.keys().map(String::as_str)));
                    let hint =
                        near.map_or(String::new(), |near| format!(", did you mean \"{near}\"?"));
                    format!("\"{}\" is not known{hint}", below(name))
                });
                unknown.collect::<Vec<_>>().join("; ")
            }
            ValidationErrorKind::Type { kind } => {
                let wanted = match kind {
                    TypeKind::Single(kind) => kind.to_string(),
                    TypeKind::Multiple(kinds) => {
                        let kinds: Vec<String> =
                            kinds.iter().map(|kind| kind.to_string()).collect();
                        kinds.join(" or ")
                    }
                };
                format!(
                    "{subject} must be {}, not {}",
                    with_article(&wanted),
                    shown(error.instance())
                )
            }
            ValidationErrorKind::Enum { options } => {
                format!(
                    "{subject} must be one of {}, not {}",
                    shown(options),
                    shown(error.instance())
                )
            }
            ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
                format!(
                    "{subject} fits none of the forms that the schema allows: {}",
                    shown(error.instance())
                )
            }
            kind => {
                let rule = self.schema.pointer(error.schema_path().as_str());
                let rule = rule.map_or(String::new(), |rule| format!(": {}", shown(rule)));
                format!("{subject} breaks the rule \"{}\"{rule}", kind.keyword())
            }
        }
    }

    /// Returns the properties that the schema lists beside the `additionalProperties` of an error.
    fn properties_beside(&self, error: &ValidationError<'_>) -> Option<&Map<String, Value>> {
        let (parent, _) = error.schema_path().as_str().rsplit_once('/')?;
        self.schema.pointer(parent)?.get("properties")?.as_object()
    }
}

/// Converts the JSON pointer `/a/0/b` to `a.0.b`.
fn member(pointer: &str) -> String {
    let parts = pointer.split('/').skip(1);
    let parts = parts.map(|part| part.replace("~1", "/").replace("~0", "~"));
    parts.collect::<Vec<_>>().join(".")
}

fn with_article(kind: &str) -> String {
    match kind {
        "null" => kind.to_owned(),
        "array" | "integer" | "object" => format!("an {kind}"),
        kind => format!("a {kind}"),
    }
}

fn shown(value: &Value) -> String {
    shorten(&value.to_string(), SHOWN_VALUE)
}

/// Removes members with a default from the required ones, at every depth.
fn relax(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            let optional: Vec<String> = match object.get("properties") {
                Some(Value::Object(properties)) => properties
                    .iter()
                    .filter(|(_, property)| property.get("default").is_some())
                    .map(|(name, _)| name.clone())
                    .collect(),
                _ => Vec::new(),
            };
            if let Some(Value::Array(required)) = object.get_mut("required") {
                required.retain(|name| !optional.iter().any(|it| name == it.as_str()));
            }
            object.values_mut().for_each(relax);
        }
        Value::Array(items) => items.iter_mut().for_each(relax),
        _ => {}
    }
}

/// Counts the nodes of a schema with its references expanded. A schema that refers to itself has no such number.
#[derive(Default)]
struct Weigher {
    known: HashMap<String, Option<usize>>,
}

impl Weigher {
    fn weigh(&mut self, root: &Value, node: &Value) -> Option<usize> {
        let mut sum: usize = 1;
        match node {
            Value::Object(object) => {
                for (key, value) in object {
                    sum = sum.saturating_add(match (key.as_str(), value) {
                        ("$ref", Value::String(target)) => self.target(root, target)?,
                        ("$dynamicRef" | "$recursiveRef", _) => return None,
                        (_, value) => self.weigh(root, value)?,
                    });
                }
            }
            Value::Array(items) => {
                for item in items {
                    sum = sum.saturating_add(self.weigh(root, item)?);
                }
            }
            _ => {}
        }
        (sum <= MAX_NODES).then_some(sum)
    }

    fn target(&mut self, root: &Value, target: &str) -> Option<usize> {
        if let Some(known) = self.known.get(target) {
            return *known;
        }
        // While the number of a target is unknown, a reference to it is recursive.
        self.known.insert(target.to_owned(), None);
        let node = root.pointer(target.strip_prefix('#')?)?;
        let weight = self.weigh(root, node);
        self.known.insert(target.to_owned(), weight);
        weight
    }
}

impl Clone for InputChecks {
    /// Starts without compiled schemas, because a copy of a manifest may be changed.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for InputChecks {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for InputChecks {}

impl fmt::Debug for InputChecks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("InputChecks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest(schema: &Value) -> Manifest {
        let commands = json!([{"name": "add", "input": schema}]);
        Manifest::read(&json!({"name": "notes", "commands": commands}))
    }

    fn wrong(schema: &Value, input: &Value) -> Option<String> {
        let checked = manifest(schema).check_input("add", input.to_string().as_bytes());
        checked.err().map(|error| error.message.into_owned())
    }

    #[test]
    fn a_wrong_input_is_refused_and_the_member_named() {
        let schema = json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "to": {"type": "integer", "minimum": 1},
                "kind": {"enum": ["a", "b"]},
                "place": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
            },
            "required": ["text"],
            "additionalProperties": false,
        });
        let start = "the input of \"notes add\" is wrong: ";
        for (input, problem) in [
            (json!({}), "\"text\" is missing"),
            (json!(null), "the input must be an object, not null"),
            (json!({"text": 5}), "\"text\" must be a string, not 5"),
            (
                json!({"text": "x", "to": "many"}),
                "\"to\" must be an integer, not \"many\"",
            ),
            (
                json!({"text": "x", "to": 0}),
                "\"to\" breaks the rule \"minimum\": 1",
            ),
            (
                json!({"text": "x", "kind": "c"}),
                "\"kind\" must be one of [\"a\",\"b\"], not \"c\"",
            ),
            (json!({"text": "x", "place": {}}), "\"place.x\" is missing"),
            (json!({"text": "x", "more": 1}), "\"more\" is not known"),
            (
                json!({"text": "x", "ot": 1}),
                "\"ot\" is not known, did you mean \"to\"?",
            ),
            (
                json!({"text": "x", "knd": 1}),
                "\"knd\" is not known, did you mean \"kind\"?",
            ),
        ] {
            assert_eq!(wrong(&schema, &input), Some(format!("{start}{problem}")));
        }
        assert_eq!(wrong(&schema, &json!({"text": "x", "to": 2})), None);
        let not_json = manifest(&schema).check_input("add", b"{");
        assert_eq!(
            not_json.unwrap_err().message,
            format!("{start}it is not JSON text")
        );
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        let deep = manifest(&schema).check_input("add", deep.as_bytes());
        assert_eq!(
            deep.unwrap_err().message,
            format!("{start}it is nested too deeply")
        );
    }

    #[test]
    fn a_member_with_a_default_may_be_left_out() {
        let times = json!({"type": "integer", "default": 1});
        let nested =
            json!({"type": "object", "properties": {"times": times}, "required": ["times"]});
        let schema = json!({
            "type": "object",
            "properties": {"times": times, "nested": nested},
            "required": ["times", "nested"],
        });
        assert_eq!(wrong(&schema, &json!({"nested": {}})), None);
        assert!(wrong(&schema, &json!({"nested": {"times": "x"}})).is_some());
    }

    #[test]
    fn a_text_that_is_not_a_schema_accepts_every_input() {
        for schema in [
            json!("{ text: string; times?: number }"),
            json!(""),
            json!({"type": "nonsense"}),
            json!({"$ref": "https://example.org/schema"}),
        ] {
            assert_eq!(wrong(&schema, &json!({"a": 1})), None, "{schema}");
        }
        let checked = manifest(&json!({"type": "object"})).check_input("other", b"5");
        assert!(checked.is_ok(), "a command that is not listed");
    }

    #[test]
    fn a_schema_that_is_too_expensive_accepts_every_input() {
        let choice = |to: &str| json!({"anyOf": [{"$ref": to}, {"$ref": to}]});
        let recursive = json!({"type": "object", "$ref": "#"});
        assert_eq!(wrong(&recursive, &json!(5)), None);
        let mut defs = Map::new();
        for number in 0..60 {
            defs.insert(
                format!("d{number}"),
                choice(&format!("#/$defs/d{}", number + 1)),
            );
        }
        defs.insert("d60".into(), json!(false));
        let doubling = json!({"$defs": defs, "$ref": "#/$defs/d0"});
        assert_eq!(wrong(&doubling, &json!(5)), None);
        let ends = json!({"$defs": {"text": {"type": "string"}}, "$ref": "#/$defs/text"});
        assert!(wrong(&ends, &json!(5)).is_some());
    }
}
