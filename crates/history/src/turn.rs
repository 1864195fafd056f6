//! A turn: the complete context of a model, as a list of blocks.

use serde_json::Value;

/// A JSON object. Its order has no meaning; writers sort.
pub type Map = serde_json::Map<String, Value>;

/// The model's context at one moment, and the answer.
///
/// A conversation has one turn id: each prompt works on a copy of the previous turn, with more
/// blocks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// A UUID, the same for the whole conversation.
    pub id: String,
    /// The blocks, in order.
    pub blocks: Vec<Block>,
    /// Facts about the run, keyed `namespace.name@vN`.
    pub metadata: Map,
    /// Settings of the run, keyed `namespace.name@vN`.
    pub data: Map,
}

impl Turn {
    /// Metadata: the session of the turn.
    pub const SESSION_ID: &'static str = "geppetto.session_id@v1";
    /// Metadata: the run that wrote the turn last.
    pub const INFERENCE_ID: &'static str = "geppetto.inference_id@v1";
    /// Metadata of turns and blocks: provider, model, stop reason, cost.
    pub const INFERENCE_RESULT: &'static str = "geppetto.inference_result@v1";
    /// Metadata: the runtime of the turn.
    pub const RUNTIME: &'static str = "geppetto.runtime@v1";

    /// Returns a text member of the metadata.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_str()
    }

    /// Returns the runtime key to store if the caller gives none.
    pub(crate) fn runtime_key(&self) -> &str {
        let runtime = self.metadata.get(Self::RUNTIME);
        let key = runtime.and_then(|runtime| runtime.get("runtime_key")?.as_str());
        key.unwrap_or_default().trim()
    }

    /// Returns the inference id to store if the caller gives none.
    pub(crate) fn inference_id(&self) -> &str {
        [Self::INFERENCE_ID, "inference_id"]
            .into_iter()
            .filter_map(|key| self.metadata_text(key))
            .map(str::trim)
            .find(|id| !id.is_empty())
            .unwrap_or_default()
    }
}

/// One message, tool call or result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// A UUID; for a tool call, the id of the call.
    pub id: String,
    pub kind: BlockKind,
    /// `user`, `assistant`, `system` or empty.
    pub role: String,
    /// The content; its members depend on the kind.
    pub payload: Map,
    /// Facts about the block, keyed `namespace.name@vN`.
    pub metadata: Map,
}

impl Block {
    /// Creates a block with a text payload.
    pub fn text(id: impl Into<String>, kind: BlockKind, text: impl Into<String>) -> Self {
        let mut payload = Map::new();
        payload.insert("text".to_owned(), Value::String(text.into()));
        Self {
            id: id.into(),
            kind,
            role: kind.usual_role().to_owned(),
            payload,
            metadata: Map::new(),
        }
    }

    /// Returns a text member of the payload.
    pub fn payload_text(&self, key: &str) -> Option<&str> {
        self.payload.get(key)?.as_str()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlockKind {
    /// A message of the user: `text`, `images`.
    User,
    /// An answer of the model: `text`.
    LlmText,
    /// A tool call of the model: `id`, `name`, `args`.
    ToolCall,
    /// The result of a tool: `id`, `result`, `error`.
    ToolUse,
    /// The system prompt: `text`.
    System,
    /// Thinking: `text`, `encrypted_content`, `summary`, `item_id`, `signature`.
    Reasoning,
    /// Any other kind, also unknown names.
    #[default]
    Other,
}

impl BlockKind {
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::LlmText,
        Self::ToolCall,
        Self::ToolUse,
        Self::System,
        Self::Reasoning,
        Self::Other,
    ];

    /// Returns the name in files and databases.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::LlmText => "llm_text",
            Self::ToolCall => "tool_call",
            Self::ToolUse => "tool_use",
            Self::System => "system",
            Self::Reasoning => "reasoning",
            Self::Other => "other",
        }
    }

    /// Parses a name in any case; unknown and empty names are [`BlockKind::Other`].
    pub fn from_name(name: &str) -> Self {
        let name = name.trim();
        let same = |kind: &Self| kind.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(same).unwrap_or_default()
    }

    /// Returns the role of a new block of this kind.
    pub fn usual_role(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::LlmText => "assistant",
            Self::System => "system",
            Self::ToolCall | Self::ToolUse | Self::Reasoning | Self::Other => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_read_in_any_case_and_unknown_ones_are_other() {
        for kind in BlockKind::ALL {
            assert_eq!(BlockKind::from_name(kind.name()), kind);
            assert_eq!(BlockKind::from_name(&kind.name().to_uppercase()), kind);
        }
        assert_eq!(BlockKind::from_name(" Tool_Use "), BlockKind::ToolUse);
        assert_eq!(BlockKind::from_name("widget"), BlockKind::Other);
        assert_eq!(BlockKind::from_name(""), BlockKind::Other);
    }

    #[test]
    fn keys_of_the_run_come_from_the_metadata() {
        let turn = |metadata: Value| Turn {
            metadata: metadata.as_object().cloned().unwrap_or_default(),
            ..Turn::default()
        };
        let runtime = turn(json!({ "geppetto.runtime@v1": { "runtime_key": " fast " } }));
        assert_eq!(runtime.runtime_key(), "fast");
        assert_eq!(
            turn(json!({ "geppetto.runtime@v1": "fast" })).runtime_key(),
            ""
        );
        let both = turn(json!({ "inference_id": "b", "geppetto.inference_id@v1": "a" }));
        assert_eq!(both.inference_id(), "a");
        let second = turn(json!({ "inference_id": "b", "geppetto.inference_id@v1": "" }));
        assert_eq!(second.inference_id(), "b");
    }
}
