//! A turn: everything a model is told, as a list of blocks.

use serde_json::Value;

/// A JSON object. Its order carries no meaning; writers sort.
pub type Map = serde_json::Map<String, Value>;

/// The model's context at one moment, and what came of it.
///
/// A conversation keeps one turn id: each prompt works on a copy of the turn before, with more blocks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    /// A UUID, the same for the whole conversation.
    pub id: String,
    /// What was said, in order.
    pub blocks: Vec<Block>,
    /// Facts about the run, keyed `namespace.name@vN`.
    pub metadata: Map,
    /// Settings of the run, keyed `namespace.name@vN`.
    pub data: Map,
}

impl Turn {
    /// Metadata: the session the turn belongs to.
    pub const SESSION_ID: &'static str = "geppetto.session_id@v1";
    /// Metadata: the run that wrote the turn last.
    pub const INFERENCE_ID: &'static str = "geppetto.inference_id@v1";
    /// Metadata of turns and blocks: provider, model, why the answer ended, what it cost.
    pub const INFERENCE_RESULT: &'static str = "geppetto.inference_result@v1";
    /// Metadata: what ran the turn.
    pub const RUNTIME: &'static str = "geppetto.runtime@v1";

    /// A member of the metadata that is text.
    pub fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_str()
    }

    /// The runtime key to store when none was given.
    pub(crate) fn runtime_key(&self) -> &str {
        let runtime = self.metadata.get(Self::RUNTIME);
        let key = runtime.and_then(|runtime| runtime.get("runtime_key")?.as_str());
        key.unwrap_or_default().trim()
    }

    /// The inference id to store when none was given.
    pub(crate) fn inference_id(&self) -> &str {
        [Self::INFERENCE_ID, "inference_id"]
            .into_iter()
            .filter_map(|key| self.metadata_text(key))
            .map(str::trim)
            .find(|id| !id.is_empty())
            .unwrap_or_default()
    }
}

/// One thing that was said, called or returned.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Block {
    /// A UUID; of a tool call, the id of the call.
    pub id: String,
    /// What it is.
    pub kind: BlockKind,
    /// `user`, `assistant`, `system` or nothing.
    pub role: String,
    /// What it says; the members depend on the kind.
    pub payload: Map,
    /// Facts about it, keyed `namespace.name@vN`.
    pub metadata: Map,
}

impl Block {
    /// A block whose payload is a text.
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

    /// A member of the payload that is text.
    pub fn payload_text(&self, key: &str) -> Option<&str> {
        self.payload.get(key)?.as_str()
    }
}

/// What a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BlockKind {
    /// Said by the user: `text`, `images`.
    User,
    /// Said by the model: `text`.
    LlmText,
    /// Asked for by the model: `id`, `name`, `args`.
    ToolCall,
    /// What a tool returned: `id`, `result`, `error`.
    ToolUse,
    /// The system prompt: `text`.
    System,
    /// Thinking: `text`, `encrypted_content`, `summary`, `item_id`, `signature`.
    Reasoning,
    /// Anything else, unknown names included.
    #[default]
    Other,
}

impl BlockKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::LlmText,
        Self::ToolCall,
        Self::ToolUse,
        Self::System,
        Self::Reasoning,
        Self::Other,
    ];

    /// The name in files and databases.
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

    /// The kind of a name in any case; unknown and empty names are [`BlockKind::Other`].
    pub fn from_name(name: &str) -> Self {
        let name = name.trim();
        let same = |kind: &Self| kind.name().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(same).unwrap_or_default()
    }

    /// The role a block of this kind has when it is made.
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
