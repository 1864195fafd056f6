//! Checks a call's arguments as pi does since it uses TypeBox.
//!
//! The coercion is that of [`crate::validate()`]; the wording and the paths are TypeBox's: dots
//! between members, all missing members in one line. Unknown keywords accept everything.

use pinion_message::ToolSpec;
use serde_json::{Map, Value};

use crate::coerce;

/// Nesting (of schemas and references) beyond which a schema is treated as satisfied.
const MAX_DEPTH: usize = 64;

/// The conversion of `null` where a text is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NullText {
    /// An empty text: for schemas written as JSON.
    #[default]
    Empty,
    /// The word `null`: for schemas made with TypeBox.
    Word,
}

/// The arguments in the types that `spec` declares, or an error text for the model.
pub fn validate_typebox(
    spec: &ToolSpec,
    arguments: &Value,
    null_text: NullText,
) -> Result<Value, String> {
    let mut coerced = arguments.clone();
    let mut checker = Checker {
        root: &spec.parameters,
        null_text,
        problems: Vec::new(),
    };
    checker.check(&spec.parameters, &mut coerced, "", 0);
    if checker.problems.is_empty() {
        return Ok(coerced);
    }
    Err(format!(
        "Validation failed for tool \"{}\":\n{}\n\nReceived arguments:\n{}",
        spec.name,
        checker.problems.join("\n"),
        serde_json::to_string_pretty(arguments).unwrap_or_default()
    ))
}

struct Checker<'s> {
    root: &'s Value,
    null_text: NullText,
    problems: Vec<String>,
}

impl<'s> Checker<'s> {
    fn report(&mut self, path: &str, message: impl std::fmt::Display) {
        let path = if path.is_empty() { "root" } else { path };
        self.problems.push(format!("  - {path}: {message}"));
    }

    fn check(&mut self, schema: &'s Value, value: &mut Value, path: &str, depth: usize) {
        let schema = match schema {
            Value::Bool(false) => return self.report(path, "schema is false"),
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
        if let Some(message) = self.wrong_type(schema, value) {
            return self.report(path, message);
        }
        match value {
            Value::Number(number) => {
                self.check_number(schema, number.as_f64().unwrap_or_default(), path);
            }
            Value::String(text) => self.check_text(schema, &text.clone(), path),
            Value::Array(items) => self.check_items(schema, items, path, depth),
            Value::Object(members) => self.check_members(schema, members, path, depth),
            _ => {}
        }
        self.check_choices(schema, value, path, depth);
    }

    fn wrong_type(&self, schema: &Map<String, Value>, value: &mut Value) -> Option<String> {
        let kinds: Vec<&str> = match schema.get("type")? {
            Value::String(kind) => vec![kind],
            kinds => strings(Some(kinds)).collect(),
        };
        if kinds.is_empty() || kinds.iter().any(|kind| coerce::is(kind, value)) {
            return None;
        }
        let spelled = self.null_text == NullText::Word && value.is_null();
        let coerced = kinds.iter().find_map(|&kind| match kind {
            "string" if spelled => Some("null".into()),
            kind => coerce::to(kind, value),
        });
        match coerced {
            Some(coerced) => {
                *value = coerced;
                None
            }
            None => Some(match kinds.as_slice() {
                [kind] => format!("must be {kind}"),
                kinds => format!("must be either {}", kinds.join(" or ")),
            }),
        }
    }

    fn check_number(&mut self, schema: &Map<String, Value>, number: f64, path: &str) {
        let mut bound = |keyword: &str, words: &str, holds: fn(f64, f64) -> bool| {
            if let Some(bound) = schema.get(keyword).and_then(Value::as_f64)
                && !holds(number, bound)
            {
                self.report(path, format_args!("must be {words} {bound}"));
            }
        };
        bound("exclusiveMaximum", "<", |number, bound| number < bound);
        bound("exclusiveMinimum", ">", |number, bound| number > bound);
        bound("maximum", "<=", |number, bound| number <= bound);
        bound("minimum", ">=", |number, bound| number >= bound);
        bound("multipleOf", "multiple of", |number, bound| {
            (number / bound).fract() == 0.0
        });
    }

    fn check_text(&mut self, schema: &Map<String, Value>, text: &str, path: &str) {
        let length = text.chars().count() as u64;
        self.check_size(
            schema,
            ["maxLength", "minLength"],
            length,
            "characters",
            path,
        );
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && coerce::mismatches(pattern, text)
        {
            self.report(path, format_args!("must match pattern \"{pattern}\""));
        }
    }

    fn check_size(
        &mut self,
        schema: &Map<String, Value>,
        [most, least]: [&str; 2],
        size: u64,
        what: &str,
        path: &str,
    ) {
        let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
        if let Some(most) = bound(most).filter(|most| size as f64 > *most) {
            self.report(path, format_args!("must not have more than {most} {what}"));
        }
        if let Some(least) = bound(least).filter(|least| (size as f64) < *least) {
            self.report(
                path,
                format_args!("must not have fewer than {least} {what}"),
            );
        }
    }

    fn check_items(
        &mut self,
        schema: &'s Map<String, Value>,
        items: &mut [Value],
        path: &str,
        depth: usize,
    ) {
        let size = items.len() as u64;
        self.check_size(schema, ["maxItems", "minItems"], size, "items", path);
        let prefix = schema.get("prefixItems").and_then(Value::as_array);
        let rest = schema.get("items");
        for (index, item) in items.iter_mut().enumerate() {
            let of_item = match (prefix.and_then(|prefix| prefix.get(index)), rest) {
                (Some(schema), _) => Some(schema),
                (None, Some(Value::Array(tuple))) => tuple.get(index),
                (None, rest) => rest,
            };
            if let Some(of_item) = of_item {
                self.check(of_item, item, &child(path, &index.to_string()), depth + 1);
            }
        }
        let twice = |(at, item): (usize, &Value)| items[..at].contains(item);
        if schema.get("uniqueItems") == Some(&Value::Bool(true))
            && items.iter().enumerate().any(twice)
        {
            self.report(path, "must not have duplicate items");
        }
        if let Some(wanted) = schema.get("contains") {
            let fits = |item: &Value| self.fits(wanted, item, depth);
            if !items.iter().any(fits) {
                self.report(path, "must contain at least 1 valid item");
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
        let required = strings(schema.get("required"));
        let missing: Vec<&str> = required
            .filter(|name| !members.contains_key(*name))
            .collect();
        if let Some(first) = missing.first() {
            let names = missing.join(", ");
            let message = format!("must have required properties {names}");
            self.report(&child(path, first), message);
        }
        let size = members.len() as u64;
        self.check_size(
            schema,
            ["maxProperties", "minProperties"],
            size,
            "properties",
            path,
        );
        let object = |keyword: &str| schema.get(keyword).and_then(Value::as_object);
        let (declared, patterns) = (object("properties"), object("patternProperties"));
        for (name, of_member) in declared.into_iter().flatten() {
            if let Some(value) = members.get_mut(name) {
                self.check(of_member, value, &child(path, name), depth + 1);
            }
        }
        let mut refused = false;
        for (name, value) in members.iter_mut() {
            let mut known = declared.is_some_and(|declared| declared.contains_key(name));
            for (pattern, of_member) in patterns.into_iter().flatten() {
                if !coerce::mismatches(pattern, name) {
                    known = true;
                    self.check(of_member, value, &child(path, name), depth + 1);
                }
            }
            if let Some(rest) = schema.get("additionalProperties").filter(|_| !known) {
                refused |= *rest == Value::Bool(false);
                self.check(rest, value, &child(path, name), depth + 1);
            }
        }
        if refused {
            self.report(path, "must not have additional properties");
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
            && self.fits(forbidden, value, depth)
        {
            self.report(path, "must not be valid");
        }
        if let Some(Value::Array(branches)) = schema.get("anyOf") {
            self.check_any(branches, value, path, depth);
        }
        if let Some(Value::Array(branches)) = schema.get("oneOf") {
            let fitting = branches
                .iter()
                .filter(|branch| self.fits(branch, value, depth));
            if fitting.count() != 1 {
                self.report(path, "must match exactly one schema in oneOf");
            }
        }
        if let Some(Value::Array(parts)) = schema.get("allOf") {
            for part in parts {
                self.check(part, value, path, depth + 1);
            }
        }
    }

    /// The first branch that accepts the value unchanged, or else the first that accepts it
    /// coerced.
    fn check_any(&mut self, branches: &'s [Value], value: &mut Value, path: &str, depth: usize) {
        let mut coerced = None;
        let mut problems = Vec::new();
        for branch in branches {
            let mut candidate = value.clone();
            let found = self.problems_of(branch, &mut candidate, path, depth);
            if !found.is_empty() {
                problems.extend(found);
            } else if candidate == *value {
                return;
            } else {
                coerced.get_or_insert(candidate);
            }
        }
        match coerced {
            Some(candidate) => *value = candidate,
            None => {
                self.problems.extend(problems);
                self.report(path, "must match a schema in anyOf");
            }
        }
    }

    fn fits(&self, schema: &'s Value, value: &Value, depth: usize) -> bool {
        let mut candidate = value.clone();
        self.problems_of(schema, &mut candidate, "", depth)
            .is_empty()
            && candidate == *value
    }

    fn problems_of(
        &self,
        schema: &'s Value,
        value: &mut Value,
        path: &str,
        depth: usize,
    ) -> Vec<String> {
        let mut checker = Checker {
            root: self.root,
            null_text: self.null_text,
            problems: Vec::new(),
        };
        checker.check(schema, value, path, depth + 1);
        checker.problems
    }
}

fn strings(value: Option<&Value>) -> impl Iterator<Item = &str> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str)
}

/// Equality in which `1` and `1.0` are one number.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        _ => left == right,
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
