//! Patches: additions to a growing text, thinking or argument.
//!
//! Nearly all events of a stream are patches, and the patches of one segment differ only in a number, an offset and the
//! text. So the common parts are encoded once, and each patch is assembled from slices.

use std::sync::Arc;

use pinion_jsonl::json;

use crate::pb::{CorrelationInfo, Text};

/// The kind of text that a patch is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchKind {
    /// Text of the answer.
    Text,
    /// Thinking of the model.
    Thinking,
    /// Arguments of a tool call.
    Arguments,
}

impl PatchKind {
    /// Returns the name of the event.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "ChatTextPatch",
            Self::Thinking => "ChatReasoningPatch",
            Self::Arguments => "ChatToolArgumentsPatch",
        }
    }

    /// Returns the mode of such patches when `mode` is configured: arguments are always appended.
    pub(crate) fn mode(self, mode: PatchMode) -> PatchMode {
        match self {
            Self::Text | Self::Thinking => mode,
            Self::Arguments => PatchMode::Append,
        }
    }
}

/// The meaning of the text of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PatchMode {
    /// `text` is the addition.
    Append,
    /// `text` is the whole text so far.
    #[default]
    Snapshot,
}

impl PatchMode {
    fn word(self) -> &'static [u8] {
        match self {
            Self::Append => b"APPEND",
            Self::Snapshot => b"SNAPSHOT",
        }
    }
}

/// The members that all patches of a segment share.
#[derive(Debug, Clone, Default)]
pub struct SegmentFacts {
    /// The growing message; the run, for arguments.
    pub message_id: Text,
    /// The run, for thinking.
    pub parent_message_id: Text,
    /// `assistant` or `thinking`.
    pub role: Text,
    /// The user's prompt, for text.
    pub prompt: Text,
    /// The source of the thinking.
    pub source: Text,
    /// The call whose arguments grow.
    pub tool_call_id: Text,
    /// The session, run and request that the segment belongs to.
    pub correlation: Option<CorrelationInfo>,
}

/// A segment that receives patches.
#[derive(Debug)]
pub struct PatchStream {
    pub kind: PatchKind,
    /// The members that all patches share.
    pub facts: SegmentFacts,
    /// The members before the number.
    head: Vec<u8>,
    /// The bytes from the quote that ends the mode to the end of the members.
    tail: Vec<u8>,
}

impl PatchStream {
    /// Encodes the members that all patches of a segment share.
    pub fn new(kind: PatchKind, facts: SegmentFacts) -> Self {
        let mut head = Vec::new();
        let mut tail = vec![b'"'];
        member(&mut head, "messageId", &facts.message_id);
        match kind {
            PatchKind::Text => {
                member(&mut head, "role", &facts.role);
                member(&mut head, "streamId", &facts.message_id);
                member(&mut tail, "status", "streaming");
                member(&mut tail, "prompt", &facts.prompt);
            }
            PatchKind::Thinking => {
                member(&mut head, "parentMessageId", &facts.parent_message_id);
                member(&mut head, "role", &facts.role);
                member(&mut head, "streamId", &facts.message_id);
                member(&mut tail, "status", "streaming");
                member(&mut tail, "source", &facts.source);
            }
            PatchKind::Arguments => {
                member(&mut head, "toolCallId", &facts.tool_call_id);
                member(&mut head, "streamId", &facts.tool_call_id);
                member(&mut tail, "status", "streaming_args");
            }
        }
        if let Some(correlation) = &facts.correlation {
            tail.extend_from_slice(br#","correlation":{"#);
            let start = tail.len();
            for (name, value) in [
                ("sessionId", &correlation.session_id),
                ("runId", &correlation.run_id),
                ("turnId", &correlation.turn_id),
                ("providerCallId", &correlation.provider_call_id),
                ("segmentId", &correlation.segment_id),
                ("toolCallId", &correlation.tool_call_id),
            ] {
                member(&mut tail, name, value);
            }
            if tail.get(start) == Some(&b',') {
                tail.remove(start);
            }
            tail.push(b'}');
        }
        Self {
            kind,
            facts,
            head,
            tail,
        }
    }

    /// Returns the id of the growing entity.
    pub fn entity_id(&self) -> &str {
        match self.kind {
            PatchKind::Text | PatchKind::Thinking => &self.facts.message_id,
            PatchKind::Arguments => &self.facts.tool_call_id,
        }
    }
}

/// Appends `,"name":"value"`, or nothing if the value is empty.
fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    if value.is_empty() {
        return;
    }
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
    json::append_escaped(out, value);
    out.push(b'"');
}

/// An addition to a segment.
#[derive(Debug, Clone)]
pub struct Patch {
    /// The segment.
    pub stream: Arc<PatchStream>,
    /// The number of the patch from 1, or 0 if patches are not numbered.
    pub sequence: u64,
    /// The bytes of text before this patch.
    pub offset: u64,
    /// The addition or the whole text so far, depending on `mode`.
    pub text: Arc<str>,
    /// The meaning of `text`. Always [`PatchMode::Append`] in patches that pinion creates.
    pub mode: PatchMode,
}

impl Patch {
    /// Appends `,"sequence":…,"offset":…` if they are not 0.
    pub(crate) fn append_numbers(&self, out: &mut Vec<u8>) {
        for (name, number) in [("sequence", self.sequence), ("offset", self.offset)] {
            if number > 0 {
                out.extend_from_slice(b",\"");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b"\":\"");
                append_number(out, number);
                out.push(b'"');
            }
        }
    }

    /// Returns the slices of the members, each with a leading comma. `numbers` comes from [`Patch::append_numbers`],
    /// and `escaped` is the text for `mode`.
    pub(crate) fn members<'a>(
        &'a self,
        numbers: &'a [u8],
        escaped: &'a [u8],
        mode: PatchMode,
    ) -> [&'a [u8]; 8] {
        let (text, end): (&[u8], &[u8]) = match (escaped.is_empty(), self.stream.kind) {
            (true, _) => (b"", b""),
            (false, PatchKind::Arguments) => (b",\"arguments\":\"", b"\""),
            (false, _) => (b",\"text\":\"", b"\""),
        };
        [
            &self.stream.head,
            numbers,
            text,
            escaped,
            end,
            b",\"mode\":\"CHAT_STREAM_PATCH_MODE_",
            mode.word(),
            &self.stream.tail,
        ]
    }
}

/// Appends a decimal number.
pub(crate) fn append_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}
