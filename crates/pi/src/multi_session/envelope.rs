//! Reads the members of a line that decide its route: `id`, `type` and `sessionId`.
//!
//! All other members are skipped, so that a line of megabytes for one session does not delay the others; the session
//! that receives it parses it as a whole.

use std::borrow::Cow;
use std::fmt;

use pinion_jsonl::InputLine;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::response::Request;

/// The members that every command may have.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub request: Request,
    pub session: Option<Value>,
}

impl Envelope {
    /// Reads a line; `None` if it is not a JSON object.
    pub fn of(line: &InputLine) -> Option<Self> {
        match line {
            InputLine::Complete(bytes) => pinion_jsonl::json::from_slice(bytes).ok(),
            InputLine::TooLong { .. } => None,
        }
    }
}

impl<'de> Deserialize<'de> for Envelope {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Envelope;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a command")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope, A::Error> {
        let mut envelope = Envelope::default();
        // The last of duplicate members is used, as everywhere.
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match &*name {
                "id" => envelope.request.id = Some(map.next_value()?),
                "type" => envelope.request.command = Some(map.next_value()?),
                "sessionId" => envelope.session = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(line: &str) -> Option<Envelope> {
        Envelope::of(&InputLine::Complete(line.as_bytes().to_vec()))
    }

    #[test]
    fn the_last_duplicate_is_used_and_other_members_are_skipped() {
        let line = r#"{"sessionId":"a","x":[{"sessionId":"b"}],"t\u0079pe":"prompt","id":[1],"sessionId":"c"}"#;
        let envelope = of(line).unwrap();
        assert_eq!(envelope.request.command, Some(json!("prompt")));
        assert_eq!(envelope.request.id, Some(json!([1])));
        assert_eq!(envelope.session, Some(json!("c")));
    }

    #[test]
    fn a_line_that_is_not_an_object_has_no_envelope() {
        for line in ["", "1", "[]", "null", "{", r#"{"type":}"#] {
            assert!(of(line).is_none(), "{line}");
        }
    }
}
