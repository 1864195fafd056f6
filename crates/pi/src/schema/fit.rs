//! Reduces the schema that the types generate to the schema of one dialect.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::dialect::Dialect;

const DEFINITIONS: &str = "#/$defs/";

/// Returns a reference to a definition.
pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("{DEFINITIONS}{name}") })
}

/// Returns the definition that a reference names.
pub(super) fn target(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(DEFINITIONS)
}

/// Converts `tool_call` and `toolCall` to `ToolCall`.
pub(super) fn pascal(word: &str) -> String {
    let capital = |part: &str| {
        let mut letters = part.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    word.split('_').map(capital).collect()
}

/// Returns the branches of a union.
pub(super) fn branches(schema: &Value) -> Vec<Value> {
    let union = schema.get("oneOf").or_else(|| schema.get("anyOf"));
    union.and_then(Value::as_array).cloned().unwrap_or_default()
}

fn properties(schema: &mut Value) -> Option<&mut Map<String, Value>> {
    let schema = schema.as_object_mut()?;
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    properties.as_object_mut()
}

fn required(schema: &Value) -> Vec<String> {
    let names = schema["required"].as_array().into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Adds a member before all others.
pub(super) fn put_first(schema: &mut Value, name: &str, member: Value) {
    let mut names = required(schema);
    names.retain(|other| other != name);
    names.insert(0, name.to_owned());
    schema["required"] = json!(names);
    put_first_optional(schema, name, member);
}

/// Adds an optional member before all others.
pub(super) fn put_first_optional(schema: &mut Value, name: &str, member: Value) {
    if let Some(properties) = properties(schema) {
        properties.shift_remove(name);
        properties.shift_insert(0, name.to_owned(), member);
    }
}

/// Adds a member after all others.
pub(super) fn put_last(schema: &mut Value, name: &str, member: Value) {
    let mut names = required(schema);
    names.push(name.to_owned());
    schema["required"] = json!(names);
    if let Some(properties) = properties(schema) {
        properties.insert(name.to_owned(), member);
    }
}

/// Makes nullable members optional.
pub(super) fn optional(schema: &mut Value) {
    let mut names = required(schema);
    names.retain(|name| !is_nullable(&schema["properties"][name.as_str()]));
    schema["required"] = json!(names);
}

fn is_nullable(schema: &Value) -> bool {
    let null = json!("null");
    let lists_null = schema["type"]
        .as_array()
        .is_some_and(|types| types.contains(&null));
    lists_null || branches(schema).iter().any(|branch| branch["type"] == null)
}

/// Makes each variant of a tagged union a definition of its own, with its tag.
pub(super) fn name_branches(definitions: &mut Map<String, Value>) {
    let names: Vec<String> = definitions.keys().cloned().collect();
    for name in names {
        let union = &mut definitions[&name];
        let is_optional = union["x-optional"] == true;
        if is_optional {
            optional(union);
        }
        let suffix = union["x-suffix"].as_str().unwrap_or_default().to_owned();
        let keyword = if union["oneOf"].is_array() {
            "oneOf"
        } else {
            "anyOf"
        };
        let kinds = branches(union);
        let mut references = Vec::new();
        for mut kind in kinds {
            let Some(tag) = tag(&kind) else {
                references.push(kind);
                continue;
            };
            let mut told = Map::new();
            for word in ["x-since", "x-until"] {
                if let Some(dialect) = kind.as_object_mut().and_then(|kind| kind.remove(word)) {
                    told.insert(word.to_owned(), dialect);
                }
            }
            let place = match target(&kind) {
                Some(place) => {
                    let place = place.to_owned();
                    if let (Some((name, value)), Some(known)) = (tag, definitions.get_mut(&place)) {
                        put_first(known, &name, value);
                    }
                    place
                }
                None => {
                    if is_optional {
                        optional(&mut kind);
                    }
                    let place = match kind.as_object_mut().and_then(|kind| kind.remove("title")) {
                        Some(Value::String(title)) => title,
                        _ => tag.map_or_else(String::new, |(_, value)| {
                            pascal(value["const"].as_str().unwrap_or_default()) + &suffix
                        }),
                    };
                    definitions.insert(place.clone(), kind);
                    place
                }
            };
            let mut named = reference(&place);
            if let Some(named) = named.as_object_mut() {
                named.extend(told);
            }
            references.push(named);
        }
        if !references.is_empty() {
            definitions[&name][keyword] = Value::Array(references);
        }
    }
}

/// Returns the tag of a variant; `Some(None)` if it has a title instead, `None` if it has neither.
fn tag(kind: &Value) -> Option<Option<(String, Value)>> {
    let members = kind["properties"].as_object()?;
    let tag = members
        .iter()
        .find(|(_, member)| member["const"].is_string());
    match tag {
        Some((name, member)) => Some(Some((name.clone(), json!({ "const": member["const"] })))),
        None => kind.get("title").map(|_| None),
    }
}

/// Reports whether a dialect has the described line or member.
pub(super) fn is_in_dialect(schema: &Value, dialect: Dialect) -> bool {
    let named = |word: &str| schema[word].as_str().and_then(|name| name.parse().ok());
    let since: Option<Dialect> = named("x-since");
    let until: Option<Dialect> = named("x-until");
    since.is_none_or(|since| dialect >= since) && until.is_none_or(|until| dialect <= until)
}

/// Removes everything that the dialect does not have, closes objects, and removes the additional keywords.
pub(super) fn fit(document: &mut Value, dialect: Dialect) {
    walk(document, &|schema| prune(schema, dialect));
    walk(document, &forbid_null);
    walk(document, &require_always);
    walk(document, &close);
    walk(document, &tidy);
    drop_unreachable(document);
}

fn walk(value: &mut Value, change: &dyn Fn(&mut Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            change(members);
            members.values_mut().for_each(|member| walk(member, change));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| walk(value, change)),
        _ => {}
    }
}

fn prune(schema: &mut Map<String, Value>, dialect: Dialect) {
    for union in ["oneOf", "anyOf"] {
        if let Some(Value::Array(kinds)) = schema.get_mut(union) {
            kinds.retain(|kind| is_in_dialect(kind, dialect));
        }
    }
    let Some(Value::Object(members)) = schema.get_mut("properties") else {
        return;
    };
    members.retain(|_, member| is_in_dialect(member, dialect));
    let names: BTreeSet<String> = members.keys().cloned().collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| name.as_str().is_some_and(|name| names.contains(name)));
    }
}

/// Makes members with `x-always` required.
fn require_always(schema: &mut Map<String, Value>) {
    let Some(Value::Object(members)) = schema.get("properties") else {
        return;
    };
    let is_always = |member: &Value| member["x-always"] == true;
    let always = members.iter().filter(|(_, member)| is_always(member));
    let always: Vec<Value> = always.map(|(name, _)| json!(name)).collect();
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.extend(always);
    }
}

/// Removes null from optional members: they are missing, never null, unless they have `x-nullable`.
fn forbid_null(schema: &mut Map<String, Value>) {
    let needed = required(&json!({ "required": schema.get("required") }));
    let Some(Value::Object(members)) = schema.get_mut("properties") else {
        return;
    };
    for (name, member) in members {
        let may_be_null = member["x-nullable"] == true;
        if needed.contains(name) || may_be_null || !is_nullable(member) {
            continue;
        }
        if let Some(Value::Array(types)) = member.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [one] = types.as_slice() {
                member["type"] = one.clone();
            }
        }
        if let Some(Value::Array(kinds)) = member.get_mut("anyOf") {
            kinds.retain(|kind| kind["type"] != "null");
            if let [Value::Object(one)] = kinds.as_slice() {
                let one = one.clone();
                if let Some(member) = member.as_object_mut() {
                    member.remove("anyOf");
                    member.extend(one);
                }
            }
        }
    }
}

/// Forbids members that are not described, unless the type permits others.
fn close(schema: &mut Map<String, Value>) {
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if is_object
        && schema.contains_key("properties")
        && !schema.contains_key("additionalProperties")
    {
        schema.insert("additionalProperties".to_owned(), json!(false));
    }
}

/// Removes keywords that only the types need, and moves the description to the front.
fn tidy(schema: &mut Map<String, Value>) {
    schema.retain(|name, _| !name.starts_with("x-"));
    if schema
        .get("required")
        .is_some_and(|names| *names == json!([]))
    {
        schema.remove("required");
    }
    let is_typed = schema
        .get("type")
        .is_some_and(|kind| kind.is_string() || kind.is_array());
    let is_schema = is_typed
        || ["$ref", "oneOf", "anyOf"]
            .iter()
            .any(|word| schema.contains_key(*word));
    if !is_schema {
        return;
    }
    // Formats such as `uint64` describe Rust types, and defaults apply to files only.
    schema.remove("format");
    schema.remove("default");
    if let Some(Value::String(words)) = schema.shift_remove("description") {
        let words = words.replace('\n', " ");
        schema.shift_insert(0, "description".to_owned(), json!(words));
    }
}

/// Drops definitions without references, and puts those with lower-case names first.
fn drop_unreachable(document: &mut Value) {
    let Some(Value::Object(mut all)) = document.get_mut("$defs").map(Value::take) else {
        return;
    };
    let mut wanted = references_in(document);
    wanted.push("input".to_owned());
    let mut kept = std::collections::BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if let Some(schema) = all.shift_remove(&name) {
            wanted.extend(references_in(&schema));
            kept.insert((name.starts_with(char::is_uppercase), name), schema);
        }
    }
    let kept = kept.into_iter().map(|((_, name), schema)| (name, schema));
    document["$defs"] = Value::Object(kept.collect());
}

fn references_in(value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) => {
            let own = target(value).map(str::to_owned);
            own.into_iter()
                .chain(members.values().flat_map(references_in))
                .collect()
        }
        Value::Array(values) => values.iter().flat_map(references_in).collect(),
        _ => Vec::new(),
    }
}
