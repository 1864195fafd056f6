//! Turns `models.jsonl` into static tables, so that a running program neither parses nor allocates
//! the catalogue.
//!
//! All texts go into one string without duplicates and rows hold offsets into it. Rows are then
//! plain numbers: the linker has nothing to relocate at start and pages are read only when used.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    clippy::panic,
    reason = "cargo reads stdout, and a broken table must stop the build"
)]

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use serde_json::Value;

/// Every text of the catalogue, each once.
#[derive(Default)]
struct Texts {
    all: String,
    known: HashMap<String, (usize, usize)>,
}

impl Texts {
    /// The Rust expression of a span that holds `text`.
    fn span(&mut self, text: &str) -> String {
        let (start, length) = *self.known.entry(text.to_owned()).or_insert_with(|| {
            let start = self.all.len();
            self.all.push_str(text);
            (start, text.len())
        });
        assert!(length <= usize::from(u16::MAX), "text too long: {text}");
        format!("Span({start},{length})")
    }
}

fn text<'a>(model: &'a Value, member: &str) -> &'a str {
    model[member]
        .as_str()
        .unwrap_or_else(|| panic!("{member} is not a text: {model}"))
}

fn integer(value: &Value, member: &str) -> u64 {
    value[member]
        .as_u64()
        .unwrap_or_else(|| panic!("{member} is not a whole number: {value}"))
}

/// JSON text of an optional object; empty when absent.
fn object(model: &Value, member: &str) -> String {
    model.get(member).map(Value::to_string).unwrap_or_default()
}

fn rates(cost: &Value) -> String {
    ["input", "output", "cacheRead", "cacheWrite"]
        .map(|member| format!("{:?}", cost[member].as_f64().unwrap_or_default()))
        .join(",")
}

fn main() {
    println!("cargo::rerun-if-changed=models.jsonl");
    println!("cargo::rerun-if-changed=build.rs");
    let source = fs::read_to_string("models.jsonl").expect("models.jsonl is readable");

    let mut texts = Texts::default();
    let mut providers: Vec<(String, usize, usize)> = Vec::new();
    let (mut rows, mut tiers) = (String::new(), String::new());
    let (mut row_count, mut tier_count) = (0, 0);
    for line in source.lines() {
        let model: Value = serde_json::from_str(line).expect("every line is a JSON object");
        let provider = text(&model, "provider");
        match providers.last_mut() {
            Some((name, _, end)) if name == provider => *end += 1,
            _ => providers.push((provider.to_owned(), row_count, row_count + 1)),
        }
        let first_tier = tier_count;
        for tier in model["cost"]["tiers"].as_array().into_iter().flatten() {
            let above = integer(tier, "inputTokensAbove");
            let _ = writeln!(tiers, "Tier({above},{}),", rates(tier));
            tier_count += 1;
        }
        let images = model["input"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|k| k == "image"));
        let _ = writeln!(
            rows,
            "Row({},{},{},{},{},{images},{},[{}],{first_tier},{tier_count},{},{},{},{}),",
            texts.span(text(&model, "id")),
            texts.span(text(&model, "name")),
            texts.span(text(&model, "api")),
            texts.span(text(&model, "baseUrl")),
            model["reasoning"] == true,
            texts.span(&object(&model, "thinkingLevelMap")),
            rates(&model["cost"]),
            integer(&model, "contextWindow"),
            integer(&model, "maxTokens"),
            texts.span(&object(&model, "headers")),
            texts.span(&object(&model, "compat")),
        );
        row_count += 1;
    }

    let mut code = String::from("static TEXTS: &str = include_str!(\"catalog.txt\");\n");
    let _ = writeln!(code, "static TIERS: [Tier; {tier_count}] = [\n{tiers}];");
    let _ = writeln!(code, "static ROWS: [Row; {row_count}] = [\n{rows}];");
    let _ = writeln!(
        code,
        "static PROVIDERS: [ProviderRows; {}] = [",
        providers.len()
    );
    for (name, first, end) in &providers {
        let _ = writeln!(code, "ProviderRows({},{first},{end}),", texts.span(name));
    }
    code.push_str("];\n");

    let directory = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let directory = Path::new(&directory);
    fs::write(directory.join("catalog.txt"), &texts.all).expect("OUT_DIR is writable");
    fs::write(directory.join("catalog.rs"), code).expect("OUT_DIR is writable");
}
