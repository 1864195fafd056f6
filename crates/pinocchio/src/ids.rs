//! Ids of runs, messages and segments.

use uuid::Uuid;

const TEXT: &str = ":text:";
const THINKING: &str = ":thinking:";
const USER: &str = "-user";
const WARNING: &str = ":warning";

/// Creates a unique name for a new run.
pub fn new_root() -> String {
    format!("chat-msg-{}", Uuid::new_v4())
}

/// Creates a UUID, which is the form of the ids of sessions, requests, turns and inferences.
pub fn new_id() -> String {
    Uuid::new_v4().to_string()
}

/// Reports whether ids derived from `root` cannot be confused with those of other roots.
pub fn is_usable_root(root: &str) -> bool {
    !root.trim().is_empty()
        && !root.contains(TEXT)
        && !root.contains(THINKING)
        && !root.ends_with(USER)
        && !root.ends_with(WARNING)
}

/// The id of the user's message in the run `root`.
pub(crate) fn user_message(root: &str) -> String {
    format!("{root}{USER}")
}

/// The id of a text segment of the answer.
pub(crate) fn text_segment(root: &str, segment: &str) -> String {
    format!("{root}{TEXT}{segment}")
}

/// The id of a thinking segment.
pub(crate) fn thinking_segment(root: &str, segment: &str) -> String {
    format!("{root}{THINKING}{segment}")
}

/// The id of a warning of the run.
pub(crate) fn warning(root: &str) -> String {
    format!("{root}{WARNING}")
}

/// The id of the entity of a tool result.
pub(crate) fn tool_result(call_id: &str) -> String {
    format!("{call_id}:result")
}

/// Returns the run that a text segment belongs to; empty if the id is not that of a text segment.
pub(crate) fn parent_of_text(message_id: &str) -> &str {
    message_id.rfind(TEXT).map_or("", |at| &message_id[..at])
}

/// Converts a name from the engine into a part of an id.
pub(crate) fn sanitise(name: &str) -> String {
    let kept = |character: char| match character {
        'A'..='Z' | 'a'..='z' | '0'..='9' | '-' | '_' | '.' | ':' => character,
        _ => '-',
    };
    let name: String = name.trim().chars().map(kept).collect();
    name.trim_matches(['-', ':', '_', '.', ' ']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_engine_are_cleaned() {
        assert_eq!(
            sanitise(" openai-chat:chatcmpl-1:choice:0 "),
            "openai-chat:chatcmpl-1:choice:0"
        );
        assert_eq!(sanitise("a/b c\u{e9}d"), "a-b-c-d");
        assert_eq!(sanitise("::-a-_."), "a");
        assert_eq!(sanitise("\u{2028}"), "");
    }

    #[test]
    fn roots_are_told_apart() {
        assert!(is_usable_root(&new_root()));
        for root in ["", " ", "a:text:b", "a:thinking:b", "a-user", "a:warning"] {
            assert!(!is_usable_root(root), "{root:?}");
        }
        assert_ne!(new_root(), new_root());
    }

    #[test]
    fn the_parent_is_before_the_last_mark() {
        assert_eq!(parent_of_text("r:text:a:text:1"), "r:text:a");
        assert_eq!(parent_of_text("r:warning"), "");
    }
}
