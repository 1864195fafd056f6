//! Arguments as models write them, against schemas as tools publish them.

use pinion_message::ToolSpec;
use pinion_tools::{NullText, validate, validate_typebox};
use serde_json::{Value, json};

fn tool(name: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters,
    }
}

#[test]
fn every_row_of_the_coercion_table_holds() {
    let schema =
        serde_json::from_str(include_str!("vectors/argument-coercion.schema.json")).unwrap();
    let read = tool("read", schema);
    for line in include_str!("vectors/argument-coercion.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let result = validate(&read, &row["args"]);
        match row["error"].as_str() {
            // The table was made with a later release; the text for a missing member is the earlier
            // one.
            Some(error) => {
                let error = error.replace(
                    "must have required properties path",
                    "must have required property 'path'",
                );
                assert_eq!(result.unwrap_err(), error, "{line}");
            }
            None => assert_eq!(result.unwrap(), row["out"], "{line}"),
        }
    }
}

#[test]
fn the_model_reads_what_is_missing_and_what_it_sent() {
    let bash = tool(
        "bash",
        json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}),
    );
    assert_eq!(
        validate(&bash, &json!({"cmd": "echo x"})).unwrap_err(),
        "Validation failed for tool \"bash\":\n  - command: must have required property 'command'\n\n\
         Received arguments:\n{\n  \"cmd\": \"echo x\"\n}"
    );
    assert_eq!(
        validate(&bash, &json!({})).unwrap_err(),
        "Validation failed for tool \"bash\":\n  - command: must have required property 'command'\n\n\
         Received arguments:\n{}"
    );
    assert!(
        validate(&bash, &json!([]))
            .unwrap_err()
            .contains("  - root: must be object\n")
    );
}

#[test]
fn all_problems_are_named_with_the_place_they_are_in() {
    let schema = json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
            "size": {"type": ["integer", "null"], "minimum": 1, "maximum": 9},
            "list": {"type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["key"], "properties": {"key": {"const": "k"}}
            }},
            "pick": {"oneOf": [{"type": "boolean"}, {"type": "object"}]},
            "tree": {"$ref": "#/$defs/tree"},
        },
        "$defs": {"tree": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/tree"}, "n": {"type": "number"}}
        }},
    });
    let sample = tool("sample", schema);
    for (arguments, problems) in [
        (json!({}), vec!["name: must have required property 'name'"]),
        (
            json!({"name": "A", "size": 12}),
            vec![
                "name: must NOT have fewer than 2 characters",
                "name: must match pattern \"^[a-z]+$\"",
                "size: must be <= 9",
            ],
        ),
        (
            json!({"name": "ab", "size": "x"}),
            vec!["size: must be integer,null"],
        ),
        (
            json!({"name": "ab", "list": []}),
            vec!["list: must NOT have fewer than 1 items"],
        ),
        (
            json!({"name": "ab", "list": [{"key": "k"}, {}, {"key": "z"}]}),
            vec![
                "list/1: must have required property 'key'",
                "list/2/key: must be equal to constant",
            ],
        ),
        (
            json!({"name": "ab", "more": 1}),
            vec!["root: must NOT have additional properties"],
        ),
        (
            json!({"name": "ab", "pick": "maybe"}),
            vec![
                "pick: must be boolean",
                "pick: must be object",
                "pick: must match exactly one schema in oneOf",
            ],
        ),
        (
            json!({"name": "ab", "tree": {"next": {"n": "q"}}}),
            vec!["tree/next/n: must be number"],
        ),
    ] {
        let text = validate(&sample, &arguments).unwrap_err();
        let found: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("  - "))
            .collect();
        assert_eq!(found, problems, "{arguments}");
    }
    let good = json!({"name": "ab", "size": "5", "pick": "true", "tree": {"next": {"n": "2.5"}}});
    assert_eq!(
        validate(&sample, &good).unwrap(),
        json!({"name": "ab", "size": 5, "pick": true, "tree": {"next": {"n": 2.5}}})
    );
}

#[test]
fn a_schema_that_refers_to_itself_ends() {
    let endless = tool("endless", json!({"$ref": "#"}));
    assert!(validate(&endless, &json!({"a": 1})).is_ok());
}

fn typebox_problems(schema: Value, arguments: Value) -> Vec<String> {
    let checked = validate_typebox(&tool("t", schema), &arguments, NullText::Empty);
    let problem = checked.err().unwrap_or_default();
    let lines = problem.lines().filter_map(|line| line.strip_prefix("  - "));
    lines.map(str::to_owned).collect()
}

#[test]
fn typebox_errors_have_their_own_wording() {
    let schema = json!({
        "type": "object",
        "required": ["a", "b"],
        "additionalProperties": false,
        "properties": {
            "a": {"type": "string"},
            "b": {"type": "integer", "minimum": 1},
            "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 1},
            "either": {"type": ["number", "boolean"]},
            "word": {"enum": ["x", "y"]},
            "choice": {"anyOf": [{"type": "number"}, {"const": "z"}]},
        },
    });
    assert_eq!(
        typebox_problems(schema.clone(), json!({})),
        ["a: must have required properties a, b"]
    );
    assert_eq!(
        typebox_problems(
            schema.clone(),
            json!({"a": "", "b": 0, "list": [1, "no"], "more": 1})
        ),
        [
            "b: must be >= 1",
            "list: must not have more than 1 items",
            "list.1: must be boolean",
            "more: schema is false",
            "root: must not have additional properties",
        ]
    );
    assert_eq!(
        typebox_problems(
            schema.clone(),
            json!({"a": [], "b": 1.5, "either": "no", "word": "z", "choice": "q"})
        ),
        [
            "a: must be string",
            "b: must be integer",
            "either: must be either number or boolean",
            "word: must be equal to one of the allowed values",
            "choice: must be number",
            "choice: must be equal to constant",
            "choice: must match a schema in anyOf",
        ]
    );
    assert_eq!(
        typebox_problems(schema, json!([])),
        ["root: must be object"]
    );
}

#[test]
fn what_null_becomes_depends_on_who_made_the_schema() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let told =
        |null_text| validate_typebox(&tool("t", schema.clone()), &json!({"a": null}), null_text);
    assert_eq!(told(NullText::Empty).unwrap(), json!({"a": ""}));
    assert_eq!(told(NullText::Word).unwrap(), json!({"a": "null"}));
}

#[test]
fn brief_errors_name_the_member_and_what_is_wrong() {
    let tool = tool(
        "read",
        json!({"type": "object", "required": ["path"],
            "properties": {"path": {"type": "string"}, "limit": {"type": "number"}}}),
    );
    let error = |arguments: Value| {
        pinion_tools::validate_with(&tool, &arguments, pinion_tools::ErrorWords::Brief).unwrap_err()
    };
    assert_eq!(
        error(json!({"file": "x"})),
        "Validation failed for tool \"read\":\n  - path: missing\n\nReceived arguments:\n{\n  \"file\": \"x\"\n}"
    );
    assert!(
        error(json!({"path": "x", "limit": "many"}))
            .contains("  - limit: expected number, got string\n")
    );
}
