//! Backend events: the events of a chat as messages of the protocol.

use std::sync::Arc;

use crate::message::{self, Undecodable};
use crate::patch::{Patch, PatchKind, PatchMode, PatchStream, SegmentFacts, append_number};
use crate::pb;

const TYPE_URL: &str = "type.googleapis.com/";
const CHAT: &str = "pinocchio.chatapp.v1.";
const FRONTEND_TOOLS: &str = "pinocchio.chatapp.frontendtools.v1.";
const WIDGETS: &str = "pinocchio.chatapp.widgets.v1.";

/// Lists the events with their packages and messages.
macro_rules! chat_events {
    ($($variant:ident, $name:literal, $package:ident, $message:ident;)*) => {
        /// An event of a chat. UI events have the same names and payloads, one to one.
        #[derive(Debug, Clone)]
        #[allow(missing_docs, reason = "the names are those of the protocol")]
        pub enum ChatEvent {
            Patch(Patch),
            $($variant(pb::$message),)*
        }

        impl ChatEvent {
            pub fn name(&self) -> &'static str {
                match self {
                    Self::Patch(patch) => patch.stream.kind.name(),
                    $(Self::$variant(_) => $name,)*
                }
            }

            /// Returns the package and the name of the payload's message.
            fn message_name(&self) -> (&'static str, &'static str) {
                match self {
                    Self::Patch(patch) => (CHAT, patch.stream.kind.name()),
                    $(Self::$variant(_) => ($package, stringify!($message)),)*
                }
            }

            /// Appends the payload as protobuf JSON, without `@type`.
            pub fn append_payload(&self, out: &mut Vec<u8>) {
                match self {
                    Self::Patch(patch) => append_patch(patch, out),
                    $(Self::$variant(message) => message::append(out, message),)*
                }
            }

            /// Parses a payload.
            pub fn decode(name: &str, payload: &str) -> Result<Self, Undecodable> {
                Ok(match name {
                    "ChatTextPatch" => text_patch(message::decode(payload)?),
                    "ChatReasoningPatch" => thinking_patch(message::decode(payload)?),
                    "ChatToolArgumentsPatch" => arguments_patch(message::decode(payload)?),
                    $($name => Self::$variant(message::decode(payload)?),)*
                    _ => return Err(Undecodable(format!("unknown event \"{name}\""))),
                })
            }
        }

        #[cfg(test)]
        pub(crate) const EVENT_NAMES: &[&str] = &[
            "ChatTextPatch", "ChatReasoningPatch", "ChatToolArgumentsPatch", $($name,)*
        ];
    };
}

chat_events! {
    UserMessageAccepted, "ChatUserMessageAccepted", CHAT, ChatUserMessageAccepted;
    RunStarted, "ChatRunStarted", CHAT, ChatRunStarted;
    RunFinished, "ChatRunFinished", CHAT, ChatRunFinished;
    RunStopped, "ChatRunStopped", CHAT, ChatRunStopped;
    RunFailed, "ChatRunFailed", CHAT, ChatRunFailed;
    ProviderCallStarted, "ChatProviderCallStarted", CHAT, ChatProviderCallStarted;
    ProviderCallMetadataUpdated, "ChatProviderCallMetadataUpdated", CHAT, ChatProviderCallMetadataUpdated;
    ProviderCallFinished, "ChatProviderCallFinished", CHAT, ChatProviderCallFinished;
    TextSegmentStarted, "ChatTextSegmentStarted", CHAT, ChatTextSegmentStarted;
    TextSegmentFinished, "ChatTextSegmentFinished", CHAT, ChatTextSegmentFinished;
    ReasoningSegmentStarted, "ChatReasoningSegmentStarted", CHAT, ChatReasoningSegmentStarted;
    ReasoningSegmentFinished, "ChatReasoningSegmentFinished", CHAT, ChatReasoningSegmentFinished;
    ToolCallStarted, "ChatToolCallStarted", CHAT, ChatToolCallStarted;
    ToolCallRequested, "ChatToolCallRequested", CHAT, ChatToolCallRequested;
    ToolExecutionStarted, "ChatToolExecutionStarted", CHAT, ChatToolExecutionStarted;
    ToolResultReady, "ChatToolResultReady", CHAT, ChatToolResultReady;
    ToolCallFinished, "ChatToolCallFinished", CHAT, ChatToolCallFinished;
    FrontendToolCallRequested, "ChatFrontendToolCallRequested", FRONTEND_TOOLS, FrontendToolCallRequested;
    FrontendToolResultReceived, "ChatFrontendToolResultReceived", FRONTEND_TOOLS, FrontendToolResultReceived;
    WidgetInstanceStarted, "ChatWidgetInstanceStarted", WIDGETS, WidgetInstanceStarted;
    WidgetInstancePatched, "ChatWidgetInstancePatched", WIDGETS, WidgetInstancePatched;
    WidgetInstanceCompleted, "ChatWidgetInstanceCompleted", WIDGETS, WidgetInstanceCompleted;
    WidgetInstanceRemoved, "ChatWidgetInstanceRemoved", WIDGETS, WidgetInstanceRemoved;
    AgentModePreviewUpdated, "ChatAgentModePreviewUpdated", CHAT, AgentModePreviewUpdate;
    AgentModeCommitted, "ChatAgentModeCommitted", CHAT, AgentModeCommittedUpdate;
    AgentModePreviewCleared, "ChatAgentModePreviewCleared", CHAT, AgentModePreviewCleared;
}

impl ChatEvent {
    /// Appends the type URL of the payload for an `Any`.
    pub(crate) fn append_type_url(&self, out: &mut Vec<u8>) {
        let (package, name) = self.message_name();
        for part in [TYPE_URL, package, name] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Reports whether this is the terminal event of a run. Each run has exactly one.
    pub fn ends_run(&self) -> bool {
        matches!(
            self,
            Self::RunFinished(_) | Self::RunStopped(_) | Self::RunFailed(_)
        )
    }
}

/// Returns the parts of the type URL of an entity's payload; `None` for kinds that are not registered.
pub(crate) fn entity_type_url(kind: &str) -> Option<[&'static str; 3]> {
    let (package, name) = match kind {
        "ChatMessage" => (CHAT, "ChatMessageEntity"),
        "ChatToolCall" => (CHAT, "ToolCallEntity"),
        "ChatToolResult" => (CHAT, "ToolResultEntity"),
        "AgentMode" => (CHAT, "AgentModeEntity"),
        "ChatFrontendToolCall" => (FRONTEND_TOOLS, "FrontendToolCallEntity"),
        "ChatWidgetInstance" => (WIDGETS, "WidgetInstanceEntity"),
        _ => return None,
    };
    Some([TYPE_URL, package, name])
}

fn append_patch(patch: &Patch, out: &mut Vec<u8>) {
    let mut numbers = Vec::new();
    patch.append_numbers(&mut numbers);
    let mut escaped = Vec::new();
    pinion_jsonl::json::append_escaped(&mut escaped, &patch.text);
    let start = out.len();
    for slice in patch.members(&numbers, &escaped, patch.mode) {
        out.extend_from_slice(slice);
    }
    // Every member begins with a comma; the brace replaces the first one.
    match out.get_mut(start) {
        Some(comma) => *comma = b'{',
        None => out.push(b'{'),
    }
    out.push(b'}');
}

fn mode_of(mode: pb::ChatStreamPatchMode) -> PatchMode {
    match mode {
        pb::ChatStreamPatchMode::Snapshot | pb::ChatStreamPatchMode::Replace => PatchMode::Snapshot,
        _ => PatchMode::Append,
    }
}

fn patch(
    kind: PatchKind,
    facts: SegmentFacts,
    (sequence, offset): (u64, u64),
    text: pb::Text,
    mode: pb::ChatStreamPatchMode,
) -> ChatEvent {
    ChatEvent::Patch(Patch {
        stream: Arc::new(PatchStream::new(kind, facts)),
        sequence,
        offset,
        text: text.as_str().into(),
        mode: mode_of(mode),
    })
}

fn text_patch(patched: pb::ChatTextPatch) -> ChatEvent {
    let facts = SegmentFacts {
        message_id: patched.message_id,
        role: patched.role,
        prompt: patched.prompt,
        correlation: patched.correlation,
        ..SegmentFacts::default()
    };
    let numbers = (patched.sequence, patched.offset);
    patch(PatchKind::Text, facts, numbers, patched.text, patched.mode)
}

fn thinking_patch(patched: pb::ChatReasoningPatch) -> ChatEvent {
    let facts = SegmentFacts {
        message_id: patched.message_id,
        parent_message_id: patched.parent_message_id,
        role: patched.role,
        source: patched.source,
        correlation: patched.correlation,
        ..SegmentFacts::default()
    };
    let numbers = (patched.sequence, patched.offset);
    patch(
        PatchKind::Thinking,
        facts,
        numbers,
        patched.text,
        patched.mode,
    )
}

fn arguments_patch(patched: pb::ChatToolArgumentsPatch) -> ChatEvent {
    let facts = SegmentFacts {
        message_id: patched.message_id,
        tool_call_id: patched.tool_call_id,
        correlation: patched.correlation,
        ..SegmentFacts::default()
    };
    let numbers = (patched.sequence, patched.offset);
    patch(
        PatchKind::Arguments,
        facts,
        numbers,
        patched.arguments,
        patched.mode,
    )
}

/// Appends `"` + number + `"`.
pub(crate) fn append_quoted_number(out: &mut Vec<u8>, number: u64) {
    out.push(b'"');
    append_number(out, number);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_types_belong_together() {
        for name in EVENT_NAMES {
            let event = ChatEvent::decode(name, "{}").unwrap();
            assert_eq!(event.name(), *name);
            let mut type_url = Vec::new();
            event.append_type_url(&mut type_url);
            let type_url = String::from_utf8(type_url).unwrap();
            let message = type_url.strip_prefix(TYPE_URL).unwrap();
            pinion_proto::Payload::decode_json(message, b"{}", pinion_proto::Strictness::Strict)
                .unwrap();
        }
        assert!(ChatEvent::decode("ChatTextDelta", "{}").is_err());
    }

    #[test]
    fn patches_are_printed_as_the_message_is() {
        let text = pb::ChatTextPatch {
            message_id: "m\"".into(),
            role: "assistant".into(),
            stream_id: "m\"".into(),
            sequence: 3,
            offset: 7,
            text: "a\n\u{1}\u{e9}".into(),
            mode: pb::ChatStreamPatchMode::Append,
            status: "streaming".into(),
            prompt: "p".into(),
            correlation: Some(pb::CorrelationInfo {
                run_id: "r".into(),
                segment_id: "s".into(),
                ..Default::default()
            }),
            ..Default::default()
        };
        let thinking = pb::ChatReasoningPatch {
            message_id: "m".into(),
            parent_message_id: "r".into(),
            role: "thinking".into(),
            stream_id: "m".into(),
            text: "t".into(),
            mode: pb::ChatStreamPatchMode::Snapshot,
            status: "streaming".into(),
            source: "summary".into(),
            correlation: Some(pb::CorrelationInfo::default()),
            ..Default::default()
        };
        let arguments = pb::ChatToolArgumentsPatch {
            message_id: "r".into(),
            tool_call_id: "c".into(),
            stream_id: "c".into(),
            sequence: 1,
            arguments: "{".into(),
            mode: pb::ChatStreamPatchMode::Append,
            status: "streaming_args".into(),
            ..Default::default()
        };
        use pinion_proto::Message;
        for (name, printed) in [
            ("ChatTextPatch", text.to_json()),
            ("ChatReasoningPatch", thinking.to_json()),
            ("ChatToolArgumentsPatch", arguments.to_json()),
        ] {
            let mut out = Vec::new();
            ChatEvent::decode(name, &printed)
                .unwrap()
                .append_payload(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), printed);
        }
    }
}
