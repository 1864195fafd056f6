//! Schemas as extensions build them, and values checked against them.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::{Value, json};
use support::Bench;

async fn run(body: &str) -> Value {
    let bench = Bench::new().await;
    bench.write(
        "a.ts",
        &format!(
            "import {{ Type, FormatRegistry }} from 'typebox';
             import {{ Value }} from 'typebox/value';
             import {{ Compile }} from 'typebox/compile';
             import {{ StringEnum, validateToolArguments, validateToolCall }} from '@mariozechner/pi-ai';
             export default async () => {{ {body} }};"
        ),
    );
    bench.run("a.ts").await.unwrap()
}

#[tokio::test]
async fn schemas_serialise_member_by_member() {
    for (schema, text) in [
        (
            "Type.Object({ a: Type.String({ description: 'd' }), b: Type.Optional(Type.Number()) }, { additionalProperties: false })",
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string","description":"d"},"b":{"type":"number"}},"additionalProperties":false}"#,
        ),
        ("Type.Object({})", r#"{"type":"object","properties":{}}"#),
        (
            "Type.Object({ a: Type.Optional(Type.Null()) })",
            r#"{"type":"object","properties":{"a":{"type":"null"}}}"#,
        ),
        (
            "Type.Array(Type.Integer(), { minItems: 1 })",
            r#"{"type":"array","items":{"type":"integer"},"minItems":1}"#,
        ),
        (
            "Type.Union([Type.Literal('a'), Type.Literal(1), Type.Literal(true)])",
            r#"{"anyOf":[{"type":"string","const":"a"},{"type":"number","const":1},{"type":"boolean","const":true}]}"#,
        ),
        ("Type.Enum({ A: 'a', B: 1 })", r#"{"enum":["a",1]}"#),
        (
            "Type.Record(Type.String(), Type.Number())",
            r#"{"type":"object","patternProperties":{"^.*$":{"type":"number"}}}"#,
        ),
        (
            "Type.Tuple([Type.String(), Type.Boolean()])",
            r#"{"type":"array","additionalItems":false,"items":[{"type":"string"},{"type":"boolean"}],"minItems":2}"#,
        ),
        (
            "[Type.Any(), Type.Unknown(), Type.Never()]",
            r#"[{},{},{"not":{}}]"#,
        ),
        (
            "Type.Intersect([Type.Object({ a: Type.String() }), Type.Object({ b: Type.String() })])",
            r#"{"allOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}},{"type":"object","required":["b"],"properties":{"b":{"type":"string"}}}]}"#,
        ),
        (
            "Type.Partial(Type.Object({ a: Type.String() }))",
            r#"{"type":"object","properties":{"a":{"type":"string"}}}"#,
        ),
        (
            "Type.Unsafe({ type: 'string', enum: ['x'] })",
            r#"{"type":"string","enum":["x"]}"#,
        ),
        (
            "StringEnum(['a', 'b'], { description: 'd', default: 'a' })",
            r#"{"type":"string","enum":["a","b"],"description":"d","default":"a"}"#,
        ),
        (
            "Type.Pick(Type.Object({ a: Type.String(), b: Type.Null() }), ['b'])",
            r#"{"type":"object","required":["b"],"properties":{"b":{"type":"null"}}}"#,
        ),
        (
            "Type.KeyOf(Type.Object({ a: Type.String(), b: Type.Null() }))",
            r#"{"anyOf":[{"type":"string","const":"a"},{"type":"string","const":"b"}]}"#,
        ),
        (
            "Type.TemplateLiteral('a${number}')",
            r#"{"type":"string","pattern":"^a-?(?:0|[1-9][0-9]*)(?:\\.[0-9]+)?$"}"#,
        ),
        (
            "Type.Transform(Type.String()).Decode(Number).Encode(String)",
            r#"{"type":"string"}"#,
        ),
    ] {
        assert_eq!(
            run(&format!("return JSON.stringify({schema})")).await,
            json!(text),
            "{schema}"
        );
    }
}

#[tokio::test]
async fn values_are_checked_converted_and_made() {
    let found = run("
        const schema = Type.Object({ n: Type.Integer({ minimum: 3 }), tags: Type.Optional(Type.Array(Type.String(), { default: [] })) }, { additionalProperties: false });
        const compiled = Compile(schema);
        return [
          Value.Check(schema, { n: 3 }), Value.Check(schema, { n: 2 }), Value.Convert(schema, { n: '7' }), Value.Default(schema, { n: 4 }),
          Value.Clean(schema, { n: 4, more: 1 }), Value.Create(schema), compiled.Check({ n: 5 }),
          [...Value.Errors(schema, { n: 1.5, x: 1 })].map((error) => `${error.instancePath} ${error.message}`),
          Value.Equal({ a: [1] }, { a: [1] }), Value.Check(Type.String({ format: 'email' }), 'a@b.co'), Value.Check(Type.String({ format: 'email' }), 'a@'),
        ];").await;
    assert_eq!(
        found,
        json!([
            true, false, { "n": 7 }, { "n": 4, "tags": [] }, { "n": 4 }, { "n": 3 }, true,
            ["/x schema is false", " must not have additional properties", "/n must be integer", "/n must be >= 3"],
            true, true, false
        ])
    );
}

#[tokio::test]
async fn invalid_arguments_give_a_message_for_the_model() {
    let found = run("
        const parameters = Type.Object({ path: Type.String(), depth: Type.Optional(Type.Integer({ maximum: 3 })) }, { additionalProperties: false });
        const call = (args: unknown, schema: unknown = parameters) => {
          try { return validateToolArguments({ name: 'walk', description: '', parameters: schema } as any, { type: 'toolCall', id: '1', name: 'walk', arguments: args } as any) }
          catch (error) { return (error as Error).message }
        };
        let unknown; try { validateToolCall([], { name: 'zz', arguments: {} } as any) } catch (error) { unknown = (error as Error).message }
        return [
          call({ path: 5, depth: '2' }), call({ depth: 9, more: true }),
          call({ path: null }), call({ path: null }, JSON.parse(JSON.stringify(parameters))), call({ path: 'a', depth: 1.5 }, JSON.parse(JSON.stringify(parameters))),
          unknown,
        ];").await;
    assert_eq!(
        found,
        json!([
            { "path": "5", "depth": 2 },
            "Validation failed for tool \"walk\":\n  - path: must have required properties path\n  - more: schema is false\n  - root: must not have additional properties\n  - depth: must be <= 3\n\nReceived arguments:\n{\n  \"depth\": 9,\n  \"more\": true\n}",
            { "path": "null" },
            { "path": "" },
            "Validation failed for tool \"walk\":\n  - depth: must be integer\n\nReceived arguments:\n{\n  \"path\": \"a\",\n  \"depth\": 1.5\n}",
            "Tool \"zz\" not found",
        ])
    );
}
