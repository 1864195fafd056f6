//! Checks a call's arguments against its tool's schema, after coercing them.
//!
//! Models write `"5"` where a number is required; such values are coerced. The checker supports the
//! part of JSON Schema that tools use, words its errors as Ajv does, and accepts what it does not
//! support: formats, conditionals, remote references.

use pinion_message::ToolSpec;
use serde_json::{Map, Value};

use crate::coerce;

/// Nesting (of schemas and references) beyond which a schema is treated as satisfied.
const MAX_DEPTH: usize = 64;

/// The arguments in the types that `spec` declares, or an error text for the model.
///
/// Members the schema does not name pass unchanged.
pub fn validate(spec: &ToolSpec, arguments: &Value) -> Result<Value, String> {
    validate_with(spec, arguments, ErrorWords::Ajv)
}

/// Accepts every object, for tools whose arguments are checked elsewhere; missing arguments are an empty object.
pub fn accept_any_object(spec: &ToolSpec, arguments: &Value) -> Result<Value, String> {
    match arguments {
        Value::Object(_) => Ok(arguments.clone()),
        Value::Null => Ok(Value::Object(Map::new())),
        other => Err(format!("{} takes an object, not {other}", spec.name)),
    }
}

/// The wording of errors in arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorWords {
    /// The words of Ajv: `must have required property 'path'`, `must be number`.
    Ajv,
    /// Few words: `missing`, `expected number, got string`.
    Brief,
}

/// Like [`validate`], with errors in other words.
pub fn validate_with(
    spec: &ToolSpec,
    arguments: &Value,
    words: ErrorWords,
) -> Result<Value, String> {
    let mut coerced = arguments.clone();
    let mut checker = Checker {
        root: &spec.parameters,
        words,
        problems: Vec::new(),
    };
    checker.check(&spec.parameters, &mut coerced, "", 0);
    if checker.problems.is_empty() {
        return Ok(coerced);
    }
    let lines: Vec<String> = checker
        .problems
        .iter()
        .map(|problem| format!("  - {}: {}", problem.subject, problem.message))
        .collect();
    Err(format!(
        "Validation failed for tool \"{}\":\n{}\n\nReceived arguments:\n{}",
        spec.name,
        lines.join("\n"),
        serde_json::to_string_pretty(arguments).unwrap_or_default()
    ))
}

struct Problem {
    subject: String,
    message: String,
}

struct Checker<'s> {
    root: &'s Value,
    words: ErrorWords,
    problems: Vec<Problem>,
}

impl<'s> Checker<'s> {
    fn report(&mut self, path: &str, message: impl Into<String>) {
        let subject = if path.is_empty() { "root" } else { &path[1..] };
        self.problems.push(Problem {
            subject: subject.to_owned(),
            message: message.into(),
        });
    }

    /// Checks and coerces `value` in place. `path` is a JSON pointer to it.
    fn check(&mut self, schema: &'s Value, value: &mut Value, path: &str, depth: usize) {
        let schema = match schema {
            Value::Bool(false) => return self.report(path, "boolean schema is false"),
            Value::Object(schema) if depth < MAX_DEPTH => schema,
            _ => return,
        };
        if let Some(target) = schema.get("$ref").and_then(Value::as_str)
            && let Some(target) = target
                .strip_prefix('#')
                .and_then(|at| self.root.pointer(at))
        {
            self.check(target, value, path, depth + 1);
        }
        if let Some(message) = wrong_type(schema, value, self.words) {
            return self.report(path, message);
        }
        match value {
            Value::Number(number) => {
                for message in number_problems(schema, number.as_f64().unwrap_or_default()) {
                    self.report(path, message);
                }
            }
            Value::String(text) => {
                for message in text_problems(schema, text) {
                    self.report(path, message);
                }
            }
            _ => {}
        }
        self.check_choices(schema, value, path, depth);
        match value {
            Value::Array(items) => self.check_items(schema, items, path, depth),
            Value::Object(members) => self.check_members(schema, members, path, depth),
            _ => {}
        }
    }

    fn check_choices(
        &mut self,
        schema: &'s Map<String, Value>,
        value: &mut Value,
        path: &str,
        depth: usize,
    ) {
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && !allowed.iter().any(|candidate| same(candidate, value))
        {
            self.report(path, "must be equal to one of the allowed values");
        }
        if let Some(constant) = schema.get("const")
            && !same(constant, value)
        {
            self.report(path, "must be equal to constant");
        }
        if let Some(forbidden) = schema.get("not")
            && self
                .problems_of(forbidden, &mut value.clone(), path, depth)
                .is_empty()
        {
            self.report(path, "must NOT be valid");
        }
        if let Some(Value::Array(branches)) = schema.get("anyOf") {
            self.check_branches(branches, value, path, depth, Branches::Any);
        }
        if let Some(Value::Array(branches)) = schema.get("oneOf") {
            self.check_branches(branches, value, path, depth, Branches::One);
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                self.check(part, value, path, depth + 1);
            }
        }
    }

    /// The first branch that accepts the value also coerces it.
    fn check_branches(
        &mut self,
        branches: &'s [Value],
        value: &mut Value,
        path: &str,
        depth: usize,
        kind: Branches,
    ) {
        let mut accepted = None;
        let mut accepted_as_is = 0;
        let mut problems = Vec::new();
        for branch in branches {
            let mut candidate = value.clone();
            let found = self.problems_of(branch, &mut candidate, path, depth);
            if !found.is_empty() {
                problems.extend(found);
                continue;
            }
            // Branches that only match after coercion do not make a choice ambiguous.
            accepted_as_is += usize::from(candidate == *value);
            accepted.get_or_insert(candidate);
            if kind == Branches::Any {
                break;
            }
        }
        match accepted {
            Some(_) if accepted_as_is > 1 => self.report(path, kind.message()),
            Some(candidate) => *value = candidate,
            None => {
                self.problems.extend(problems);
                self.report(path, kind.message());
            }
        }
    }

    fn problems_of(
        &self,
        schema: &'s Value,
        value: &mut Value,
        path: &str,
        depth: usize,
    ) -> Vec<Problem> {
        let mut checker = Checker {
            root: self.root,
            words: self.words,
            problems: Vec::new(),
        };
        checker.check(schema, value, path, depth + 1);
        checker.problems
    }

    fn check_items(
        &mut self,
        schema: &'s Map<String, Value>,
        items: &mut [Value],
        path: &str,
        depth: usize,
    ) {
        for (keyword, word, broken) in [
            (
                "maxItems",
                "more",
                items.len() as u64 > limit(schema, "maxItems", u64::MAX),
            ),
            (
                "minItems",
                "fewer",
                (items.len() as u64) < limit(schema, "minItems", 0),
            ),
        ] {
            if broken {
                let bound = limit(schema, keyword, 0);
                self.report(path, format!("must NOT have {word} than {bound} items"));
            }
        }
        let prefix = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(&[][..], |all| all);
        let rest = schema.get("items");
        for (index, item) in items.iter_mut().enumerate() {
            let item_schema = match (prefix.get(index), rest) {
                (Some(schema), _) => Some(schema),
                (None, Some(Value::Array(tuple))) => tuple.get(index),
                (None, rest) => rest,
            };
            if let Some(item_schema) = item_schema {
                self.check(item_schema, item, &format!("{path}/{index}"), depth + 1);
            }
        }
    }

    fn check_members(
        &mut self,
        schema: &'s Map<String, Value>,
        members: &mut Map<String, Value>,
        path: &str,
        depth: usize,
    ) {
        for name in strings(schema.get("required")) {
            if members.contains_key(name) {
                continue;
            }
            if self.words == ErrorWords::Brief {
                self.report(&child(path, name), "missing");
            } else {
                let subject = if path.is_empty() {
                    format!("/{name}")
                } else {
                    path.to_owned()
                };
                self.report(&subject, format!("must have required property '{name}'"));
            }
        }
        let empty = Map::new();
        let declared = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let additional = schema.get("additionalProperties");
        let patterned = schema.contains_key("patternProperties");
        for (name, value) in members
            .iter_mut()
            .filter(|(name, _)| !declared.contains_key(*name))
        {
            match additional {
                Some(Value::Bool(false)) if !patterned => {
                    self.report(path, "must NOT have additional properties");
                }
                Some(rest @ Value::Object(_)) if !patterned => {
                    self.check(rest, value, &child(path, name), depth + 1);
                }
                _ => {}
            }
        }
        if let Some(Value::Object(declared)) = schema.get("properties") {
            for (name, member_schema) in declared {
                if let Some(value) = members.get_mut(name) {
                    self.check(member_schema, value, &child(path, name), depth + 1);
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Branches {
    Any,
    One,
}

impl Branches {
    fn message(self) -> &'static str {
        match self {
            Self::Any => "must match a schema in anyOf",
            Self::One => "must match exactly one schema in oneOf",
        }
    }
}

fn wrong_type(schema: &Map<String, Value>, value: &mut Value, words: ErrorWords) -> Option<String> {
    let kinds: Vec<&str> = match schema.get("type")? {
        Value::String(kind) => vec![kind],
        kinds => strings(Some(kinds)).collect(),
    };
    let fits = kinds.iter().any(|kind| coerce::is(kind, value));
    if kinds.is_empty() || fits {
        return None;
    }
    match kinds.iter().find_map(|kind| coerce::to(kind, value)) {
        Some(coerced) => {
            *value = coerced;
            None
        }
        None if words == ErrorWords::Brief => {
            let kinds = kinds.join(" or ");
            Some(format!("expected {kinds}, got {}", kind_of(value)))
        }
        None => Some(format!("must be {}", kinds.join(","))),
    }
}

/// Returns JSON Schema's name of the type of a value.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn number_problems(schema: &Map<String, Value>, number: f64) -> Vec<String> {
    let mut found = Vec::new();
    let mut bound = |keyword: &str, sign: &str, holds: fn(f64, f64) -> bool| {
        if let Some(bound) = schema.get(keyword).and_then(Value::as_f64)
            && !holds(number, bound)
        {
            found.push(format!("must be {sign} {bound}"));
        }
    };
    bound("maximum", "<=", |number, bound| number <= bound);
    bound("minimum", ">=", |number, bound| number >= bound);
    bound("exclusiveMaximum", "<", |number, bound| number < bound);
    bound("exclusiveMinimum", ">", |number, bound| number > bound);
    bound("multipleOf", "multiple of", |number, bound| {
        (number / bound).fract() == 0.0
    });
    found
}

fn text_problems(schema: &Map<String, Value>, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let length = text.chars().count() as u64;
    let most = limit(schema, "maxLength", u64::MAX);
    if length > most {
        found.push(format!("must NOT have more than {most} characters"));
    }
    let least = limit(schema, "minLength", 0);
    if length < least {
        found.push(format!("must NOT have fewer than {least} characters"));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && coerce::mismatches(pattern, text)
    {
        found.push(format!("must match pattern \"{pattern}\""));
    }
    found
}

fn limit(schema: &Map<String, Value>, keyword: &str, default: u64) -> u64 {
    schema
        .get(keyword)
        .and_then(Value::as_f64)
        .map_or(default, |bound| bound as u64)
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
}

/// Equality in which `1` and `1.0` are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn child(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}
