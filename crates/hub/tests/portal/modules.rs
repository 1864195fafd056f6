//! Single modules of the portal, in the browser.

use pinion_testkit::browser::Page;
use serde_json::{Value, json};

use crate::stage::{NOT_SIGNED_IN, Stage};

/// Calls a JavaScript function with the exports of a module and returns its result.
fn with_module(page: &Page, module: &str, function: &str) -> Value {
    page.evaluate(&format!("import('/portal/{module}').then({function})"))
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn messages_are_decoded_wherever_the_network_splits_them() {
    let stage = Stage::new();
    let page = stage.visitor();
    let all_cuts = "async ({envelope, envelopes}) => {
        const text = new TextEncoder();
        const whole = [...envelope(text.encode('{\"a\":1}')), ...envelope(text.encode('')), ...envelope(text.encode('ä'.repeat(300))), ...envelope(text.encode('{}'), 2)];
        const read = async (sizes) => {
            let at = 0;
            const body = new ReadableStream({pull(out) {
                if (at >= whole.length) return out.close();
                const size = sizes(at);
                out.enqueue(new Uint8Array(whole.slice(at, at + size)));
                at += size;
            }});
            const found = [];
            for await (const {flags, payload} of envelopes(body)) found.push([flags, new TextDecoder().decode(payload)]);
            return JSON.stringify(found);
        };
        const seen = new Set();
        for (let size = 1; size <= whole.length; size += 1) seen.add(await read(() => size));
        for (let cut = 1; cut < whole.length; cut += 1) seen.add(await read((at) => (at < cut ? cut - at : whole.length)));
        return [...seen];
    }";
    let seen = with_module(&page, "connect.js", all_cuts);
    let expected = json!([[0, "{\"a\":1}"], [0, ""], [0, "ä".repeat(300)], [2, "{}"]]);
    assert_eq!(seen.as_array().unwrap().len(), 1, "{seen}");
    assert_eq!(
        serde_json::from_str::<Value>(seen[0].as_str().unwrap()).unwrap(),
        expected
    );
    // An incomplete message produces nothing.
    let torn = "async ({envelopes}) => { const found = []; \
        for await (const one of envelopes(new Blob([new Uint8Array([0, 0, 0, 0, 9, 1])]).stream())) found.push(one); return found.length; }";
    assert_eq!(with_module(&page, "connect.js", torn), json!(0));
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}

#[test]
#[ignore = "needs Chromium: cargo xtask test --all"]
fn inputs_are_described_in_many_ways() {
    let stage = Stage::new();
    let page = stage.visitor();
    let read = |text: &str| {
        let function = format!("({{readSchema}}) => readSchema({})", json!(text));
        with_module(&page, "schema.js", &function)
    };
    for (text, kind) in [
        ("", "none"),
        ("  ", "none"),
        ("true", "none"),
        ("{ text: string }", "text"),
        ("[1]", "text"),
        ("7", "text"),
        ("{}", "schema"),
        (r#"{"type":"object"}"#, "schema"),
    ] {
        assert_eq!(read(text)["kind"], json!(kind), "{text}");
    }
    let short =
        r#"{"query":{"type":"string","required":true},"limit":{"type":"integer","default":5}}"#;
    let long = json!({"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "default": 5}}, "required": ["query"]});
    assert_eq!(read(short)["schema"], long);

    let plain = |schema: Value, root: Value| {
        let function = format!(
            "({{plainSchema, typeOf}}) => {{ const found = plainSchema({schema}, {root}); return [typeOf(found), found.description ?? null]; }}"
        );
        with_module(&page, "schema.js", &function)
    };
    let root = json!({"$defs": {"a/b": {"type": "string", "description": "inner"}, "loop": {"$ref": "#/$defs/loop"}}});
    for (schema, expected) in [
        (json!({"$ref": "#/$defs/a~1b"}), json!(["string", "inner"])),
        (
            json!({"$ref": "#/$defs/a~1b", "description": "outer"}),
            json!(["string", "outer"]),
        ),
        (json!({"$ref": "#/$defs/loop"}), json!(["json", null])),
        (
            json!({"$ref": "#/$defs/missing", "description": "x"}),
            json!(["json", "x"]),
        ),
        (json!({"$ref": "#/__proto__/x"}), json!(["json", null])),
        (json!({"$ref": "http:elsewhere"}), json!(["json", null])),
        (
            json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}),
            json!(["integer", null]),
        ),
        (
            json!({"oneOf": [{"const": 1}, {"const": "b"}]}),
            json!(["enum", null]),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "number"}]}),
            json!(["json", null]),
        ),
        (
            json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!(["object", null]),
        ),
        (json!({"type": ["string", "null"]}), json!(["string", null])),
        (
            json!({"type": "object", "additionalProperties": true}),
            json!(["json", null]),
        ),
        (json!(true), json!(["json", null])),
    ] {
        assert_eq!(plain(schema.clone(), root.clone()), expected, "{schema}");
    }
    stage.assert_clean(&page, &[NOT_SIGNED_IN]);
}
