use std::sync::Arc;

use pinion_message::{Message, StopReason};
use serde_json::{Value, json};

use super::*;

fn message(value: Value) -> Arc<Message> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn image() -> MessageBlock {
    MessageBlock::Image {
        data: "AQI=".into(),
        mime_type: "image/png".into(),
    }
}

fn seed() -> Turn {
    seed_turn(&Seed {
        system_prompt: "Be brief.",
        messages: &["first".to_owned()],
        prompt: "look",
        images: &[image()],
    })
}

#[test]
fn a_command_says_its_prompt_with_its_images_and_again() {
    let turn = seed();
    let kinds: Vec<&str> = turn.blocks.iter().map(|it| it.kind.name()).collect();
    assert_eq!(kinds, ["system", "user", "user", "user"]);
    assert_eq!(
        turn.blocks[2].payload["images"][0]["media_type"],
        "image/png"
    );
    assert_eq!(displayed_prompt(&turn), "look");
    let empty = seed_turn(&Seed {
        system_prompt: " ",
        prompt: "\n",
        ..Seed::default()
    });
    assert!(empty.blocks.is_empty());
    assert_eq!(displayed_prompt(&empty), "(input turn)");
}

#[test]
fn the_last_words_of_the_user_are_the_prompt() {
    let context = context(&seed());
    assert_eq!(context.system_prompt.as_deref(), Some("Be brief."));
    assert_eq!(context.prompt, Some(vec![MessageBlock::text("look")]));
    assert_eq!(context.history.len(), 2);
    let Message::User(user) = &context.history[1] else {
        panic!("{:?}", context.history);
    };
    let expected = vec![MessageBlock::text("look"), image()];
    assert_eq!(user.content, pinion_message::Content::Blocks(expected));
}

fn answer(content: Value, stop: &str) -> Value {
    json!({"role":"assistant","content":content,"api":"anthropic-messages","provider":"anthropic",
        "model":"m","usage":{"input":3,"output":4},"stopReason":stop,"responseId":"msg_1"})
}

fn produced() -> Vec<Arc<Message>> {
    vec![
        message(json!({"role":"user","content":"look"})),
        message(answer(
            json!([{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},
                {"type":"text","text":"I look."},
                {"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}},
                {"type":"toolCall","id":"c2","name":"ls","arguments":{}}]),
            "toolUse",
        )),
        message(
            json!({"role":"toolResult","toolCallId":"c1","toolName":"read",
            "content":[{"type":"text","text":"{\"a\":1}"},
                {"type":"image","data":"AQI=","mimeType":"image/png"}]}),
        ),
        message(
            json!({"role":"toolResult","toolCallId":"c2","toolName":"ls","isError":true,
            "content":[{"type":"text","text":"no such place"}]}),
        ),
        message(answer(json!([{"type":"text","text":"Done."}]), "stop")),
    ]
}

#[test]
fn what_a_run_produced_is_told_to_the_next_one() {
    let base = seed();
    let messages = produced();
    let turn = final_turn(
        &base,
        &Produced {
            session_id: "s",
            inference_id: "i",
            messages: &messages,
        },
    );
    assert_eq!(turn.id, base.id);
    assert_eq!(turn.blocks[..4], base.blocks[..]);
    let kinds: Vec<&str> = turn.blocks[4..].iter().map(|it| it.kind.name()).collect();
    assert_eq!(
        kinds,
        [
            "reasoning",
            "llm_text",
            "tool_call",
            "tool_call",
            "tool_use",
            "tool_use",
            "llm_text"
        ]
    );
    assert_eq!(turn.blocks[6].id, "c1");
    assert_eq!(turn.blocks[6].payload["args"], json!({"path":"a"}));
    assert_eq!(turn.blocks[9].payload["error"], "no such place");
    assert_eq!(turn.blocks[9].payload["result"], Value::Null);
    let result = &turn.metadata[Turn::INFERENCE_RESULT];
    assert_eq!(result["finish_class"], "completed");
    assert_eq!(result["stop_reason"], "end_turn");
    assert_eq!(result["usage"], json!({"input_tokens":3,"output_tokens":4}));
    assert_eq!(turn.metadata_text(Turn::SESSION_ID), Some("s"));
    let stamped = |at: usize| {
        turn.blocks[at]
            .metadata
            .contains_key(Turn::INFERENCE_RESULT)
    };
    assert_eq!(
        [4, 5, 6, 8, 10].map(stamped),
        [false, true, true, false, true]
    );

    // Through YAML, as in a database.
    let turn = Turn::from_yaml(&turn.to_yaml()).unwrap();
    let context = context(&with_prompt(&turn, "and now?"));
    assert_eq!(context.prompt, Some(vec![MessageBlock::text("and now?")]));
    let said = &context.history[3..];
    for (said, produced) in said.iter().zip(&messages[1..]) {
        match (said, &**produced) {
            (Message::Assistant(said), Message::Assistant(produced)) => {
                assert_eq!(said.content, produced.content);
                assert_eq!(said.provider, produced.provider);
                assert_eq!(said.api, produced.api);
                assert_eq!(said.stop_reason, produced.stop_reason);
            }
            (Message::ToolResult(said), Message::ToolResult(produced)) => {
                assert_eq!(said.content, produced.content);
                assert_eq!(said.tool_name, produced.tool_name);
                assert_eq!(said.is_error, produced.is_error);
            }
            (said, produced) => panic!("{said:?} is not {produced:?}"),
        }
    }
    assert_eq!(said.len(), messages.len() - 1);
}

#[test]
fn a_failed_attempt_is_forgotten_and_a_failed_end_kept() {
    let base = seed();
    let failed = message(answer(json!([{"type":"text","text":"half"}]), "error"));
    let whole = message(answer(json!([{"type":"text","text":"whole"}]), "stop"));
    let texts = |messages: &[Arc<Message>]| -> Vec<String> {
        let produced = Produced {
            session_id: "s",
            inference_id: "i",
            messages,
        };
        let turn = final_turn(&base, &produced);
        let new = turn.blocks[base.blocks.len()..].iter();
        new.map(|it| it.payload_text("text").unwrap().to_owned())
            .collect()
    };
    assert_eq!(texts(&[Arc::clone(&failed), whole]), ["whole"]);
    assert_eq!(texts(&[failed]), ["half"]);
}

#[test]
fn turns_of_other_programs_are_read() {
    let turn = Turn::from_yaml(
        "id: t\nblocks:\n  - kind: user\n    payload:\n      text: see\n      images:\n        - media_type: image/png\n          content: [1, 2]\n        - url: https://example.invalid/a.png\n  - kind: reasoning\n    payload:\n      encrypted_content: xyz\n      item_id: rs_1\n  - kind: tool_call\n    payload:\n      id: c\n      name: f\n      args: '{\"a\":1}'\n  - kind: tool_use\n    payload:\n      id: c\n      result: {b: 2}\n  - kind: widget\n",
    )
    .unwrap();
    let context = context(&turn);
    assert_eq!(context.prompt, None);
    let Message::User(user) = &context.history[0] else {
        panic!("{context:?}")
    };
    let expected = vec![
        MessageBlock::text("see"),
        image(),
        MessageBlock::text("[image https://example.invalid/a.png]"),
    ];
    assert_eq!(user.content, pinion_message::Content::Blocks(expected));
    let answer = context.history[1].as_assistant().unwrap();
    assert_eq!(answer.stop_reason, StopReason::ToolUse);
    let MessageBlock::Thinking(thought) = &answer.content[0] else {
        panic!("{answer:?}")
    };
    let item: Value = serde_json::from_str(thought.thinking_signature.as_ref().unwrap()).unwrap();
    assert_eq!(item["encrypted_content"], "xyz");
    let Message::ToolResult(result) = &context.history[2] else {
        panic!("{context:?}")
    };
    assert_eq!(result.tool_name, "f");
    assert_eq!(result.content, [MessageBlock::text("{\"b\":2}")]);
}
