//! Turns as YAML: the form for people and for exchange with other programs.

mod emit;

use serde_json::Value;

use crate::{Block, BlockKind, HistoryError, Map, Turn};

/// Prints a value as a YAML document in the form of turns.
pub fn to_yaml(value: &Value) -> String {
    emit::document(value)
}

impl Turn {
    /// Parses a turn. Unknown members are ignored; a missing part is an empty part.
    pub fn from_yaml(text: &str) -> Result<Self, HistoryError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let value: Value = serde_saphyr::from_str(text)
            .map_err(|error| HistoryError::Turn(first_line(&error.to_string())))?;
        Self::from_value(&value)
    }

    /// Converts a turn from the JSON form of the same document.
    pub fn from_value(value: &Value) -> Result<Self, HistoryError> {
        let Value::Object(members) = value else {
            return Err(wrong("the document", "a map", value));
        };
        let blocks = match members.get("blocks") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(blocks)) => blocks.iter().map(block).collect::<Result<_, _>>()?,
            Some(other) => return Err(wrong("blocks", "a list", other)),
        };
        Ok(Self {
            id: text(members, "id")?,
            blocks,
            metadata: map(members, "metadata")?,
            data: map(members, "data")?,
        })
    }

    /// Prints the turn as YAML: members in a fixed order, sorted keys, and no empty parts except
    /// the list of blocks.
    pub fn to_yaml(&self) -> String {
        emit::document(&self.to_value())
    }

    /// Converts the turn to one JSON object with the members of [`Turn::to_yaml`].
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        put_text(&mut members, "id", &self.id);
        let blocks = self.blocks.iter().map(Block::to_value).collect();
        members.insert("blocks".to_owned(), Value::Array(blocks));
        put_map(&mut members, "metadata", &self.metadata);
        put_map(&mut members, "data", &self.data);
        Value::Object(members)
    }
}

impl Block {
    /// Converts the block to one JSON object, without its empty parts.
    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        put_text(&mut members, "id", &self.id);
        put_text(&mut members, "kind", self.kind.name());
        put_text(&mut members, "role", &self.role);
        put_map(&mut members, "payload", &self.payload);
        put_map(&mut members, "metadata", &self.metadata);
        Value::Object(members)
    }
}

fn put_text(members: &mut Map, key: &str, text: &str) {
    if !text.is_empty() {
        members.insert(key.to_owned(), Value::String(text.to_owned()));
    }
}

fn put_map(members: &mut Map, key: &str, map: &Map) {
    if !map.is_empty() {
        members.insert(key.to_owned(), sorted(map));
    }
}

/// Sorts keys by bytes, at every depth.
fn sorted(map: &Map) -> Value {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort_unstable();
    let member = |key: &String| (key.clone(), sorted_value(&map[key]));
    Value::Object(keys.into_iter().map(member).collect())
}

fn sorted_value(value: &Value) -> Value {
    match value {
        Value::Object(map) => sorted(map),
        Value::Array(items) => items.iter().map(sorted_value).collect(),
        other => other.clone(),
    }
}

fn block(value: &Value) -> Result<Block, HistoryError> {
    let Value::Object(members) = value else {
        return Err(wrong("a block", "a map", value));
    };
    let kind = BlockKind::from_name(&text(members, "kind")?);
    let mut role = text(members, "role")?;
    if role.is_empty() && kind == BlockKind::LlmText {
        kind.usual_role().clone_into(&mut role);
    }
    Ok(Block {
        id: text(members, "id")?,
        kind,
        role,
        payload: map(members, "payload")?,
        metadata: map(members, "metadata")?,
    })
}

/// Returns text; a value that YAML parses as a number is converted to text.
fn text(members: &Map, key: &'static str) -> Result<String, HistoryError> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(value.to_string()),
        Some(other) => Err(wrong(key, "text", other)),
    }
}

fn map(members: &Map, key: &'static str) -> Result<Map, HistoryError> {
    match members.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(other) => Err(wrong(key, "a map", other)),
    }
}

fn wrong(what: &str, wanted: &str, found: &Value) -> HistoryError {
    let found = match found {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    };
    HistoryError::Turn(format!("{what} should be {wanted} and is {found}"))
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    const EXAMPLE: &str = include_str!("../tests/data/turn.yaml");

    #[test]
    fn a_turn_is_written_as_it_was_read() {
        let turn = Turn::from_yaml(EXAMPLE).unwrap();
        assert_eq!(turn.blocks.len(), 5);
        assert_eq!(turn.blocks[2].kind, BlockKind::ToolCall);
        assert_eq!(
            turn.blocks[3].payload_text("result"),
            Some("{\"celsius\":-3}")
        );
        assert_eq!(turn.metadata_text(Turn::SESSION_ID), Some("project-notes"));
        assert_eq!(turn.to_yaml(), EXAMPLE);
    }

    #[test]
    fn reading_is_lenient() {
        let turn = Turn::from_yaml(
            "surprise: 1\nid: 42\nblocks:\n- kind: LLM_TEXT\n  payload:\n    text: hi\n- kind: hologram\n  role:\n",
        )
        .unwrap();
        assert_eq!(turn.id, "42");
        assert_eq!(turn.blocks[0].kind, BlockKind::LlmText);
        assert_eq!(turn.blocks[0].role, "assistant");
        assert_eq!(turn.blocks[1].kind, BlockKind::Other);
        assert_eq!(turn.blocks[1].role, "");
        assert_eq!(Turn::from_yaml("  \n").unwrap(), Turn::default());
        assert_eq!(Turn::from_yaml("blocks:\n").unwrap(), Turn::default());
    }

    #[test]
    fn what_is_no_turn_says_why() {
        for (text, said) in [
            (
                "- a\n",
                "not a turn: the document should be a map and is a list",
            ),
            (
                "blocks: 3\n",
                "not a turn: blocks should be a list and is a number",
            ),
            (
                "blocks: [3]\n",
                "not a turn: a block should be a map and is a number",
            ),
            (
                "metadata: x\n",
                "not a turn: metadata should be a map and is text",
            ),
        ] {
            assert_eq!(Turn::from_yaml(text).unwrap_err().to_string(), said);
        }
        assert_eq!(Turn::from_yaml("a: [").unwrap_err().code(), "history_turn");
    }

    #[test]
    fn an_empty_turn_still_has_its_list() {
        assert_eq!(Turn::default().to_yaml(), "blocks: []\n");
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (-1e9..1e9f64).prop_map(Value::from),
            any_text().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((any_text(), inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    fn any_text() -> impl Strategy<Value = String> {
        prop_oneof![
            "[ -~\n\t]{0,24}",
            "\\PC{0,12}",
            any::<String>(),
            r"[-0-9.:_eE+xob]{0,8}",
            prop::sample::select(vec![
                "true",
                "Yes",
                "off",
                "null",
                "~",
                "",
                "- a",
                "a: b",
                "#x",
                "a #b",
                "1e3",
                "0x1f",
                "0o7",
                ".inf",
                ".nan",
                "=",
                "<<",
                "2001-01-01",
                "|",
                " lead",
                "trail ",
                "\n",
                "\n\na",
                "a\n",
                "a\n\n",
                " a\nb",
                "a\n b",
                "a \nb",
                "---",
                "...",
                "é\u{85}\u{2028}",
                "\u{feff}x",
                "1_000",
                "190:20:30",
                "!tag",
                "*a",
                "&a",
                "%a",
                "@a",
                "`a",
                "?",
                "? a",
                "{}",
                "[]",
                "'",
                "\"",
            ])
            .prop_map(str::to_owned),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn every_turn_survives_yaml(payload in any_value(), text in any_text(), role in any_text()) {
            let mut members = Map::new();
            members.insert("text".to_owned(), Value::String(text.clone()));
            members.insert("extra".to_owned(), payload.clone());
            let turn = Turn {
                id: text,
                blocks: vec![Block {
                    id: "b".to_owned(),
                    kind: BlockKind::User,
                    role,
                    payload: members.clone(),
                    metadata: Map::new(),
                }],
                metadata: members,
                data: Map::new(),
            };
            let yaml = turn.to_yaml();
            let read = Turn::from_yaml(&yaml).map_err(|error| TestCaseError::fail(format!("{error}\n{yaml}")))?;
            prop_assert_eq!(read.to_value(), turn.to_value(), "{}", yaml);
        }

        #[test]
        fn reading_never_panics(text in "\\PC{0,64}") {
            let _ = Turn::from_yaml(&text);
        }
    }

    #[test]
    fn keys_come_out_sorted() {
        let data = json!({ "b": { "d": 1, "c": 2 }, "a": [] });
        let turn = Turn {
            data: data.as_object().cloned().unwrap(),
            ..Turn::default()
        };
        assert_eq!(
            turn.to_yaml(),
            "blocks: []\ndata:\n    a: []\n    b:\n        c: 2\n        d: 1\n"
        );
    }
}
