//! What a line says about itself: enough to know where it goes, and no more.
//!
//! Everything else in it is skipped over, so that a line of megabytes meant for one session does not
//! keep the others waiting; the session that gets it reads it in full.

use std::borrow::Cow;
use std::fmt;

use pinion_jsonl::InputLine;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::response::Asked;

/// The members that every command may have.
#[derive(Debug, Default)]
pub(super) struct Envelope {
    pub asked: Asked,
    pub session: Option<Value>,
}

impl Envelope {
    /// Looks at a line; `None` if it is no object that can be read.
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
        // Of members that come twice the last one counts, as everywhere.
        while let Some(name) = map.next_key::<Cow<'_, str>>()? {
            match &*name {
                "id" => envelope.asked.id = Some(map.next_value()?),
                "type" => envelope.asked.command = Some(map.next_value()?),
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
    fn the_last_of_two_counts_and_the_rest_is_skipped() {
        let line = r#"{"sessionId":"a","x":[{"sessionId":"b"}],"t\u0079pe":"prompt","id":[1],"sessionId":"c"}"#;
        let envelope = of(line).unwrap();
        assert_eq!(envelope.asked.command, Some(json!("prompt")));
        assert_eq!(envelope.asked.id, Some(json!([1])));
        assert_eq!(envelope.session, Some(json!("c")));
    }

    #[test]
    fn what_is_no_object_has_no_envelope() {
        for line in ["", "1", "[]", "null", "{", r#"{"type":}"#] {
            assert!(of(line).is_none(), "{line}");
        }
    }
}
