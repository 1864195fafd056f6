//! A comparison with the output of Go's own `text/template` (1.19).
//!
//! Each line of `go.jsonl` has the template, its output, and whether Go failed. Some were written
//! by hand; most are random sequences of the language's words.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use pinion_templates::{RenderContext, Template, Value};

fn data() -> Value {
    let mut json: serde_json::Value = serde_json::from_str(
        r#"{"name":"Ada","n":3,"f":2.5,"list":["a","b","c"],"nums":[1,2,3],
            "map":{"x":1,"y":"two","z":null},"nested":{"deep":{"k":"v"}},"empty":"","yes":true,"no":false,"nil":null,
            "files":[{"Path":"a.go","Content":"package a"},{"Path":"b.go","Content":"package b"}]}"#,
    )
    .unwrap();
    json["big"] = serde_json::json!(1e21);
    Value::from_json(&json)
}

#[test]
fn templates_print_what_go_prints() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("go.jsonl").lines() {
        let [text, output, error]: [String; 3] = serde_json::from_str(line).unwrap();
        count += 1;
        let rendered = Template::parse("t", text.clone())
            .and_then(|template| template.render(&data(), &RenderContext::default()));
        match rendered {
            Ok(printed) if error.is_empty() && printed == output => {}
            Err(_) if !error.is_empty() => {}
            other => wrong.push(format!(
                "{text:?}\n  Go: {output:?} {error:?}\n  we: {other:?}"
            )),
        }
    }
    assert!(count > 400, "only {count} templates");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
