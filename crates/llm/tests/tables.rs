//! Tables of known inputs and outputs: partial JSON, repairs, classification, costs, levels.

#![allow(
    clippy::unwrap_used,
    reason = "a table that does not read is a failed test"
)]

use pinion_llm::{is_overflow, is_retryable, parse_arguments, repair, without_lone_surrogates};
use pinion_message::{AssistantMessage, Model, ModelCost, StopReason, ThinkingLevel, Usage};
use serde_json::{Value, json};

fn rows(table: &str) -> impl Iterator<Item = Value> + '_ {
    table
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
}

macro_rules! table {
    ($name:literal) => {
        rows(include_str!(concat!("vectors/tables/", $name, ".jsonl")))
    };
}

fn text<'a>(row: &'a Value, member: &str) -> &'a str {
    row[member].as_str().unwrap()
}

/// An answer with the members that classification looks at.
fn answer(message: &Value) -> AssistantMessage {
    serde_json::from_value(json!({
        "content": [],
        "provider": message.get("provider").unwrap_or(&json!("test")),
        "usage": message.get("usage").unwrap_or(&json!({})),
        "stopReason": message["stopReason"],
        "errorMessage": message.get("errorMessage"),
    }))
    .unwrap()
}

#[test]
fn partial_arguments_are_read_as_far_as_they_go() {
    let mut seen = 0;
    for row in table!("partial-json") {
        let mut expected = row["out"].clone();
        if row.get("loneSurrogateReplaced").is_some() {
            let text = serde_json::to_string(&expected)
                .unwrap()
                .replace('\u{fffd}', "");
            expected = serde_json::from_str(&text).unwrap();
        }
        assert_eq!(parse_arguments(text(&row, "in")), expected, "{row}");
        seen += 1;
    }
    assert_eq!(seen, 220);
}

#[test]
fn raw_control_characters_and_stray_backslashes_are_repaired() {
    for row in table!("repair-json") {
        assert_eq!(repair(text(&row, "in")), text(&row, "out"), "{row}");
    }
}

#[test]
fn whole_numbers_stay_whole() {
    assert_eq!(
        parse_arguments(r#"{"timeout":30.0,"x":1e3,"y":0.5}"#).to_string(),
        r#"{"timeout":30,"x":1000,"y":0.5}"#
    );
}

#[test]
fn deep_nesting_is_cut_not_fatal() {
    let deep = "[".repeat(100_000);
    assert!(parse_arguments(&deep).is_array());
    let deep = r#"{"a":"#.repeat(100_000);
    assert!(parse_arguments(&deep).is_object());
}

#[test]
fn lone_surrogates_are_removed() {
    for row in table!("sanitize-surrogates") {
        let units = row["inUtf16"].as_array().unwrap().iter();
        let escapes: String = units
            .map(|unit| format!("\\u{:04x}", unit.as_u64().unwrap()))
            .collect();
        let json = format!("\"{escapes}\"");
        let cleaned: String = serde_json::from_str(&without_lone_surrogates(&json)).unwrap();
        assert_eq!(cleaned, text(&row, "out"), "{row}");
    }
    let untouched = r#""\\ud83d \n \u00e9 \ud83d\ude00 \\""#;
    assert_eq!(without_lone_surrogates(untouched), untouched);
}

#[test]
fn failures_worth_a_retry() {
    for row in table!("retryable") {
        let message = answer(&json!({"stopReason": "error", "errorMessage": row["errorMessage"]}));
        // The newer column does not look for overflows; the older one does, and so does pinion.
        let expected = if is_overflow(&message, 0) {
            "retryable"
        } else {
            "retryable_0_87_1"
        };
        assert_eq!(
            is_retryable(&message),
            row[expected].as_bool().unwrap(),
            "{row}"
        );
    }
}

#[test]
fn only_errors_are_retried() {
    for (reason, expected) in [("error", true), ("aborted", false), ("stop", false)] {
        let message = answer(&json!({"stopReason": reason, "errorMessage": "terminated"}));
        assert_eq!(is_retryable(&message), expected, "{reason}");
    }
    assert!(!is_retryable(&answer(&json!({"stopReason": "error"}))));
}

#[test]
fn a_limit_with_a_named_delay_is_retried() {
    let body = include_str!("vectors/google-generative-ai/07-http-429.body");
    assert!(is_retryable(&answer(
        &json!({"stopReason": "error", "errorMessage": body})
    )));
}

#[test]
fn prompts_that_do_not_fit() {
    for row in table!("overflow") {
        let message = answer(&row["message"]);
        let window = row["contextWindow"].as_u64().unwrap();
        // A bare 413 means "too large" in every version but one.
        let is_413 = message
            .error_message
            .as_deref()
            .unwrap_or_default()
            .starts_with("413");
        let expected = if is_413 {
            "overflow"
        } else {
            "overflow_0_87_1"
        };
        assert_eq!(
            is_overflow(&message, window),
            row[expected].as_bool().unwrap(),
            "{row}"
        );
    }
}

#[test]
fn an_empty_body_of_cerebras_is_an_overflow() {
    let message = |provider: &str| {
        answer(&json!({"stopReason": "error", "provider": provider,
            "errorMessage": "400 status code (no body)"}))
    };
    assert!(is_overflow(&message("cerebras"), 1000));
    assert!(!is_overflow(&message("local"), 1000));
}

#[test]
fn costs_agree_to_the_last_bit() {
    for row in table!("cost") {
        let rates: ModelCost = serde_json::from_value(row["cost"].clone()).unwrap();
        let mut usage: Usage = serde_json::from_value(row["usage"].clone()).unwrap();
        usage.price(&rates);
        assert_eq!(
            usage.without_details().cost,
            serde_json::from_value(row["out"].clone()).unwrap(),
            "{row}"
        );
    }
}

#[test]
fn levels_are_clamped_upward_first() {
    for row in table!("clamp-thinking") {
        let model: Model = serde_json::from_value(json!({
            "id": "m", "name": "m", "api": "a", "provider": "p", "baseUrl": "", "input": [],
            "cost": {}, "contextWindow": 1, "maxTokens": 1,
            "reasoning": row["reasoning"], "thinkingLevelMap": row["thinkingLevelMap"],
        }))
        .unwrap();
        let level: ThinkingLevel = serde_json::from_value(row["level"].clone()).unwrap();
        assert_eq!(json!(model.clamp_thinking(level)), row["out"], "{row}");
    }
    assert_eq!(StopReason::ToolUse.as_str(), "toolUse");
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_fail(text in "[\\PC\n\t\\\\\"{}\\[\\]:,0-9a-z.eE+-]{0,60}") {
        let _ = parse_arguments(&text);
        let _ = repair(&text);
    }

    #[test]
    fn every_beginning_of_an_object_reads_as_an_object(
        members in proptest::collection::btree_map("[a-z]{1,4}", "[\\PC\n\\\\\"😀]{0,12}", 0..4),
    ) {
        let whole = serde_json::to_string(&members).unwrap();
        for (end, _) in whole.char_indices().skip(1) {
            let read = parse_arguments(&whole[..end]);
            proptest::prop_assert!(read.is_object(), "{} gave {read}", &whole[..end]);
        }
        proptest::prop_assert_eq!(parse_arguments(&whole), json!(members));
        proptest::prop_assert_eq!(repair(&whole), whole.as_str());
    }
}
